"""What the commands of `te` share: who reads, where things are kept, and how an answer is written."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from toolwire.envelope.grammar import Document, EnvelopeHeader, Section
from toolwire.envelope.layout import compose_text
from toolwire.envelope.settings import HUMAN, Settings
from toolwire.envelope.store import HandleStore
from toolwire.envelope.te.options import WRONG
from toolwire.envelope.usage_log import MAX_INPUT, Record, Telemetry, redacted_command
from toolwire.errors import ToolError
from toolwire.runtime.foreign_code import Caught
from toolwire.runtime.process_groups import ProgramResult
from toolwire.text.escape import escape_as_json

MIN_ROOM: Final = 500
"""Characters in which a document says that it shows nothing, whatever it is of."""
MAX_ERROR: Final = 600
"""Characters of an error that are told, which has room in any budget."""
SAID: Final = {
    "invalid_pattern": "invalid regex pattern",
    "internal": "internal error, operator intervention required",
}
"""What the reader is told where no more would help it."""


@dataclass(slots=True)
class Done:
    """What a command came to, for telemetry and the exit status."""

    status: int = 0
    cmd: str = ""
    mode: str = "envelope"
    output: str = ""
    truncated: bool = False
    handle: str = ""
    error: str = ""


@dataclass
class CommandContext:
    """One run of `te`.

    Attributes:
        as_json: answers are JSON objects.
        raw: nothing is shaped.
        seconds: that a command may take; None for what the settings say.
        ran: what the command did that was run, once it was.
        began: when it began, for telemetry.
    """

    as_json: bool = False
    raw: bool = False
    seconds: float | None = None
    ran: ProgramResult | None = None
    began: float = field(default_factory=time.perf_counter)

    @cached_property
    def settings(self) -> Settings:
        """What the configuration and the environment say."""
        return Settings.read(human=sys.stdout.isatty())

    @cached_property
    def store(self) -> HandleStore:
        """Where whole results go."""
        return HandleStore.of(self.settings)

    @property
    def human(self) -> bool:
        """Whether a person reads."""
        return self.settings.agent == HUMAN

    # -- answers -------------------------------------------------------------------------------------------------

    def answer(self, compose: Callable[[int], Document], *, limit: int | None = None, status: int = 0) -> Done:
        """Write a document that is made to fit.

        Args:
            compose: makes it, at most so many characters long.
            limit: characters that the command shows; the reader's budget may be smaller.
            status: the exit status.
        """
        most = min(limit or self.settings.budget, self.settings.budget)
        document = compose(most)
        room = most
        while self.as_json and len(text := self.written(document)) > most and room > MIN_ROOM:
            room = max(room * most // len(text) - 16, MIN_ROOM)  # escapes take room as well
            document = compose(room)
        text = self.written(document)
        write(text)
        header = document.header
        return Done(status, header.cmd, "envelope", text, header.truncated, header.handle or "", header.error or "")

    def written(self, document: Document) -> str:
        """A document as it is written."""
        if not self.as_json:
            return document.text
        return dumped({"meta": document.header.meta, "content": document.body})

    def text(self, text: str, header: EnvelopeHeader, *, limit: int, lines: int | None, tail: float = 0.0,
             more: str = "", status: int = 0) -> Done:  # fmt: skip
        """Write a text in an envelope; see `compose_text`."""
        keep = self.keep()
        return self.answer(
            lambda room: compose_text(text, header, limit=room, keep=keep, lines=lines, tail=tail, more=more),
            limit=limit,
            status=status,
        )

    def keep(self) -> Callable[[str, EnvelopeHeader], str | None]:
        """Keeps a result, once, however often it is asked to."""
        kept: list[str | None] = []

        def keep(text: str, header: EnvelopeHeader) -> str | None:
            if not kept:
                kept.append(self._kept(text, header))
            return kept[0]

        return keep

    def _kept(self, text: str, header: EnvelopeHeader) -> str | None:
        try:
            return self.store.put(
                text,
                cmd=header.cmd,
                agent=self.settings.agent,
                session=self.settings.session,
                content_type=header.content_type or "",
            )
        except ToolError:
            return None

    def failed(self, cmd: str, error: str, message: str = "", *, status: int = WRONG) -> Done:
        """Write what went wrong; the reason goes to standard error where the answer has a fixed one."""
        said = SAID.get(error, message)
        if message and message != said:
            warn(message)
        document = Document(EnvelopeHeader(cmd=cmd, error=error), (Section(f"[TE] {said[:MAX_ERROR]}"),))
        return self.answer(lambda _: document, status=status)

    def close(self) -> None:
        """Let go of what was opened."""
        if "store" in self.__dict__:
            self.store.close()

    # -- afterwards ----------------------------------------------------------------------------------------------

    def record(self, done: Done, arguments: Sequence[str]) -> None:
        """Record the call, if it may be."""
        if not self.settings.telemetry:
            return
        with Caught():  # it never gets in the way
            self._record(done, arguments)

    def _record(self, done: Done, arguments: Sequence[str]) -> None:
        telemetry = Telemetry.of(self.settings)
        telemetry.record(
            Record(
                cmd=done.cmd,
                mode=done.mode,
                input=redacted_command(arguments, MAX_INPUT),
                output=len(done.output),
                truncated=done.truncated,
                handle=done.handle,
                latency_ms=1_000 * (time.perf_counter() - self.began),
                error=done.error,
                output_text=done.output,
                agent=self.settings.agent,
                session=self.settings.session,
            )
        )
        telemetry.close()


def dumped(value: Any) -> str:
    """JSON on one line; characters that a terminal obeys stand as escapes."""
    return escape_as_json(json.dumps(value, ensure_ascii=False))


def write(text: str) -> None:
    """Write on standard output, byte for byte, with a line break at the end."""
    data = text.encode("utf-8", "backslashreplace")
    sys.stdout.buffer.write(data if data.endswith(b"\n") else data + b"\n")
    sys.stdout.buffer.flush()


def warn(message: str) -> None:
    """One line on standard error."""
    line = " ".join(message.split())
    sys.stderr.write(f"te: {line if line.isprintable() else ascii(line)}\n")


def short(program: str) -> str:
    """A program's name for a header."""
    return os.path.basename(program)[:100] or "run"
