"""The plug-in for SGLang, with stand-ins of SGLang's classes."""

from __future__ import annotations

import importlib
import json
import tomllib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.integrations.engine_stand_ins import ROOT, SglangFunction, SglangTool, sglang_modules

import toolwire
from toolwire.wire.formats import FORMATS

TOOLS = [
    SglangTool(function=SglangFunction(name="get_time")),
    SglangTool(
        function=SglangFunction(
            name="get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}}
        )
    ),
]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
UNKNOWN = '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>'
TEXT = f"Let me look.\n{UNKNOWN}\n{CALL}\n{CALL}\n"


@pytest.fixture(autouse=True)
def sglang() -> Iterator[None]:
    with sglang_modules():
        yield


def detector(format: str = "hermes") -> Any:
    return importlib.import_module("toolwire_sglang.detector").detector_class(format)()


def stream(reader: Any, text: str, size: int, tools: Any = TOOLS) -> tuple[str, list[Any]]:
    results = [reader.parse_streaming_increment(text[at : at + size], tools) for at in range(0, len(text), size)]
    results.append(reader.finish(tools))
    return "".join(result.normal_text for result in results), [call for result in results for call in result.calls]


def test_the_entry_point_adds_a_detector_for_every_name() -> None:
    project = tomllib.loads((ROOT / "integrations/sglang/pyproject.toml").read_text("utf-8"))["project"]
    module, function = project["entry-points"]["sglang.srt.plugins"]["toolwire"].split(":")
    getattr(importlib.import_module(module), function)()
    parser = importlib.import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
    table = parser.ToolCallParserEnum
    assert table["toolwire"].format == "auto"
    assert {f"toolwire:{wire.name}" for wire in FORMATS} <= table.keys()
    assert table["toolwire:qwen25"].format == "hermes"


def test_a_whole_message() -> None:
    result = detector().detect_and_parse(TEXT, TOOLS)
    assert result.normal_text == "Let me look.\n"
    assert [(call.tool_index, call.name, json.loads(call.parameters)) for call in result.calls] == [
        (1, "get_weather", {"city": "Paris"})
    ] * 2


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_stream_counts_the_calls_that_it_passes_on(size: int) -> None:
    reader = detector()
    content, calls = stream(reader, TEXT, size)
    assert content == "Let me look.\n"
    assert [(call.tool_index, call.name) for call in calls if call.name] == [(0, "get_weather"), (1, "get_weather")]
    for place in (0, 1):
        text = "".join(call.parameters for call in calls if call.tool_index == place)
        assert json.loads(text) == {"city": "Paris"}
        assert reader.streamed_args_for_tool[place] == text
    for call in calls:  # the server sends a name before any arguments
        assert (call.name is None) == bool(call.parameters)
    assert reader.prev_tool_call_arr == [{"name": "get_weather", "arguments": {"city": "Paris"}}] * 2
    assert reader.current_tool_id == 1


def test_the_server_adds_nothing_to_the_arguments_of_an_aborted_answer() -> None:
    reader = detector()
    for character in TEXT:
        reader.parse_streaming_increment(character, TOOLS)
        for call, streamed in zip(reader.prev_tool_call_arr, reader.streamed_args_for_tool, strict=True):
            arguments = call["arguments"]
            expected = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            assert not expected.startswith(streamed) or expected == streamed


def test_unknown_tools_are_kept_if_the_server_says_so() -> None:
    importlib.import_module("sglang.srt.environ").envs.SGLANG_FORWARD_UNKNOWN_TOOLS.on = True
    result = detector().detect_and_parse(TEXT, TOOLS)
    assert [(call.tool_index, call.name) for call in result.calls] == [
        (-1, "other"),
        (1, "get_weather"),
        (1, "get_weather"),
    ]
    assert next(call.name for call in stream(detector(), TEXT, 3)[1] if call.name) == "other"


def test_reasoning_stays_in_the_text() -> None:
    assert detector().detect_and_parse("<think>a</think>b", TOOLS).normal_text == "<think>a</think>b"
    assert stream(detector(), "<think>a</think>b", 3)[0] == "<think>a</think>b"


def test_text_is_held_back_until_the_end() -> None:
    reader = detector()
    assert reader.parse_streaming_increment("a <tool_", TOOLS).normal_text == "a "
    assert reader.finish(TOOLS).normal_text == "<tool_"
    assert detector().finish(TOOLS).normal_text == ""


def test_calls_are_constrained_in_their_own_format(caplog: pytest.LogCaptureFixture) -> None:
    reader = detector()
    named = SimpleNamespace(function=SimpleNamespace(name="get_weather"))
    required, of_one_tool = (reader.get_structural_tag(TOOLS, choice) for choice in ("required", named))
    for tag in (required, of_one_tool):
        assert tag.type == "structural_tag" and "<tool_call>" in json.dumps(tag.format)
    assert required.format != of_one_tool.format
    assert reader.supports_structural_tag()
    assert not detector("auto").supports_structural_tag()
    assert detector("auto").get_structural_tag(TOOLS, "required") is None
    assert caplog.text == ""
    for options in ({"parallel_tool_calls": False}, {"thinking_mode": True}):
        assert reader.get_structural_tag(TOOLS, "required", **options).format != required.format


def test_without_a_grammar_calls_are_read_in_the_format_that_the_prompt_asks_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader = detector()
    tool = SglangTool(function=SglangFunction(name="f", parameters={"not": {}}))
    assert reader.get_structural_tag([tool], "required") is None
    assert not reader.supports_structural_tag() and reader.parses_required_natively()
    assert not detector("auto").parses_required_natively()  # the server asks for JSON, and reads it
    assert "calls are not constrained" in caplog.text
    with pytest.raises(NotImplementedError, match="get_structural_tag"):
        reader.structure_info()("f")


@pytest.mark.parametrize("wire", [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.blocks])
def test_every_format_is_read(wire: Any) -> None:
    call = toolwire.ToolCall("get_weather", {"city": "Paris"})
    text = toolwire.render_calls([call], format=wire, tools=TOOLS)
    assert detector(wire.name).has_tool_call(text)
    (read,) = detector(wire.name).detect_and_parse(text, TOOLS).calls
    assert (read.tool_index, read.name, json.loads(read.parameters)) == (1, "get_weather", {"city": "Paris"})
    calls = stream(detector(wire.name), text, 1)[1]
    assert json.loads("".join(call.parameters for call in calls)) == {"city": "Paris"}


def test_plain_text_has_no_call() -> None:
    for format in ("hermes", "qwen3_coder", "kimi_k2", "mistral_args"):
        assert not detector(format).has_tool_call("Hello, world.")
    assert not detector("auto").has_tool_call("")


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("city", ['{"city": "Paris"}', '{"city": "Pa', ""])
def test_a_call_that_is_cut_off_is_not_a_good_one(city: str, size: int) -> None:
    """The arguments may be whole and the call not; frameworks also complete the JSON of others."""
    text = f'<tool_call>\n{{"name": "get_weather", "arguments": {city}'
    assert detector().detect_and_parse(text, TOOLS).calls == []
    reader = detector()
    sent = "".join(call.parameters for call in stream(reader, text, size)[1])
    assert sent.startswith(city)
    for completed in (sent, sent + "}", sent + '"}'):
        with pytest.raises(json.JSONDecodeError):
            json.loads(completed)
    assert reader.streamed_args_for_tool == [sent]
