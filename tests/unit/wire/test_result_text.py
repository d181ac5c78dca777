"""Results as text, and result markers in the text of a model."""

import pytest

import toolwire
from toolwire import ToolResult
from toolwire.wire.formats import FORMATS
from toolwire.wire.result_text import unframed
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
    ],
)
def test_only_whole_markers_are_removed(format: str, text: str, left: str) -> None:
    assert unframed(toolwire.get_format(format), text).strip() == left


def test_a_name_that_looks_like_a_placeholder_is_kept() -> None:
    text = toolwire.render_results([ToolResult("ID", "{id}", "x")], format="solar_open")
    assert text.startswith("<|tool_response:begin|>ID<|tool_response:name|>{id}<|")
