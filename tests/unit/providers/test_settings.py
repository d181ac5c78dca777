"""Settings of a model in every API: written, read back, and noted where an API has none."""

import json
from dataclasses import replace
from typing import Any

import pytest

from toolwire import ChatRequest, DefinitionError, Notes, ToolDefinition, get_api
from toolwire.providers.api_registry import APIS
from toolwire.providers.model_settings import (
    EFFORTS,
    SETTINGS,
    Effort,
    ModelSettings,
    RequestAdditions,
    merged,
    patched,
)

SETTABLE = sorted(SETTINGS - {"parallel"})
VALUES: ModelSettings = {
    "max_tokens": 5000,
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "stop": ("END",),
    "seed": 7,
    "frequency_penalty": 0.25,
    "presence_penalty": 0.75,
    "reasoning_effort": "high",
    "service_tier": "default",
    "metadata": {"team": "a"},
    "end_user": "u1",
    "compact_at": 60_000,
}
NEUTRAL = {"model", "messages", "stream", "contents", "input", "modelId"}
CHAT_SAMPLING = {
    "temperature": 0.5,
    "top_p": 0.9,
    "stop": ["END"],
    "seed": 7,
    "frequency_penalty": 0.25,
    "presence_penalty": 0.75,
}

WRITTEN: dict[str, dict[str, Any]] = {
    "openai_chat": {
        **CHAT_SAMPLING,
        "max_completion_tokens": 5000,
        "reasoning_effort": "high",
        "service_tier": "default",
        "metadata": {"team": "a"},
        "user": "u1",
    },
    "openai_responses": {
        "max_output_tokens": 5000,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning": {"effort": "high"},
        "service_tier": "default",
        "metadata": {"team": "a"},
        "user": "u1",
        "context_management": [{"type": "compaction", "compact_threshold": 60_000}],
    },
    "anthropic_messages": {
        "max_tokens": 5000,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "stop_sequences": ["END"],
        "output_config": {"effort": "high"},
        "thinking": {"type": "adaptive"},
        "service_tier": "standard_only",
        "metadata": {"user_id": "u1"},
        "context_management": {
            "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 60_000}}]
        },
    },
    "bedrock_converse": {
        "inferenceConfig": {"maxTokens": 5000, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        "outputConfig": {"effort": "high"},
        "serviceTier": {"type": "default"},
        "requestMetadata": {"team": "a"},
    },
    "gemini": {
        "generationConfig": {
            "maxOutputTokens": 5000,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "stopSequences": ["END"],
            "seed": 7,
            "frequencyPenalty": 0.25,
            "presencePenalty": 0.75,
            "thinkingConfig": {"thinkingLevel": "HIGH"},
        },
        "serviceTier": "standard",
    },
    "ollama": {
        "options": {
            "num_predict": 5000,
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 40,
            "stop": ["END"],
            "seed": 7,
            "frequency_penalty": 0.25,
            "presence_penalty": 0.75,
        },
        "think": "high",
    },
    "cohere": {
        "max_tokens": 5000,
        "temperature": 0.5,
        "p": 0.9,
        "k": 40,
        "stop_sequences": ["END"],
        "seed": 7,
        "frequency_penalty": 0.25,
        "presence_penalty": 0.75,
        "thinking": {"type": "enabled", "token_budget": 24576},
    },
    "mistral": {
        **{name: value for name, value in CHAT_SAMPLING.items() if name != "seed"},
        "max_tokens": 5000,
        "top_k": 40,
        "random_seed": 7,
        "reasoning_effort": "high",
        "service_tier": "standard_only",
        "metadata": {"team": "a"},
    },
    "groq": {
        **CHAT_SAMPLING,
        "max_completion_tokens": 5000,
        "reasoning_effort": "high",
        "service_tier": "on_demand",
        "user": "u1",
    },
    "openrouter": {
        **CHAT_SAMPLING,
        "max_tokens": 5000,
        "top_k": 40,
        "reasoning": {"effort": "high"},
        "service_tier": "default",
        "metadata": {"team": "a"},
        "user": "u1",
    },
    "vllm": {**CHAT_SAMPLING, "max_tokens": 5000, "top_k": 40, "reasoning_effort": "high"},
    "llama_cpp": {
        **CHAT_SAMPLING,
        "max_tokens": 5000,
        "top_k": 40,
        "chat_template_kwargs": {"reasoning_effort": "high"},
    },
}


def conversation(api: str) -> dict[str, Any]:
    """The member for messages, without any."""
    return {name: [] for name in ("input", "contents", "messages") if name in get_api(api).members}


def encoded(api: str, notes: Notes | None = None, model: str = "m", **settings: Any) -> dict[str, Any]:
    """The members for settings of a request."""
    body = get_api(api).encode_request("Hi.", model=model, notes=notes, **settings)
    return {name: value for name, value in body.items() if name not in NEUTRAL}


@pytest.mark.parametrize("api", WRITTEN)
def test_settings_are_members_of_the_body(api: str) -> None:
    assert encoded(api, **VALUES) == WRITTEN[api]


@pytest.mark.parametrize("api", [api.name for api in APIS])
@pytest.mark.parametrize("name", SETTABLE)
def test_every_setting_is_read_back_or_noted(api: str, name: str) -> None:
    notes = Notes()
    value = VALUES[name]  # type: ignore[literal-required]
    body = get_api(api).encode_request("Hi.", model="m", notes=notes, **{name: value})  # type: ignore[arg-type]
    request = get_api(api).decode_request(body)
    about = [note for note in notes if note.where == name]
    if not get_api(api).takes_setting(name):
        assert [note.kind for note in about] == ["dropped"]
        assert getattr(request, name) in (None, (), {})
    elif about:  # another effort, which the note names
        assert [note.kind for note in about] == ["changed"]
        assert getattr(request, name) != value
    else:
        assert getattr(request, name) == value
    again = get_api(api).encode_request(request)
    assert {key: again[key] for key in body} == body, "a body that was read is written again as it was"


@pytest.mark.parametrize(("api", "least"), [("anthropic_messages", 50_000), ("openai_responses", 1_000)])
def test_compaction_begins_at_the_least_that_the_server_takes(api: str, least: int) -> None:
    notes = Notes()
    assert encoded(api, notes, compact_at=10) == encoded(api, compact_at=least)
    message = f"changed compact_at: {api} requires at least {least} tokens"
    assert [str(note) for note in notes if note.where == "compact_at"] == [message]


@pytest.mark.parametrize(
    ("api", "member"),
    [
        ("anthropic_messages", {"edits": [{"type": "clear_tool_uses_20250919"}]}),
        (
            "anthropic_messages",
            {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 60_000}, "x": 1}]},
        ),
        ("openai_responses", [{"type": "compaction"}]),
        ("openai_responses", []),
    ],
)
def test_other_edits_of_the_context_stay_as_they_are(api: str, member: Any) -> None:
    body = get_api(api).encode_request("Hi.", model="m") | {"context_management": member}
    request = get_api(api).decode_request(body)
    assert request.compact_at is None
    assert get_api(api).encode_request(request)["context_management"] == member


