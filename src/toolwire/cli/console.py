"""What the command line shows: text made safe for a terminal, one JSON object per event, and errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO

from rich.console import Console
from rich.text import Text

from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    Passed,
    ProblemFound,
    ReasoningDelta,
    ReasoningEnd,
    UsageCounted,
)
from toolwire.text.escape import escape_as_json, escape_invisible

_HARMLESS = "\n\t\u200c\u200d\ufe0f"
_NAMES = {
    ContentDelta: "content",
    ReasoningDelta: "reasoning",
    CallStart: "call_start",
    ArgumentsDelta: "arguments",
    CallEnd: "call_end",
    ProblemFound: "problem",
    Passed: "passed",
    ReasoningEnd: "reasoning_end",
    UsageCounted: "usage",
    Finish: "finish",
}

_OURS: ContextVar[TextIO | None] = ContextVar("ours", default=None)
"""Standard output, while nobody but the command line may write to it."""


class CliError(Exception):
    """Ends the command with one line on standard error.

    Attributes:
        status: the exit status; 2 for wrong usage or bad input, 1 for a failure.
    """

    def __init__(self, message: str, *, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


def leave(status: int) -> NoReturn:
    """End the process at once, without waiting for a model that still writes; what is recorded so far stays."""
    from toolwire import telemetry  # here, since most commands have nothing to record

    telemetry.flush(0.5)
    for stream in (_output(), sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


@contextmanager
def output_is_ours() -> Iterator[None]:
    """Meanwhile, what tools print goes to standard error: their functions' prints, and what their processes write.

    Standard output is for what the command line itself writes, which others may be reading as JSON.
    """
    before = sys.stdout
    if before is not sys.__stdout__ or not isinstance(before, TextIOWrapper):  # something else stands in for it
        token = _OURS.set(before)
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            _OURS.reset(token)
        return
    before.flush()
    place = before.fileno()
    ours = os.fdopen(os.dup(place), "w", encoding=before.encoding, errors=before.errors)
    os.dup2(sys.stderr.fileno(), place)
    token = _OURS.set(ours)
    try:
        with redirect_stdout(sys.stderr):
            yield
        ours.flush()
    finally:
        _OURS.reset(token)
        with suppress(OSError):
            before.flush()  # what was written past the redirection
        os.dup2(ours.fileno(), place)
        with suppress(OSError):
            ours.close()


def _output() -> TextIO:
    return _OURS.get() or sys.stdout


def console(*, stderr: bool = False) -> Console:
    """A console that shows text as it is: no markup, no highlighting, nothing wrapped that is piped."""
    file = None if stderr else _OURS.get()
    return Console(file=file, stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


def safe(text: str) -> str:
    """Text with control and escape characters made visible, so that it cannot steer the terminal."""
    return escape_invisible(text.replace("\r\n", "\n"), _HARMLESS)


def styled(text: str, style: str = "") -> Text:
    """Safe text in a style."""
    return Text(safe(text), style=style)


def say(text: str, style: str = "dim") -> None:
    """A line for the user on standard error."""
    console(stderr=True).print(styled(text, style))


def emit(event: Mapping[str, Any]) -> None:
    """One line of JSON on standard output, at once; characters that a terminal obeys stand as escapes."""
    line = escape_as_json(json.dumps(plain(event), ensure_ascii=False))
    out = _output()
    out.write(line + "\n")
    out.flush()


def event_dict(event: Event) -> dict[str, Any]:
    """An event as a JSON object; the key `event` says which."""
    body = plain(event)
    if isinstance(event, ProblemFound):
        body = body["problem"]
    return {"event": _NAMES[type(event)], **body}


def plain(value: Any) -> Any:
    """A value made of dataclasses as dicts and lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.compare or field.repr}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def call_line(name: str, arguments: Mapping[str, Any]) -> str:
    """A call on one line: its name and its arguments as JSON."""
    return f"{name} {json.dumps(arguments, ensure_ascii=False)}"
