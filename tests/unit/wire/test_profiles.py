"""The format of a model, found by its name or its chat template."""

from pathlib import Path

import pytest

import toolwire
from toolwire.wire.answer_shares import MEASURED
from toolwire.wire.profiles import FAMILIES, QUIRKS

LINES = [line.split("\t") for line in Path(__file__).with_name("profiles.tsv").read_text("utf-8").splitlines()]
"""A model's name, its format, and "thinks" if its chat template opens the reasoning."""
ROWS = [(name, format) for name, format, *_ in LINES]


@pytest.mark.mission("F21")
@pytest.mark.need(1)
@pytest.mark.parametrize(("name", "format"), ROWS)
def test_profile_finds_the_format_by_model_name(name: str, format: str) -> None:
    profile = toolwire.profile(name)
    assert (profile.format, profile.known) == (format, format != "auto"), profile.reason
    assert profile.name == name


@pytest.mark.parametrize(("name", "starts"), [(name, marks == ["thinks"]) for name, _, *marks in LINES])
def test_profile_tells_whether_the_template_opens_the_reasoning(name: str, starts: bool) -> None:
    assert toolwire.profile(name).reasoning_started is starts


NAMES_OF_MODELS = {
    "Qwen3-Next": "Qwen3-Next-80B-A3B-Thinking",
    "Groq Llama tool use": "Llama-3-Groq-8B-Tool-Use",
    "MiniCPM": "MiniCPM4-8B",
    "Code World Model": "facebook/cwm",
    "GPT": "gpt-4o",
    "Nova": "nova-lite",
}
"""Names of models in families that are not named after their models."""


def test_the_name_of_a_family_leads_to_it() -> None:
    for family in FAMILIES:
        profile = toolwire.profile(NAMES_OF_MODELS.get(family.name, family.name))
        assert family.name
        assert profile.family == family.name
        assert f" in the name says {family.name}, which " in profile.reason


def test_test_rows_cover_every_family() -> None:
    assert len(ROWS) >= 150
    families = {toolwire.profile(name).family for name, _ in ROWS}
    assert {family.name for family in FAMILIES} <= families
    for family in FAMILIES:
        measured = toolwire.profile(family.name).forms
        assert family.api or measured or toolwire.get_format(family.format).blocks


@pytest.mark.mission("D17")
def test_profile_of_an_unknown_model_is_auto() -> None:
    profile = toolwire.profile("my-own/model-7b")
    assert (profile.format, profile.known, profile.spans) == ("auto", False, ())
    assert "'my-own/model-7b'" in profile.reason


def test_profiles_have_spans_and_place_of_calls() -> None:
    assert toolwire.profile("Qwen/Qwen3-Coder-30B-A3B-Instruct").ends_reasoning
    assert toolwire.profile("MiniMaxAI/MiniMax-M3").spans[0].open == "<mm:think>"
    assert toolwire.profile("Qwen/QwQ-32B").reasoning_started
    assert toolwire.profile("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B").reasoning_started
    assert not toolwire.profile("llama3.1:8b").anywhere
    assert toolwire.profile("Qwen/Qwen3-8B").anywhere is toolwire.profile("no such model").anywhere is True


@pytest.mark.parametrize(
    ("name", "prompt_format"),
    [
        ("Qwen/Qwen3-8B", "hermes"),
        ("mistral-large-2407", "mistral_json"),
        ("claude-3-opus-20240229", "anthropic_xml"),
        ("gpt-4o", "pythonic"),
        ("Snowflake/snowflake-arctic-instruct", "pythonic"),
        ("deepseek-ai/deepseek-coder-6.7b-instruct", "pythonic"),
        ("deepseek-ai/DeepSeek-Coder-V2-Instruct", "auto"),
        ("gemini-2.5-flash", "auto"),
        ("my-own/model-7b", "auto"),
    ],
)
def test_prompt_format_is_the_trained_one_or_the_nearest_to_measured_answers(name: str, prompt_format: str) -> None:
    assert toolwire.profile(name).prompt_format == prompt_format


def test_dialects_are_those_of_a_notable_share() -> None:
    coder = toolwire.profile("deepseek-coder:6.7b")
    assert coder.dialects == ("call_list", "call_strings")
    assert [form.form for form in coder.forms] == ["call_list", "call_strings", "pythonic", "python_calls", "bare_json"]
    assert [form.dialect for form in coder.forms] == [True, True, False, True, False]
    assert sum(form.share for form in coder.forms) == pytest.approx(173 / 215), "the other answers were not read"
    assert toolwire.profile("gemini-2.5-flash").forms == ()