@pytest.mark.parametrize("value", [0, -1, True, "many", float("nan")])
def test_compaction_begins_at_a_number_of_tokens(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="compact_at"):
        RequestAdditions.of({"compact_at": value})


@pytest.mark.parametrize("api", [api.name for api in APIS])
@pytest.mark.parametrize("effort", [*EFFORTS, 300, 2000, 50_000])
def test_every_effort_can_be_written_and_read(api: str, effort: Effort | int) -> None:
    notes = Notes()
    body = get_api(api).encode_request("Hi.", max_tokens=100_000, reasoning_effort=effort, notes=notes)
    request = get_api(api).decode_request(body)
    changed = [note for note in notes if note.where == "reasoning_effort"]
    assert changed or request.reasoning_effort == effort
    if effort == "none":
        assert request.reasoning_effort == ("minimal" if api == "gemini_interactions" else "none")
    if request.reasoning_effort is None:  # a switch alone
        assert api == "moonshot"
        assert body["thinking"] == {"type": "enabled"}


@pytest.mark.parametrize(
    ("api", "effort", "members"),
    [
        ("openai_chat", "none", {"reasoning_effort": "none"}),
        ("openai_chat", 2000, {"reasoning_effort": "medium"}),
        ("openai_responses", "xhigh", {"reasoning": {"effort": "xhigh"}}),
        ("anthropic_messages", "none", {"max_tokens": 4096, "thinking": {"type": "disabled"}}),
        ("anthropic_messages", 0, {"max_tokens": 4096, "thinking": {"type": "disabled"}}),
        ("anthropic_messages", 2000, {"max_tokens": 6096, "thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("anthropic_messages", 10, {"max_tokens": 5120, "thinking": {"type": "enabled", "budget_tokens": 1024}}),
        (
            "anthropic_messages",
            "minimal",
            {"max_tokens": 4096, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        (
            "bedrock_converse",
            2000,
            {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}},
        ),
        ("bedrock_converse", "none", {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}),
        ("gemini", "none", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
        ("gemini", 2000, {"generationConfig": {"thinkingConfig": {"thinkingBudget": 2000}}}),
        ("gemini", "max", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "XHIGH"}}}),
        ("cohere", "none", {"thinking": {"type": "disabled"}}),
        ("cohere", 2000, {"thinking": {"type": "enabled", "token_budget": 2000}}),
        ("ollama", "none", {"think": False}),
        ("ollama", "xhigh", {"think": "high"}),
        ("openrouter", 2000, {"reasoning": {"max_tokens": 2000}}),
        ("deepseek", "none", {"thinking": {"type": "disabled"}}),
        ("deepseek", "medium", {"reasoning_effort": "low"}),
        ("moonshot", "high", {"thinking": {"type": "enabled"}}),
        ("groq", "max", {"reasoning_effort": "high"}),
        ("vllm", 2000, {"thinking_token_budget": 2000}),
        ("llama_cpp", "none", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_effort_in_the_words_of_each_api(api: str, effort: Any, members: dict[str, Any]) -> None:
    assert encoded(api, reasoning_effort=effort) == members


@pytest.mark.parametrize(
    ("api", "model", "budget"),
    [
        ("anthropic_messages", "claude-haiku-4-5", "thinking.budget_tokens is 8192"),
        ("anthropic_messages", "claude-3-7-sonnet-20250219", "thinking.budget_tokens is 8192"),
        ("anthropic_messages", "claude-sonnet-4-20250514", "thinking.budget_tokens is 8192"),
        ("anthropic_messages", "claude-opus-4-6", ""),
        ("anthropic_messages", "claude-sonnet-5", ""),
        ("bedrock_converse", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "thinking.budget_tokens is 8192"),
        ("gemini", "gemini-2.5-flash", "thinkingBudget is 8192"),
        ("gemini", "gemini-3-pro", ""),
    ],
)
def test_models_from_before_the_levels_get_a_budget(api: str, model: str, budget: str) -> None:
    notes = Notes()
    encoded(api, notes, model, reasoning_effort="medium", max_tokens=20_000)
    assert [budget in note.message for note in notes] == ([True] if budget else [])


def test_claude_on_bedrock_reasons_at_a_level() -> None:
    members = encoded("bedrock_converse", model="us.anthropic.claude-opus-4-6-v1:0", reasoning_effort="low")
    thinking = {"thinking": {"type": "adaptive"}}
    assert members == {"outputConfig": {"effort": "low"}, "additionalModelRequestFields": thinking}
    request = get_api("bedrock_converse").decode_request({"messages": [], **members})
    notes = Notes()
    assert get_api("openai_chat").encode_request(request, notes=notes)["reasoning_effort"] == "low"
    assert not notes
    assert encoded("bedrock_converse", model="openai.gpt-oss-120b-1:0", reasoning_effort="low") == {
        "outputConfig": {"effort": "low"}
    }


def test_budget_of_claude_is_below_the_maximum_of_the_answer() -> None:
    notes = Notes()
    members = encoded("anthropic_messages", notes, max_tokens=1500, reasoning_effort=4000)
    assert members == {"max_tokens": 1500, "thinking": {"type": "enabled", "budget_tokens": 1499}}
    assert [str(note) for note in notes] == [
        "changed reasoning_effort: anthropic_messages requires fewer tokens than max_tokens: they are 1499"
    ]
    notes = Notes()
    assert encoded("anthropic_messages", notes, max_tokens=1024, reasoning_effort=4000) == {"max_tokens": 1024}
    assert [(note.kind, note.where) for note in notes] == [("dropped", "reasoning_effort")]


@pytest.mark.parametrize(
    ("source", "body", "target", "members"),
    [
        (
            "anthropic_messages",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}, "metadata": {"user_id": "u"}},
            "openai_responses",
            {"reasoning": {"effort": "max"}, "user": "u"},
        ),
        ("anthropic_messages", {"thinking": {"type": "disabled"}}, "mistral", {"reasoning_effort": "none"}),
        (
            "anthropic_messages",
            {"thinking": {"type": "enabled", "budget_tokens": 3000}},
            "openrouter",
            {"reasoning": {"max_tokens": 3000}},
        ),
        ("openai_chat", {"reasoning_effort": "low", "seed": 3}, "ollama", {"options": {"seed": 3}, "think": "low"}),
        (
            "openai_chat",
            {"service_tier": "flex", "max_tokens": 9},
            "bedrock_converse",
            {"serviceTier": {"type": "flex"}, "inferenceConfig": {"maxTokens": 9}},
        ),
        (
            "gemini",
            {"generation_config": {"thinking_config": {"thinking_level": "low"}, "top_k": 4.0}},
            "cohere",
            {"thinking": {"type": "enabled", "token_budget": 1024}, "k": 4.0},
        ),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, "ollama", {"think": False}),
        ("ollama", {"options": {"num_predict": -1}, "think": False}, "groq", {"reasoning_effort": "none"}),
        (
            "deepseek",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "max"},
            "openai_responses",
            {"reasoning": {"effort": "max"}},
        ),
        (
            "mistral",
            {"random_seed": 2, "service_tier": "standard_only"},
            "groq",
            {"seed": 2, "service_tier": "on_demand"},
        ),
    ],
)
def test_translation_carries_settings(source: str, body: dict[str, Any], target: str, members: dict[str, Any]) -> None:
    request = get_api(source).decode_request({**conversation(source), **body})
    notes = Notes()
    written = get_api(target).encode_request(request, notes=notes)
    assert {name: value for name, value in written.items() if name not in NEUTRAL} == members
    lost = [note.where for note in notes if note.kind == "dropped"]
    unlimited = ["options.num_predict"] if body.get("options") else []
    assert lost == unlimited, "only what no setting stands for"


