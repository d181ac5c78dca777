"""The ways in which an answer is read: by the parser at three levels, and by a naive reader as a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from toolwire.evaluation.naive_reader import naive_calls
from toolwire.messages import FinishReason, ParsedResponse
from toolwire.tools import ToolDefinition
from toolwire.wire.fallback import FallbackLevel
from toolwire.wire.stream_parser import parse

Reading = Literal["strict", "whole_message", "embedded", "naive"]
READINGS: Final[Sequence[Reading]] = ("strict", "whole_message", "embedded", "naive")
DEFAULT_READING: Final[Reading] = "whole_message"
"""The reading of agents and of the gateway."""
_LEVELS: Final[Mapping[Reading, FallbackLevel]] = {
    "strict": "none",
    "whole_message": "whole_message",
    "embedded": "embedded",
}


def problem_kinds(response: ParsedResponse) -> tuple[str, ...]:
    """Return the kinds of the parts of an answer that could not be read."""
    return (*(problem.kind for problem in response.problems), *("incomplete" for _ in response.incomplete))


def read_answer(text: str, format: str, tools: Sequence[ToolDefinition], reading: Reading) -> ParsedResponse:
    """Return an answer as it is read.

    Args:
        text: the text of the model.
        format: the wire format that the model was asked to write.
        tools: the tools that it was offered.
        reading: "strict": only calls between the markers of the format; "whole_message": also a message that is
            nothing but calls without markers; "embedded": also such calls amid prose; "naive": the baseline.
    """
    if reading == "naive":
        calls = naive_calls(text, format, tools)
        return ParsedResponse(
            content="" if calls else text,
            tool_calls=calls,
            finish_reason=FinishReason.TOOL_CALLS if calls else FinishReason.STOP,
            parts=calls,
        )
    return parse(text, format=format, tools=tools, fallback=_LEVELS[reading])
