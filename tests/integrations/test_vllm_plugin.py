"""The plug-in for vLLM, with stand-ins of vLLM's classes; `integrations/vllm/run_engine_tests.py` runs vLLM's tests."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.integrations.engine_stand_ins import ROOT, vllm_modules

import toolwire
from toolwire.wire.formats import FORMATS

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TEXT = f"Let me look.\n{CALL}\n{CALL}\n"


class Tokenizer:
    """A tokenizer whose tokens are characters."""

    eos_token_id = 0

    def encode(self, text: str, **options: Any) -> list[int]:
        return [ord(character) for character in text]

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        return "".join(map(chr, ids))


@pytest.fixture(autouse=True)
def vllm() -> Iterator[None]:
    with vllm_modules():
        yield


def request(**members: Any) -> Any:
    defaults = {
        "tools": [TOOL],
        "tool_choice": "auto",
        "parallel_tool_calls": None,
        "structured_outputs": None,
        "response_format": None,
        "skip_special_tokens": True,
    }
    return SimpleNamespace(**{**defaults, **members})


def tool_parser(format: str = "hermes", tools: Any = (TOOL,)) -> Any:
    return importlib.import_module("toolwire_vllm.tool_parser").parser_class(format)(Tokenizer(), tools)


def stream(parser: Any, text: str, size: int, **members: Any) -> list[Any]:
    asked = request(**members)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    deltas = [parser.extract_tool_calls_streaming("", piece, piece, [], [], [], asked) for piece in pieces]
    return [delta for delta in (*deltas, parser.finish_streaming()) if delta is not None]


def test_the_entry_point_registers_a_parser_for_every_name() -> None:
    project = tomllib.loads((ROOT / "integrations/vllm/pyproject.toml").read_text("utf-8"))["project"]
    module, function = project["entry-points"]["vllm.general_plugins"]["toolwire"].split(":")
    getattr(importlib.import_module(module), function)()
    managers = (
        importlib.import_module("vllm.tool_parsers").ToolParserManager,
        importlib.import_module("vllm.reasoning").ReasoningParserManager,
    )
    for manager in managers:
        names = manager.lazy_parsers
        assert names["toolwire"][1] == "auto"
        assert {f"toolwire:{wire.name}" for wire in FORMATS} <= names.keys()
        assert names["toolwire:qwen25"][1] == "hermes"
        for path, class_name in {(path, name) for path, name in names.values()}:
            assert getattr(importlib.import_module(path), class_name).format == class_name


def test_the_plug_in_file_registers_too() -> None:
    importlib.import_module("toolwire_vllm.plugin")
    assert "toolwire" in importlib.import_module("vllm.tool_parsers").ToolParserManager.lazy_parsers


def test_a_module_has_no_class_of_a_format_that_does_not_exist() -> None:
    module = importlib.import_module("toolwire_vllm.tool_parser")
    assert not hasattr(module, "hermez")


def test_a_whole_message() -> None:
    extracted = tool_parser().extract_tool_calls(TEXT, request())
    assert extracted.tools_called
    assert extracted.content == "Let me look.\n"
    assert [call.function.name for call in extracted.tool_calls] == ["get_weather"] * 2
    assert json.loads(extracted.tool_calls[0].function.arguments) == {"city": "Paris"}


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_stream_has_the_calls_of_the_whole_message(size: int) -> None:
    parser = tool_parser()
    deltas = stream(parser, TEXT, size)
    arguments: dict[int, str] = {}
    names: list[str] = []
    for delta in deltas:
        for call in delta.tool_calls:
            assert (call.id is None) == (call.function.name is None) == (call.type is None)
            if call.function.name:
                assert call.index == len(names)
                names.append(call.function.name)
            arguments[call.index] = arguments.get(call.index, "") + (call.function.arguments or "")
    assert names == ["get_weather"] * 2
    assert [json.loads(text) for text in arguments.values()] == [{"city": "Paris"}] * 2
    assert "".join(delta.content or "" for delta in deltas) == "Let me look.\n"
    assert parser.streamed_args_for_tool == [*arguments.values()]
    assert parser.prev_tool_call_arr == [{"name": "get_weather", "arguments": {"city": "Paris"}}] * 2
    assert parser.get_remaining_unstreamed_args() == ""


def test_the_name_is_sent_before_the_arguments_are_complete() -> None:
    *first, _ = stream(tool_parser(), '<tool_call>{"name": "get_weather", "arguments": {"city": "Pa', 1)
    assert first[0].tool_calls[0].function.name == "get_weather"
    assert "".join(delta.tool_calls[0].function.arguments for delta in first) == '{"city": "Pa'


def sent_arguments(deltas: list[Any]) -> str:
    return "".join(call.function.arguments for delta in deltas if delta for call in delta.tool_calls)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("city", ['{"city": "Paris"}', '{"city": "Pa', ""])
def test_a_call_that_is_cut_off_is_not_a_good_one(city: str, size: int) -> None:
    """The arguments may be whole and the call not; frameworks also complete the JSON of others."""
    text = f'<tool_call>\n{{"name": "get_weather", "arguments": {city}'
    assert not tool_parser().extract_tool_calls(text, request()).tools_called
    parser, unified = tool_parser(), unified_parser()
    sent = sent_arguments(stream(parser, text, size))
    assert sent.startswith(city)
    for completed in (sent, sent + "}", sent + '"}'):
        with pytest.raises(json.JSONDecodeError):
            json.loads(completed)
    assert parser.streamed_args_for_tool == [sent]
    assert sent_arguments([unified.parse_delta(text, [], request(), finished=True)]) == sent


def test_content_that_is_not_a_call_is_unchanged() -> None:
    for text in (" \n", "\n a < b\n", "<think>hm</think>\n"):
        assert "".join(delta.content or "" for delta in stream(tool_parser(), text, 1)) == text
        assert tool_parser().extract_tool_calls(text, request()).content == text


def test_held_back_text_comes_with_the_end() -> None:
    assert stream(tool_parser(), "a <tool_", 1)[-1].content == "<tool_"


def test_a_parser_that_is_used_again_begins_anew() -> None:
    parser = tool_parser()
    for _ in range(2):
        for previous, piece in (("", "a"), ("a", CALL)):
            delta = parser.extract_tool_calls_streaming(previous, previous + piece, piece, [], [], [], request())
        assert delta.tool_calls[0].index == 0
    for piece in (CALL[:30], CALL[30:]):  # the texts before may stay empty
        delta = parser.extract_tool_calls_streaming("", piece, piece, [], [], [], request())
    assert delta.tool_calls[0].index == 0 and delta.content is None


def test_tools_of_the_server_count_where_a_request_has_none() -> None:
    typed = {"name": "set_time", "parameters": {"type": "object", "properties": {"hour": {"type": "integer"}}}}
    text = '<tool_call>{"name": "set_time", "arguments": {"hour": "7"}}</tool_call>'
    tools = [{"type": "function", "function": typed}]
    (call,) = tool_parser(tools=tools).extract_tool_calls(text, request(tools=None)).tool_calls
    assert json.loads(call.function.arguments) == {"hour": 7}
    (function,) = unified_parser(tools=tools).parse(text, request(tools=None, tool_choice="none"))[2]
    assert json.loads(function.arguments) == {"hour": 7}  # a request without tools has this choice too


def test_ids_differ_between_requests() -> None:
    ids = {tool_parser().extract_tool_calls(CALL, request()).tool_calls[0].id for _ in range(3)}
    assert len(ids) == 3
    assert len({unified_parser().parse(CALL, request())[2][0].id for _ in range(3)}) == 3


def test_ids_of_mistral_are_short() -> None:
    text = '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}'
    extracted = tool_parser("mistral_args").extract_tool_calls(text, request())
    assert re.fullmatch("[a-zA-Z0-9]{9}", extracted.tool_calls[0].id)
    (delta,) = [delta for delta in stream(tool_parser("mistral_args"), text, 1000) if delta.tool_calls]
    assert re.fullmatch("[a-zA-Z0-9]{9}", delta.tool_calls[0].id)


def test_a_tool_that_cannot_be_used_does_not_disturb_the_others() -> None:
    tools = [TOOL, {"type": "web_search"}]
    assert tool_parser(tools=tools).extract_tool_calls(CALL, request(tools=tools)).tools_called


def test_special_tokens_stay_in_the_text_if_there_are_tools() -> None:
    assert tool_parser().adjust_request(request()).skip_special_tokens is False
    assert tool_parser().adjust_request(request(tools=None)).skip_special_tokens is True
    assert tool_parser().adjust_request(request(tool_choice="none")).skip_special_tokens is True


@pytest.mark.parametrize("choice", ["required", SimpleNamespace(function=SimpleNamespace(name="get_weather"))])
def test_required_calls_are_constrained_in_their_own_format(choice: Any) -> None:
    adjusted = tool_parser().adjust_request(request(tool_choice=choice, response_format={"type": "json_object"}))
    tag = json.loads(adjusted.structured_outputs.structural_tag)
    assert tag["type"] == "structural_tag" and "tool_call" in json.dumps(tag)
    assert adjusted.response_format is None
    assert not tool_parser().supports_required_and_named


def test_calls_are_constrained_if_a_tool_is_strict() -> None:
    strict = {"type": "function", "function": {**TOOL["function"], "strict": True}}
    assert tool_parser().adjust_request(request()).structured_outputs is None
    assert tool_parser().adjust_request(request(tools=[strict])).structured_outputs is not None
    kept = tool_parser().adjust_request(request(tools=[strict], response_format={"type": "json_object"}))
    assert kept.structured_outputs is None and kept.response_format is not None
    outputs = SimpleNamespace(structural_tag=None, regex="a+")
    assert (
        tool_parser().adjust_request(request(tools=[strict], structured_outputs=outputs)).structured_outputs is outputs
    )


def test_a_grammar_allows_as_many_calls_as_the_request() -> None:
    tags = []
    for parallel in (None, True, False):
        asked = request(tool_choice="required", parallel_tool_calls=parallel)
        del asked.response_format  # the Responses API has no such member
        adjusted = tool_parser().adjust_request(asked)
        tags.append(adjusted.structured_outputs.structural_tag)
        assert not hasattr(adjusted, "response_format")
    assert tags[0] == tags[1] != tags[2]


def test_another_structural_tag_is_kept() -> None:
    outputs = SimpleNamespace(structural_tag="{}")
    adjusted = tool_parser().adjust_request(request(tool_choice="required", structured_outputs=outputs))
    assert adjusted.structured_outputs is outputs


def test_a_grammar_that_cannot_be_written_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}
    adjusted = tool_parser().adjust_request(request(tools=[tool], tool_choice="required"))
    assert adjusted.structured_outputs is None
    assert "calls are not constrained" in caplog.text


def test_without_a_format_required_calls_are_json() -> None:
    # The server would read required calls of a stream from the joined text, which it does not join for this parser.
    assert not tool_parser("auto").supports_required_and_named
    adjusted = tool_parser("auto").adjust_request(request(tool_choice="required"))
    assert "get_weather" in adjusted.structured_outputs.structural_tag


# -- reasoning -----------------------------------------------------------------------------------------------------


def reasoning_parser(format: str = "hermes") -> Any:
    return importlib.import_module("toolwire_vllm.reasoning_parser").parser_class(format)(Tokenizer())


@pytest.mark.parametrize("prompt", ["", "<|im_start|>assistant\n<think>\n"])
def test_reasoning_of_a_whole_message(prompt: str) -> None:
    parser = reasoning_parser()
    parser.set_prompt_token_ids(Tokenizer().encode(prompt))
    text = "Hm.</think>\n" + CALL
    reasoning, content = parser.extract_reasoning(text if prompt else f"<think>{text}", request())
    assert (reasoning, content) == ("Hm.", "\n" + CALL)


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_reasoning_is_streamed_up_to_its_end(size: int) -> None:
    parser = reasoning_parser()
    text = f"<think>Hm.</think>\n{CALL}"
    deltas = []
    for at in range(0, len(text), size):
        deltas.append(parser.extract_reasoning_streaming("", "", text[at : at + size], [], [], []))
        if parser.has_engine_confirmed_reasoning_end():
            rest = text[at + size :]
            break
    deltas.append(parser.finish_streaming())
    assert "".join(delta.reasoning or "" for delta in deltas if delta) == "Hm."
    assert "".join(delta.content or "" for delta in deltas if delta) + rest == f"\n{CALL}"


def test_a_call_ends_reasoning_where_the_format_says_so() -> None:
    text = "Hm.<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"
    parser = reasoning_parser("qwen3_coder")
    parser.set_prompt_token_ids(Tokenizer().encode("<think>"))
    assert parser.extract_reasoning(text, request()) == ("Hm.", text[3:])


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("<think>\n\n</think>\n\n", True),
        ("<think>\n", False),
        ("hello", False),
        ("<think>a</think>b<think>c", False),
        ("<think>a</think>b\0<|im_start|>assistant\n", False),
        ("<think>a</think>b\0", True),
    ],
)
def test_the_end_of_reasoning_in_ids(text: str, ends: bool) -> None:
    assert reasoning_parser().is_reasoning_end(Tokenizer().encode(text)) is ends


def test_the_end_of_reasoning_in_a_step() -> None:
    parser, encode = reasoning_parser(), Tokenizer().encode
    assert parser.is_reasoning_end_streaming(encode("<think>a</think>"), encode(">"))
    assert not parser.is_reasoning_end_streaming(encode("<think>a</think> b"), encode(" b"))
    assert not parser.is_reasoning_end_streaming(encode("<think>a</thin"), encode("n"))
    assert not parser.is_reasoning_end_streaming(encode("<think>a</think>"), [])
    assert parser.extract_content_ids(encode("<think>a</think>bc")) == encode("bc")
    assert parser.extract_content_ids(encode("<think>a")) == []
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == ("<think>", "</think>")


def test_white_space_is_not_yet_the_end_of_reasoning() -> None:
    parser = reasoning_parser()
    confirmed = []
    for piece in ("<think>a</think>", "\n", "b", "\n"):
        parser.extract_reasoning_streaming("", "", piece, [], [], [])
        confirmed.append(parser.has_engine_confirmed_reasoning_end())
    assert confirmed == [False, False, True, True]


def test_the_end_of_a_long_prompt_opens_reasoning() -> None:
    parser = reasoning_parser()
    parser.set_prompt_token_ids(Tokenizer().encode(5000 * "a" + "<think>\n"))
    assert parser.extract_reasoning("Hm.</think>b", request()) == ("Hm.", "b")


def test_special_tokens_stay_in_the_text_for_reasoning_too() -> None:
    for parser in (reasoning_parser(), unified_parser()):
        assert parser.adjust_request(request(tools=None)).skip_special_tokens is False


def test_markers_that_are_ordinary_words_are_read_in_their_own_format_alone() -> None:
    prose = [(wire.name, span.close) for wire in FORMATS for span in wire.spans if span.prose]
    assert prose
    for name, closer in prose:
        assert reasoning_parser(name).is_reasoning_end(Tokenizer().encode(closer))
        assert not reasoning_parser("auto").is_reasoning_end(Tokenizer().encode(closer))


@pytest.mark.parametrize(
    ("prompt", "answer", "count"),
    [
        ("", "<think>ab</think>c", 2),
        ("", "<think>ab</think>c<think>def</think>g", 5),
        ("", "<think>ab", 2),
        ("", "ab</think>c", 2),
        ("", "abc", 0),
        ("", "<think></think>abc", 0),
        ("<think>", "ab</think>c<think", 2),
        ("<think>", "ab", 2),
        ("<think>", "", 0),
    ],
)
def test_tokens_of_reasoning_are_counted_without_its_markers(prompt: str, answer: str, count: int) -> None:
    for format in ("hermes", "auto"):
        parser = reasoning_parser(format)
        parser.set_prompt_token_ids(Tokenizer().encode(prompt))
        assert parser.count_reasoning_tokens(Tokenizer().encode(answer)) == count


# -- whole answers -------------------------------------------------------------------------------------------------


def unified_parser(**options: Any) -> Any:
    return importlib.import_module("toolwire_vllm.unified_parser").parser_class("hermes")(Tokenizer(), **options)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_whole_answer(size: int) -> None:
    answer = f"Hm.</think>\n{TEXT}"
    prompt = Tokenizer().encode("<think>")
    parser = unified_parser()
    parser.set_prompt_token_ids(prompt)
    reasoning, content, calls = parser.parse(answer, request())
    assert (reasoning, content, len(calls)) == ("Hm.", "\nLet me look.\n", 2)

    parser = unified_parser()
    deltas = [
        parser.parse_delta(answer[at : at + size], [], request(), prompt if not at else None, finished=False)
        for at in range(0, len(answer), size)
    ]
    deltas.append(parser.parse_delta("", [], request(), finished=True))
    deltas = [delta for delta in deltas if delta is not None]
    assert "".join(delta.reasoning or "" for delta in deltas) == reasoning
    assert "".join(delta.content or "" for delta in deltas) == content
    assert sum(call.id is not None for delta in deltas for call in delta.tool_calls) == 2


def test_reasoning_may_be_open_where_the_prompt_is_not_known() -> None:
    parser = unified_parser()
    opened = type("Opened", (type(parser),), {"starts_in_reasoning": True})(Tokenizer())
    opened.set_prompt_token_ids([])
    assert opened.parse("Hm.</think>b", request())[:2] == ("Hm.", "b")
    opened.set_prompt_token_ids(Tokenizer().encode("Hello"))
    assert opened.parse("b", request())[:2] == (None, "b")


def test_calls_are_left_out_if_none_are_wanted() -> None:
    asked = request(tool_choice="none")
    assert unified_parser().parse(CALL + "a", asked)[1:] == ("a", [])
    delta = unified_parser().parse_delta(CALL + "a", [], asked, finished=True)
    assert (delta.content, delta.tool_calls) == ("a", [])


@pytest.mark.parametrize("wire", [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.blocks])
def test_every_format_is_read(wire: Any) -> None:
    text = toolwire.render_calls([toolwire.ToolCall("get_weather", {"city": "Paris"})], format=wire, tools=[TOOL])
    extracted = tool_parser(wire.name).extract_tool_calls(text, request())
    assert [call.function.name for call in extracted.tool_calls] == ["get_weather"]
    deltas = stream(tool_parser(wire.name), text, 1)
    arguments = "".join(call.function.arguments or "" for delta in deltas for call in delta.tool_calls)
    assert json.loads(arguments) == json.loads(extracted.tool_calls[0].function.arguments) == {"city": "Paris"}