@pytest.mark.parametrize(
    ("api", "body"),
    [
        (
            "anthropic_messages",
            {"max_tokens": 9, "output_config": {"effort": "low", "format": {"type": "json_schema"}}},
        ),
        ("anthropic_messages", {"max_tokens": 9, "thinking": {"type": "adaptive", "display": "omitted"}}),
        (
            "anthropic_messages",
            {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "x"}},
        ),
        ("anthropic_messages", {"max_tokens": 9, "metadata": {"user_id": None, "other": "x"}, "service_tier": "auto"}),
        ("openai_chat", {"reasoning_effort": "extreme", "metadata": {"a": 1}, "user": 5, "seed": "x"}),
        ("openai_chat", {"service_tier": "scale", "safety_identifier": "s", "user": "u"}),
        ("openai_responses", {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("openai_responses", {"reasoning": {"summary": "auto"}}),
        ("groq", {"reasoning_effort": "default", "service_tier": "brand_new"}),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1, "includeThoughts": True}}}),
        ("ollama", {"stream": True, "options": {"num_predict": -1, "num_ctx": 9}, "think": True}),
        ("bedrock_converse", {"additionalModelRequestFields": {"top_k": 3, "thinking": {"type": "adaptive"}}}),
        ("cohere", {"stream": False, "thinking": {"type": "enabled"}, "priority": 1}),
    ],
)
def test_own_members_stay_as_they_are(api: str, body: dict[str, Any]) -> None:
    again = get_api(api).encode_request(get_api(api).decode_request({**conversation(api), **body}))
    expected = {
        key: {name: inner for name, inner in value.items() if inner is not None} if isinstance(value, dict) else value
        for key, value in body.items()
    }
    assert {key: again.get(key) for key in body} == expected


