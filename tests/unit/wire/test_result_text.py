"""Results as text, and result markers in the text of a model."""

import pytest

import toolwire
from toolwire import ToolResult
from toolwire.wire.formats import FORMATS
from toolwire.wire.result_text import BREAK, inert, unframed
from toolwire.wire.syntax import WireFormat

RESULTS = [ToolResult("call_1", "weather", "Rain, 12"), ToolResult("call_2", "weather", "Sun")]


@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.name)
def test_result_markers_that_a_model_writes_are_removed(wire: WireFormat) -> None:
    for count in (1, 2):
        content = toolwire.parse(toolwire.render_results(RESULTS[:count], format=wire), format=wire).content
        assert unframed(wire, content).split() == ["Rain,", "12", *["Sun"] * (count - 1)]


@pytest.mark.parametrize(
    ("format", "text", "left"),
    [
        ("hermes", "so </tool_response> it is", "so  it is"),
        ("glimmer", '<tool_output name="f">x</tool_output>', "x"),
        ("mistral_args", "[TOOL_RESULTS]5[/TOOL_RESULTS] [1]", "5 [1]"),
        ("gemma_tool_code", "```python\nx\n```", "```python\nx\n```"),
        ("gemma_tool_code", "```tool_output\n5\n```\n```python\nx\n```", "5\n\n```python\nx\n```"),
        ("minimax_json", "The tool result: 5", "The tool result: 5"),
        ("kimi_k2", "## Return of the king", "## Return of the king"),
        ("firefunction", "text", "text"),
        ("forge_xml", "so </TOOL_RESULT> it is", "so  it is"),
        ("hermes", "so </TOOL_RESPONSE> it is", "so </TOOL_RESPONSE> it is"),
    ],
)
def test_only_whole_markers_are_removed(format: str, text: str, left: str) -> None:
    assert unframed(toolwire.get_format(format), text).strip() == left


def test_a_marker_is_found_without_the_longest_markup_that_the_reader_drops() -> None:
    wire = WireFormat("own", drop=("<|a|>", "<|a|>user "), result=("<|a|>user Result: ", ""))
    assert unframed(wire, "Result: 5") == " 5"


def test_a_name_that_looks_like_a_placeholder_is_kept() -> None:
    text = toolwire.render_results([ToolResult("ID", "{id}", "x")], format="solar_open")
    assert text.startswith("<|tool_response:begin|>ID<|tool_response:name|>{id}<|")


NAMED = [wire for wire in FORMATS if wire.name in ("hermes", "pythonic", "harmony", "react")]


@pytest.mark.parametrize("wire", NAMED, ids=lambda wire: wire.name)
@pytest.mark.parametrize(
    "token",
    [
        "<|im_start|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|start_header_id|>",
        "<|begin_of_text|>",
        "<|reserved_special_token_0|>",
        "[INST]",
        "[/INST]",
        "[SYSTEM_PROMPT]",
        "[AVAILABLE_TOOLS]",
        "<<SYS>>",
        "<</SYS>>",
        "<s>",
        "</s>",
        "<bos>",
        "<start_of_turn>",
        "<end_of_turn>",
        "<|turn>",
        "<turn|>",
        "<｜User｜>",
        "<｜Assistant｜>",
        "<｜begin▁of▁sentence｜>",
        "<|START_OF_TURN_TOKEN|>",
        "<|CHATBOT_TOKEN|>",
        "<BOS_TOKEN>",
        "]~b]",
        "]~!b[",
        "[e~[",
        "[gMASK]",
        "<|fim_prefix|>",
        "<fim_prefix>",
        "<|channel|>",
        "<|im:start|>",
        "<unused94>",
    ],
)
def test_control_tokens_of_chat_templates_are_broken(wire: WireFormat, token: str) -> None:
    text = inert(wire, f"before {token} {token}user\nafter")
    assert token not in text
    assert text.replace(BREAK, "") == f"before {token} {token}user\nafter"
    assert f"{token[0]}{BREAK}{token[1:]}" in text


@pytest.mark.parametrize("wire", NAMED, ids=lambda wire: wire.name)
@pytest.mark.parametrize(
    "text",
    [
        '{"name": "f", "arguments": {"a": [1, 2]}, "type": "function"}',
        '<!doctype html><html lang="en"><p class="x">a <b>b</b><br/></p></html>',
        "def f(x: list[int]) -> dict[str, int]:\n    return {x[0]: 1 << 2} if x else {}\n",
        "import functools\n\n@functools.cache\ndef f(): ...",
        "if (a < b || c |> d) { return a<|>b; }",
        "[INFO] 12:00 [ERROR] [x](https://example.org) [1] <a@example.org>",
        "```python\nprint(1)\n```\n\n```json\n[]\n```",
        "Here is my response: no.",
    ],
)
def test_ordinary_text_stays_as_it_is(wire: WireFormat, text: str) -> None:
    assert inert(wire, text) == text


@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.name)
def test_markers_of_other_formats_are_broken_in_any_case(wire: WireFormat) -> None:
    for marker in (
        "<tool_call>",
        "[TOOL_CALLS]",
        "<function=",
        "<｜DSML｜invoke ",
        "<TOOL>",
        "<|python_tag|>",
        "<think>",
    ):
        assert marker not in inert(wire, f"x {marker}{marker}{{}}")


def test_long_text_is_made_inert_in_linear_time() -> None:
    for piece in ("<", "<|", "<|im_start|", "[", "<tool_call", "]~", "<｜"):
        text = piece * 200_000
        assert inert(NAMED[0], text) == text
