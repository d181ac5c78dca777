"""transformers: its own reader of response templates, and tokenizers of checkpoints."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import toolwire
from toolwire import DefinitionError, ToolCall
from toolwire.integrations import parse_response, tokenizer_format
from toolwire.wire import FORMATS, response_template

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}
CALLS = [ToolCall("get_weather", {"city": "Paris", "days": 3}), ToolCall("get_weather", {"city": "Rome"})]
TEXT = '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>'


def test_transformers_reads_rendered_calls_by_the_templates_that_are_written() -> None:
    parsing = pytest.importorskip("transformers.utils.chat_parsing", reason="needs scripts/test-frameworks")
    complete = []
    for wire in FORMATS:
        try:
            template = response_template(wire)
        except DefinitionError:
            continue
        text = "Let me look.\n" + toolwire.render_calls(CALLS, format=wire, tools=[TOOL])
        try:
            message = parsing.parse_response(text, template, prefix=wire.primed, tools=[TOOL])
        except ValueError:
            continue
        got = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())]
        if got == [(call.name, call.arguments) for call in CALLS]:
            assert "Let me look." in message.get("content", message), wire.name
            complete.append(wire.name)
    assert len(complete) >= 50
    assert {"hermes", "qwen3_coder", "glm4", "gemma4", "kimi_k2", "deepseek_v3_1", "mistral_args"} <= set(complete)


@pytest.fixture
def tokenizer() -> Any:
    """A real tokenizer, with markers of calls as special tokens."""
    tokenizers = pytest.importorskip("tokenizers", reason="needs scripts/test-frameworks")
    transformers = pytest.importorskip("transformers", reason="needs scripts/test-frameworks")
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    markers = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
    trainer = tokenizers.trainers.BpeTrainer(initial_alphabet=alphabet, special_tokens=markers, show_progress=False)
    model.train_from_iterator([], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, extra_special_tokens=markers)


def test_tokens_of_a_checkpoint_are_read_by_its_response_template(tokenizer: Any) -> None:
    tokenizer.response_template = response_template("hermes")
    assert tokenizer_format(tokenizer).name == "checkpoint"
    ids = tokenizer(f"Rome.</think>{TEXT}").input_ids
    prompt = tokenizer("Weather?<think>").input_ids
    response = parse_response(tokenizer, ids, prompt=prompt, tools=[TOOL])
    assert [call.arguments for call in response.tool_calls] == [{"city": "Rome"}] and response.reasoning == "Rome."
    theirs = tokenizer.parse_response(ids, prefix=prompt)
    assert theirs["tool_calls"][0]["function"]["arguments"] == {"city": "Rome"} and theirs["thinking"] == "Rome."


def test_the_chat_template_names_a_known_format_first() -> None:
    template = "{{ tools }}<tool_call>{{ call }}</tool_call><tool_response>{{ result }}</tool_response>"
    both = SimpleNamespace(chat_template=template, response_template=response_template("glm4"))
    assert tokenizer_format(both).name == "hermes"
    kimi = "<|tool_calls_section_begin|><|tool_call_begin|><|tool_call_argument_begin|><|tool_call_end|>"
    kimi += "<|tool_calls_section_end|>"
    assert tokenizer_format(SimpleNamespace(chat_template=kimi)).name == "kimi_k2"
    for templates in ({"rag": "", "default": template}, {"default": kimi, "tool_use": template}):
        assert tokenizer_format(SimpleNamespace(chat_template=templates)).name == "hermes"
    assert parse_response(both, TEXT).tool_calls[0].arguments == {"city": "Rome"}
    assert parse_response(both, TEXT, format="plain").tool_calls == ()


class Letters:
    """A tokenizer whose tokens are code points."""

    all_special_tokens: tuple[str, ...] = ()

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        assert all(type(id) is int for id in ids) and not skip_special_tokens
        return "".join(map(chr, ids))


class Number:
    """A number of an array."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


def test_tokens_may_be_an_array_or_its_numbers() -> None:
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome", "days": "3"}}</tool_call>'
    ids = [ord(character) for character in text]
    for tokens in (ids, tuple(ids), SimpleNamespace(tolist=lambda: ids), [Number(id) for id in ids]):
        response = parse_response(Letters(), tokens, format="hermes", tools=[TOOL])  # type: ignore[arg-type]
        assert [call.arguments for call in response.tool_calls] == [{"city": "Rome", "days": 3}]
    assert parse_response(Letters(), [], format="hermes").content == ""


@pytest.mark.parametrize("end", ["<|user|>", "<|observation|>\n", "<|user|><|endoftext|><|endoftext|>", ""])
def test_the_tokens_that_end_an_answer_are_not_content(end: str) -> None:
    tokenizer = Letters()
    tokenizer.all_special_tokens = ("<|user|>", "<|observation|>", "<|endoftext|>", "</tool_call>")
    call = toolwire.render_calls(CALLS[:1], format="glm4", tools=[TOOL])
    response = parse_response(tokenizer, f"A <|user|> looks.\n{call}{end}", format="glm4", tools=[TOOL])
    assert response.content.strip() == "A <|user|> looks." and response.tool_calls[0].repairs == ()
    assert parse_response(tokenizer, f"It rains. {end}", format="glm4").content == "It rains. "
    assert parse_response(tokenizer, f"It rains.{end}", format="glm4", prompt="<think>").reasoning == "It rains."


def test_a_tokenizer_that_says_nothing_is_an_error() -> None:
    for template in (None, "a template"):
        with pytest.raises(DefinitionError, match="no response_template, and no known format's markers"):
            tokenizer_format(SimpleNamespace(chat_template=None, response_template=template))


@pytest.mark.parametrize("tokens", [[[1, 2]], 5, None, [1.0], SimpleNamespace(tolist=lambda: [[1]])])
def test_what_is_not_the_tokens_of_one_answer_is_an_error(tokens: Any) -> None:
    with pytest.raises(TypeError, match="text, or the token ids of one answer"):
        parse_response(Letters(), tokens, format="hermes")