@pytest.mark.parametrize("effort", ["hgih", "", True, -1, 1.5])
def test_unknown_effort_is_refused(effort: Any) -> None:
    with pytest.raises(DefinitionError, match="reasoning_effort is none, minimal"):
        encoded("openai_chat", reasoning_effort=effort)


def test_metadata_is_a_dict_of_texts() -> None:
    with pytest.raises(DefinitionError, match="metadata is a dict of texts"):
        encoded("openai_chat", metadata={"a": 1})


def test_tier_that_an_api_does_not_have_is_noted() -> None:
    notes = Notes()
    assert encoded("gemini", notes, service_tier="auto") == {}
    assert [str(note) for note in notes] == [
        "dropped service_tier: gemini has no tier 'auto'; it has standard, flex, priority"
    ]
    assert encoded("groq", service_tier="performance") == {"service_tier": "performance"}


def test_defaults_fill_what_a_request_leaves_open() -> None:
    request = ChatRequest(temperature=0.0, stop=("a",))
    filled = request.with_defaults({"temperature": 1.0, "stop": "b", "seed": 3, "top_p": None})
    assert filled == ChatRequest(temperature=0.0, stop=("a",), seed=3)


def test_unknown_settings_are_members_of_the_body_unless_they_are_misspelt() -> None:
    additions = RequestAdditions.of(
        {"temperature": 0.0, "min_p": 0.1, "logit_bias": {"5": 1}}, {"logit_bias": {"6": 2}}
    )
    assert additions.settings == {"temperature": 0.0}
    assert additions.extra_body == {"min_p": 0.1, "logit_bias": {"5": 1, "6": 2}}
    with pytest.raises(TypeError, match=r"there is no setting 'temprature'; did you mean temperature\?"):
        RequestAdditions.of({"temprature": 0.5})
    with pytest.raises(TypeError, match="settings must be a dict of settings"):
        RequestAdditions.of("hot")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="extra_headers"):
        RequestAdditions.of(extra_headers={"x": 1})  # type: ignore[dict-item]


