"""Output of the command line: text that is safe for a terminal, JSON lines, and errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO

from rich.console import Console, JustifyMethod, OverflowMethod
from rich.text import Text

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    CitationReceived,
    ContentDelta,
    Event,
    Finish,
    OpaquePartReceived,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
from toolwire.text.escape import escape_as_json, terminal_text

_NAMES = {
    ContentDelta: "content",
    ReasoningDelta: "reasoning",
    CallStart: "call_start",
    ArgumentsDelta: "arguments",
    CallEnd: "call_end",
    ProblemFound: "problem",
    CitationReceived: "citation",
    OpaquePartReceived: "opaque_part",
    ReasoningEnd: "reasoning_end",
    UsageCounted: "usage",
    Finish: "finish",
}

_CLAIMED: ContextVar[TextIO | None] = ContextVar("claimed", default=None)
"""The real standard output, while only the command line may write to it."""


class CliError(Exception):
    """An error that ends the command with one line on standard error.

    Attributes:
        status: the exit status; 2 for wrong usage or bad input, 1 for a failure.
    """

    def __init__(self, message: str, *, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


def leave(status: int) -> NoReturn:
    """End the process at once, without waiting for a model that still writes; the records so far are kept."""
    from toolwire import telemetry  # here, because most commands record nothing

    telemetry.flush(0.5)
    for stream in (_output(), sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


@contextmanager
def claim_output() -> Iterator[None]:
    """Send the output of tools and their processes to standard error while the block runs.

    Only the command line itself writes to standard output then, because another program may read it as JSON.
    """
    before = sys.stdout
    if before is not sys.__stdout__ or not isinstance(
        before, TextIOWrapper
    ):  # a test or an embedding program replaced it
        token = _CLAIMED.set(before)
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            _CLAIMED.reset(token)
        return
    before.flush()
    place = before.fileno()
    output = os.fdopen(os.dup(place), "w", encoding=before.encoding, errors=before.errors)
    os.dup2(sys.stderr.fileno(), place)
    token = _CLAIMED.set(output)
    try:
        with redirect_stdout(sys.stderr):
            yield
        output.flush()
    finally:
        _CLAIMED.reset(token)
        with suppress(OSError):
            before.flush()  # text that was written to the old stream object
        os.dup2(output.fileno(), place)
        with suppress(OSError):
            output.close()


def _output() -> TextIO:
    return _CLAIMED.get() or sys.stdout


def console(*, stderr: bool = False) -> Console:
    """Return a console without markup and highlighting, which wraps nothing in a pipe."""
    file = None if stderr else _CLAIMED.get()
    return Console(file=file, stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


def safe(text: str) -> str:
    """Return text with control characters escaped, so that it cannot control the terminal."""
    return terminal_text(text)


def write_raw(text: str) -> None:
    """Write text to standard output: as it is for another program, safe for a terminal."""
    out = _output()
    out.write(safe(text) if out.isatty() else text)


def styled(text: str, style: str = "") -> Text:
    """Return safe text in a style."""
    return Text(safe(text), style=style)


def labelled(label: str, text: str, style: str = "", *, indent: int = 8) -> Text:
    """Return a bold label and a safe text, whose further lines are indented."""
    return Text.assemble(
        (safe(f"{label:<{indent - 1}} "), "bold"), (safe(text).replace("\n", "\n" + " " * indent), style)
    )


def print_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[Text]],
    *,
    fold: Collection[str] = (),
    right: Collection[str] = (),
    widths: Mapping[str, int] = {},
    header: bool = True,
) -> None:
    """Print rows as a table on a terminal, and as lines of values separated by tabs in a pipe.

    Args:
        columns: titles of the columns.
        rows: one value per column.
        fold: columns whose long values are folded; values of other columns are truncated with an ellipsis.
        right: columns that are aligned to the right.
        widths: minimum widths of columns, in characters, so that rows of several calls are aligned.
        header: whether the titles are printed.
    """
    from rich.table import Table

    screen = console()
    if not screen.is_terminal:
        for row in rows:
            # A value is text of a server or a model too, which must not end its row or its column.
            values = (cell.plain.replace("\t", "\\t").replace("\n", "\\n") for cell in row)
            sys.stdout.write("\t".join(values) + "\n")
        sys.stdout.flush()
        return
    table = Table(box=None, pad_edge=False, show_header=header)
    for name in columns:
        overflow: OverflowMethod = "fold" if name in fold else "ellipsis"
        justify: JustifyMethod = "right" if name in right else "left"
        table.add_column(name, no_wrap=name not in fold, overflow=overflow, justify=justify, min_width=widths.get(name))
    for row in rows:
        table.add_row(*row)
    screen.print(table, soft_wrap=False)


def say(text: str, style: str = "dim") -> None:
    """Print a line for the user on standard error."""
    console(stderr=True).print(styled(text, style))


def emit(event: Mapping[str, Any]) -> None:
    """Write one line of JSON to standard output and flush it; control characters are escaped."""
    line = escape_as_json(json.dumps(plain(event), ensure_ascii=False))
    out = _output()
    out.write(line + "\n")
    out.flush()


def event_dict(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object, whose key `event` names its kind."""
    body = plain(event)
    if isinstance(event, ProblemFound):
        body = body["problem"]
    return {"event": _NAMES[type(event)], **body}


def plain(value: Any) -> Any:
    """Return a value with its dataclasses as dicts and its tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.compare or field.repr}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def call_line(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call on one line: its name and its arguments as JSON."""
    return f"{name} {json.dumps(arguments, ensure_ascii=False)}"
