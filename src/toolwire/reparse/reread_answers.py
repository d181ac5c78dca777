"""Answers read again, and compared with the calls that were read before: a pure function of a batch of lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from toolwire.errors import DefinitionError
from toolwire.messages import ParsedResponse
from toolwire.providers.parsing import parse
from toolwire.reparse.answer_rows import AnswerRow, Calls, answer_row
from toolwire.text.json_text import equal_json
from toolwire.text.truncate import truncate
from toolwire.tools import ToolDefinition
from toolwire.wire.fallback import FallbackLevel
from toolwire.wire.format_registry import AUTO, register_formats
from toolwire.wire.stream_parser import ParseOptions
from toolwire.wire.syntax import WireFormat

RowClass = Literal["same", "none", "gained", "lost", "changed", "read", "broken"]
CLASSES: Final[dict[RowClass, str]] = {
    "same": "the same calls as before",
    "none": "no call, as before",
    "gained": "calls where there were none: the server or the earlier reading lost them",
    "lost": "no call where there were some",
    "changed": "other calls than before",
    "read": "calls, and the row does not say what was read before",
    "broken": "the row is not an answer",
}
DIFFERENT: Final[frozenset[RowClass]] = frozenset(("gained", "lost", "changed"))
SAMPLES: Final = 5
"""Number of rows of each model and class whose texts are stored."""
MAX_SAMPLE: Final = 4_000
"""Maximum length of such a text, in characters."""


@dataclass(frozen=True, slots=True)
class ReparseOptions:
    """Options of reading answers again.

    Attributes:
        format: the wire format to read; "" for the one that the row names, or else any.
        earlier_format: read the text in this format too, and compare with that; "" for the calls that the row has.
        fallback: see `StreamParser`.
        tools: definitions of the tools for rows that have none.
        own_formats: formats that are not registered in the process that reads.
    """

    format: str = ""
    earlier_format: str = ""
    fallback: FallbackLevel | None = None
    tools: tuple[ToolDefinition, ...] = ()
    own_formats: tuple[WireFormat, ...] = ()


@dataclass(slots=True)
class BatchResult:
    """The results of a batch.

    Attributes:
        counts: the number of rows by model and class.
        problems: the number of parts that could not be read, by model and kind.
        repairs: the number of calls with each repair, by model.
        different: rows with other calls than before: position in the batch, model, class, calls before, calls now.
        samples: rows of each class with their texts: the same, and the text.
        broken: rows that are not answers: position in the batch and reason.
    """

    counts: Counter[tuple[str, RowClass]] = field(default_factory=Counter)
    problems: Counter[tuple[str, str]] = field(default_factory=Counter)
    repairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    different: list[tuple[int, str, RowClass, str, str]] = field(default_factory=list)
    samples: list[tuple[int, str, RowClass, str, str, str]] = field(default_factory=list)
    broken: list[tuple[int, str]] = field(default_factory=list)


def reread(lines: Sequence[bytes], options: ReparseOptions) -> BatchResult:
    """Read the answers in lines of JSON again; empty lines do not count.

    Args:
        lines: the lines.
        options: how they are read.
    """
    register_formats(options.own_formats)
    result = BatchResult()
    for position, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = answer_row(line)
            before = _before(row, options)
            now = _read(row, options.format or row.format or AUTO, options)
        except (ValueError, DefinitionError) as error:
            reason = " ".join(str(error).split())[:300]
            result.counts["", "broken"] += 1
            result.broken.append((position, reason))
            continue
        calls: Calls = [(call.name, call.arguments) for call in now.tool_calls]
        _add(result, position, row, before, calls)
        result.problems.update((row.model, problem.kind) for problem in now.problems)
        result.repairs.update((row.model, name) for call in now.tool_calls for name in call.repairs)
    return result


def _add(result: BatchResult, position: int, row: AnswerRow, before: Calls | None, calls: Calls) -> None:
    kind = _class(before, calls)
    result.counts[row.model, kind] += 1
    if kind in DIFFERENT:
        result.different.append((position, row.model, kind, _json(before), _json(calls)))
    # At least the first rows of each class in the file are among the first ones of a batch.
    if result.counts[row.model, kind] <= SAMPLES and kind != "none":
        text = row.text if row.text is not None else json.dumps(row.response, ensure_ascii=False)
        sample = truncate(text, MAX_SAMPLE)
        result.samples.append((position, row.model, kind, _json(before), _json(calls), sample))


def _class(before: Calls | None, calls: Calls) -> RowClass:
    if before is None:
        return "read" if calls else "none"
    if not before:
        return "gained" if calls else "none"
    if not calls:
        return "lost"
    return "same" if equal_json([list(call) for call in before], [list(call) for call in calls]) else "changed"


def _before(row: AnswerRow, options: ReparseOptions) -> Calls | None:
    """Return the calls that were read before; None if that is not known."""
    if options.earlier_format:
        response = _read(row, options.earlier_format, options)
    elif row.response is None:
        return row.calls
    else:
        # The calls in the fields of the response are those that the server read.
        response = parse(row.response, tool_choice="none", tools=_tools(row, options))
    return [(call.name, call.arguments) for call in response.tool_calls]


def _read(row: AnswerRow, format: str, options: ReparseOptions) -> ParsedResponse:
    keywords: ParseOptions = {"format": format, "tools": _tools(row, options), "fallback": options.fallback}
    return parse(row.response if row.text is None else row.text, **keywords)


def _tools(row: AnswerRow, options: ReparseOptions) -> Sequence[Any]:
    return options.tools if row.tools is None else row.tools


_ENCODER: Final = json.JSONEncoder(default=str)


def _json(calls: Calls | None) -> str:
    return _ENCODER.encode(calls)