def test_inner_additions_count_before_outer_ones() -> None:
    outer = RequestAdditions.of({"temperature": 1.0, "seed": 1}, {"a": {"b": 1, "c": 2}, "d": 3}, {"X-One": "1"})
    inner = RequestAdditions.of({"temperature": 0.0, "seed": None}, {"a": {"b": None}}, {"x-one": "2", "X-Two": "3"})
    both = inner.over(outer)
    assert both.settings == {"temperature": 0.0, "seed": 1}
    assert both.extra_body == {"a": {"b": None, "c": 2}, "d": 3}
    assert both.extra_headers == {"x-one": "2", "x-two": "3"}
    assert "2" not in repr(both.extra_headers) or "x-one" not in repr(both), "headers may be secrets"


def test_patch_merges_objects_and_removes_members() -> None:
    body = {"a": {"b": 1, "c": 2}, "d": [1], "e": 5}
    assert patched(body, {"a": {"b": None, "x": {"y": None, "z": 1}}, "d": [2], "e": None, "f": None}) == {
        "a": {"c": 2, "x": {"z": 1}},
        "d": [2],
    }
    assert body == {"a": {"b": 1, "c": 2}, "d": [1], "e": 5}
    assert merged({"a": 1}, {"a": {"b": None}}) == {"a": {"b": None}}


@pytest.mark.parametrize("api", [api.name for api in APIS])
def test_single_calls_are_asked_for_or_noted(api: str) -> None:
    tools = [ToolDefinition("tea", "The stock of tea.")]
    notes = Notes()
    body = get_api(api).encode_request("Hi.", tools=tools, parallel=False, notes=notes)
    if get_api(api).takes_setting("parallel"):
        assert get_api(api).decode_request(body).parallel is False
        assert "parallel" not in [note.where for note in notes]
    else:
        assert [str(note) for note in notes] == [f"dropped parallel: {api} has no setting for it"]


def test_notes_name_the_members_that_are_lost_not_what_contains_them() -> None:
    body = {
        "contents": [],
        "generationConfig": {
            "temperature": 0.5,
            "candidateCount": 1,
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
        },
    }
    notes = Notes()
    get_api("openai_chat").encode_request(get_api("gemini").decode_request(body), notes=notes)
    assert [note.where for note in notes] == [
        "generationConfig.candidateCount",
        "generationConfig.thinkingConfig.includeThoughts",
    ]
    thinking = {"type": "adaptive", "display": "omitted"}
    notes = Notes()
    request = get_api("anthropic_messages").decode_request({"messages": [], "thinking": thinking})
    get_api("openai_chat").encode_request(request, notes=notes)
    assert [note.where for note in notes] == ["thinking.type", "thinking.display"]
    notes = Notes()
    get_api("openai_chat").encode_request(replace(request, reasoning_effort="low"), notes=notes)
    assert [note.where for note in notes] == ["thinking.display"]


