"""One invocation of `te`: its settings, where results are stored, and how an answer is written."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TextIO

from toolwire.envelope.grammar import EnvelopeDocument, EnvelopeHeader, EnvelopeSection
from toolwire.envelope.layout import compose_text
from toolwire.envelope.settings import HUMAN, Settings
from toolwire.envelope.store import HandleStore
from toolwire.envelope.te.options import WRONG
from toolwire.envelope.usage_log import MAX_INPUT, UsageLog, UsageRecord, redacted_command
from toolwire.errors import capture_errors
from toolwire.runtime.process_groups import ProgramResult
from toolwire.text.escape import escape_as_json, terminal_text

MIN_ROOM: Final = 500
"""Minimum length of a document, in characters; a header and breadcrumbs always fit."""
MAX_ERROR: Final = 600
"""Maximum length of an error in a document, in characters; it fits any budget."""
SAID: Final = {"invalid_pattern": "invalid regex pattern", "internal": "internal error, operator intervention required"}
"""Explanations of errors for a reader who would gain nothing from the details."""


@dataclass(slots=True)
class CommandOutcome:
    """The result of a command, for the usage log and the exit status."""

    status: int = 0
    cmd: str = ""
    mode: str = "envelope"
    output: str = ""
    truncated: bool = False
    handle: str = ""
    error: str = ""


@dataclass
class CommandContext:
    """One invocation of `te`.

    Attributes:
        as_json: write JSON objects.
        raw: write the command's own output.
        seconds: time limit of the command; None for the one in the settings.
        ran: the program's result, once one has run.
        began: start time, for the usage log.
    """

    as_json: bool = False
    raw: bool = False
    seconds: float | None = None
    ran: ProgramResult | None = None
    began: float = field(default_factory=time.perf_counter)

    @cached_property
    def settings(self) -> Settings:
        """Settings from the configuration file and the environment."""
        return Settings.read(human=sys.stdout.isatty())

    @cached_property
    def store(self) -> HandleStore:
        """The store for whole results."""
        return HandleStore.of(self.settings)

    @property
    def human(self) -> bool:
        """The reader is a person."""
        return self.settings.agent == HUMAN

    # -- answers -------------------------------------------------------------------------------------------------

    def answer(
        self, compose: Callable[[int], EnvelopeDocument], *, limit: int | None = None, status: int = 0
    ) -> CommandOutcome:
        """Write a document that fits.

        Args:
            compose: returns the document, given its maximum length in characters.
            limit: maximum length for this command; the reader's budget may be smaller.
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
        return CommandOutcome(
            status, header.cmd, "envelope", text, header.truncated, header.handle or "", header.error or ""
        )

    def written(self, document: EnvelopeDocument) -> str:
        """Return a document as text or JSON."""
        if not self.as_json:
            return document.text
        return dumped({"meta": document.header.meta, "content": document.body})

    def text(
        self,
        text: str,
        header: EnvelopeHeader,
        *,
        limit: int,
        lines: int | None,
        tail: float = 0.0,
        more: str = "",
        status: int = 0,
    ) -> CommandOutcome:
        """Write a text in an envelope; see `compose_text`."""
        keep = self.keep()
        return self.answer(
            lambda room: compose_text(text, header, limit=room, keep=keep, lines=lines, tail=tail, more=more),
            limit=limit,
            status=status,
        )

    def keep(self) -> Callable[[str, EnvelopeHeader], str | None]:
        """Return a function that stores a result once, however often it is called."""
        handles: list[str | None] = []

        def keep(text: str, header: EnvelopeHeader) -> str | None:
            if not handles:
                handles.append(self.store.keep(text, header, self.settings))
            return handles[0]

        return keep

    def failed(self, cmd: str, error: str, message: str = "", *, status: int = WRONG) -> CommandOutcome:
        """Write an error. If its explanation is fixed, the details go to standard error."""
        explanation = SAID.get(error, message)
        if message and message != explanation:
            warn(message)
        document = EnvelopeDocument(
            EnvelopeHeader(cmd=cmd, error=error), (EnvelopeSection(f"[TE] {explanation[:MAX_ERROR]}"),)
        )
        return self.answer(lambda _: document, status=status)

    def close(self) -> None:
        """Close the store."""
        if "store" in self.__dict__:
            self.store.close()

    # -- afterwards ----------------------------------------------------------------------------------------------

    def record(self, done: CommandOutcome, arguments: Sequence[str]) -> None:
        """Record the call, if enabled."""
        if not self.settings.telemetry:
            return
        with capture_errors():  # it never gets in the way
            record = UsageRecord(
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
            telemetry = UsageLog.of(self.settings)
            telemetry.record(record)
            telemetry.close()


def dumped(value: Any) -> str:
    """Return JSON on one line, with escapes for characters that are not printable."""
    return escape_as_json(json.dumps(value, ensure_ascii=False))


def write(text: str) -> None:
    """Write text and a line break to standard output, without translation of line ends."""
    data = text.encode("utf-8", "backslashreplace")
    show(sys.stdout, data if data.endswith(b"\n") else data + b"\n")


def show(stream: TextIO, data: bytes) -> None:
    """Write bytes as they are, but to a terminal without characters that steer it or hide text."""
    if stream.isatty():
        data = terminal_text(data.decode("utf-8", "replace")).encode("utf-8", "backslashreplace")
    stream.buffer.write(data)
    stream.buffer.flush()


def warn(message: str) -> None:
    """Write one line to standard error."""
    line = " ".join(message.split())
    sys.stderr.write(f"te: {line if line.isprintable() else ascii(line)}\n")


def short(program: str) -> str:
    """Return a program's name for a header."""
    return os.path.basename(program)[:100] or "run"