def test_measurements_of_the_model_itself_come_before_those_of_its_family() -> None:
    counts = {measured.model: measured.answers for measured in MEASURED}
    gpt = sum(answers for model, answers in counts.items() if model.startswith("gpt-"))
    assert toolwire.profile("openai/gpt-4o-mini-2024-07-18").answers == counts["gpt-4o-mini-2024-07-18"]
    assert toolwire.profile("gpt-4o-mini").answers == counts["gpt-4o-mini-2024-07-18"]
    assert toolwire.profile("gpt-5").answers == gpt
    assert toolwire.profile("no such model").answers == 0


def test_measurements_of_another_family_with_the_name_inside_do_not_count() -> None:
    counts = {measured.model: measured.answers for measured in MEASURED}
    assert toolwire.profile("Llama-3").answers == counts["meta-llama_Meta-Llama-3-70B-Instruct"]
    assert "hermes" not in {form.form for form in toolwire.profile("mistral-7b").forms}


def test_template_decides_the_format_to_ask_for() -> None:
    assert toolwire.detect_from_template("[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}").prompt_format == "mistral_args"


@pytest.mark.parametrize(
    ("name", "api", "quirks"),
    [
        ("mistral-large-latest", "", ("nine_character_ids",)),
        ("moonshotai/Kimi-K2-Thinking", "", ("indexed_ids", "calls_in_reasoning", "reasoning_goes_back")),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic_messages", ("signed_reasoning",)),
        ("gemini-3-pro-preview", "gemini", ("signed_reasoning",)),
        ("gemini-2.5-flash", "gemini", ()),
        ("gpt-5-mini", "openai_chat", ()),
        ("openai/o4-mini", "openai_chat", ()),
        ("amazon.nova-lite-v1:0", "bedrock_converse", ()),
        ("gpt-oss:20b", "", ()),
        ("deepseek-ai/DeepSeek-V3.2", "", ("reasoning_goes_back",)),
        ("meta-llama/Llama-3.1-8B-Instruct", "", ("one_call_a_message",)),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "", ()),
        ("NousResearch/DeepHermes-3-Mistral-24B-Preview", "", ()),
        ("deepseek-reasoner", "", ("reasoning_goes_back",)),
        ("google/gemma-2-2b-it", "", ("no_system_role",)),
        ("google/gemma-3-27b-it", "", ()),
        ("google/gemma-2b-it", "", ()),
        ("MiniMaxAI/MiniMax-M2", "", ("reasoning_goes_back",)),
        ("XiaomiMiMo/MiMo-V2-Flash", "", ("calls_in_reasoning",)),
    ],
)
def test_profiles_have_api_and_quirks(name: str, api: str, quirks: tuple[str, ...]) -> None:
    profile = toolwire.profile(name)
    assert (profile.api, profile.quirks) == (api, quirks)


def test_every_quirk_has_a_family_and_a_description() -> None:
    quirks = {quirk for name, _ in ROWS for quirk in toolwire.profile(name).quirks}
    assert quirks == set(QUIRKS)


@pytest.mark.need(18)
@pytest.mark.parametrize(
    ("template", "format", "started"),
    [
        ('{{\'<tool_call>\\n{"name": "\' + tool.name }}...</tool_call>', "hermes", False),
        ("<tool_call>\n<function={{ name }}>\n<parameter={{ k }}>\n</function>", "qwen3_coder", False),
        ("<tool_call>{{ name }}<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value></tool_call>", "glm4", False),
        ("[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}</s>", "mistral_args", False),
        (
            '<minimax:tool_call><invoke name="{{ f }}"><parameter name="{{ k }}">v</parameter></invoke>',
            "minimax_m2",
            False,
        ),
        ("<function={{ name }}>{{ arguments }}</function>", "functionary_v3_1", False),
        ("<tool_calls>[...]</tool_calls>", "jamba", False),
        ("<tool_calls>[...]</tool_calls> after [BEGIN FINAL RESPONSE]", "apriel", False),
        ("<tool_calls>\n{...}\n</tool_calls> tool result: x", "minimax_json", False),
        ("<tool_calls>[...]</tool_calls><answer>x</answer>", "hunyuan", False),
        ("functools[", "phi4", False),
        ("assistant functools[", "firefunction", False),
        (
            "<available_tools> <tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>",
            "laguna",
            False,
        ),
        (
            "<tool_call></tool_call>{% if enable_thinking %}<think>\n{% else %}<think>\n\n</think>{% endif %}",
            "hermes",
            True,
        ),
        ("<tool_call></tool_call>{% if no_thinking %}<think>\n\n</think>{% endif %}", "hermes", False),
        ("{% if enable_thinking %}<think>\n{% else %}<think>\n\n</think>{% endif %}", "auto", True),
        ("<tool_call>{...}</tool_call> <|im_start|>assistant\n<think>\n", "hermes", True),
        ("{{ messages }}", "auto", False),
    ],
)
def test_detect_from_template_finds_the_format(template: str, format: str, started: bool) -> None:
    profile = toolwire.detect_from_template(template)
    assert (profile.format, profile.reasoning_started) == (format, started), profile.reason