_FEW = {"metadata", "service_tier"}
_ANTHROPIC = {"frequency_penalty", "metadata", "presence_penalty", "seed"}
LACKS = {
    **{key: {"top_k"} for key in ("openai_chat", "azure", "azure_deployments")},
    "groq": {"metadata", "top_k"},
    "deepseek": {*_FEW, "end_user", "seed", "top_k"},
    "moonshot": {*_FEW, "end_user", "seed", "top_k"},
    "xai": {*_FEW, "top_k"},
    "openrouter": set[str](),
    **dict.fromkeys(("fireworks", "venice", "deepinfra"), _FEW),
    **{key: {*_FEW, "end_user"} for key in ("together", "vllm", "sglang", "llama_cpp", "lm_studio", "cloudflare")},
    "cerebras": {*_FEW, "frequency_penalty", "presence_penalty", "top_k"},
    **{key: {*_FEW, "end_user", "top_k"} for key in ("ollama_chat", "hugging_face")},
    "zai": {*_FEW, "frequency_penalty", "presence_penalty", "seed", "top_k"},
    "openai_compatible": {*_FEW, "top_k"},
    "openai_responses": {"frequency_penalty", "presence_penalty", "seed", "stop", "top_k"},
    **dict.fromkeys(("anthropic_messages", "anthropic_bedrock", "anthropic_vertex"), _ANTHROPIC),
    "bedrock_converse": {"end_user", "frequency_penalty", "parallel", "presence_penalty", "seed", "top_k"},
    **{key: {"end_user", "metadata", "parallel"} for key in ("gemini", "gemini_openapi")},
    "gemini_interactions": {*("end_user", "frequency_penalty", "metadata"), "parallel", "presence_penalty", "top_k"},
    **{key: {*_FEW, "end_user", "parallel"} for key in ("ollama", "cohere")},
    "mistral": {"end_user"},
}
"""The settings that an API does not have, besides compaction, by its documentation."""
COMPACTING = {"anthropic_messages", "anthropic_bedrock", "anthropic_vertex", "openai_responses"}
TIERS = [
    # API, then its words for auto, default, flex and priority; None for a tier that it does not have
    ("groq", ("auto", "on_demand", "flex", "performance")),
    ("mistral", ("auto", "standard_only", None, None)),
    ("anthropic_messages", ("auto", "standard_only", None, None)),
    ("openai_chat", ("auto", "default", "flex", "priority")),
    ("gemini", (None, "standard", "flex", "priority")),
    ("gemini_interactions", (None, "standard", "flex", "priority")),
    ("bedrock_converse", (None, "default", "flex", "priority")),
]


@pytest.mark.parametrize("api", [api.name for api in APIS])
def test_an_api_has_the_settings_that_it_documents(api: str) -> None:
    lacking = {name for name in SETTINGS if not get_api(api).takes_setting(name)}
    assert lacking - {"compact_at"} == LACKS[api]
    assert get_api(api).takes_setting("compact_at") is (api in COMPACTING)


@pytest.mark.parametrize(("api", "words"), TIERS, ids=[row[0] for row in TIERS])
def test_each_tier_has_the_word_of_the_api(api: str, words: tuple[str | None, ...]) -> None:
    for tier, word in zip(("auto", "default", "flex", "priority"), words, strict=True):
        notes = Notes()
        body = get_api(api).encode_request([], model="m", service_tier=tier, notes=notes)
        lost = [note for note in notes if note.where == "service_tier"]
        if word is None:
            assert lost
        else:
            assert f'"{word}"' in json.dumps(body) and not lost
            assert get_api(api).decode_request(body).service_tier == tier


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "0.5") for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty")),
        *((name, 1.5) for name in ("max_tokens", "top_k", "seed")),
        *((name, 5) for name in ("service_tier", "end_user", "stop", "parallel")),
    ],
)
def test_a_setting_of_another_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        get_api("openai_chat").encode_request("Hi.", model="m", **{name: value})


@pytest.mark.parametrize("headers", [{5: "a"}, {"a": 5}])
def test_headers_are_text(headers: dict[Any, Any]) -> None:
    with pytest.raises(TypeError, match="must be text, not 5"):
        RequestAdditions.of(None, None, headers)


@pytest.mark.parametrize(
    ("body", "name", "value"),
    [
        ({"stop": "a"}, "stop", ("a",)),
        ({"stop": ["a", "b"]}, "stop", ("a", "b")),
        ({"stop": ""}, "stop", ()),
        ({"max_completion_tokens": 1}, "max_tokens", 1),
        ({"max_completion_tokens": 0}, "max_tokens", None),
        ({"max_completion_tokens": True}, "max_tokens", None),
        ({"seed": "5"}, "seed", None),
    ],
)
def test_a_member_is_a_setting_only_with_a_value_that_it_can_have(body: dict[str, Any], name: str, value: Any) -> None:
    request = get_api("openai_chat").decode_request({"messages": [], "model": "m", **body})
    assert getattr(request, name) == value
