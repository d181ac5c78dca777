"""Ask for the approval of a call at the terminal."""

from __future__ import annotations

import asyncio
import sys

from toolwire.cli.console import console, say
from toolwire.execution.confirmation import turn
from toolwire.policy.approval import Approval, ApprovalAnswer, left_out, present

try:
    import termios
except ImportError:  # on Windows
    termios = None  # type: ignore[assignment]

ONE_CALL_ANSWERS = {
    "y": ApprovalAnswer(approved=True),
    "yes": ApprovalAnswer(approved=True),
    "n": ApprovalAnswer(approved=False),
    "no": ApprovalAnswer(approved=False),
}
SESSION_ANSWERS = {
    "a": ApprovalAnswer(approved=True, remember=True),
    "always": ApprovalAnswer(approved=True, remember=True),
    "d": ApprovalAnswer(approved=False, remember=True),
    "deny": ApprovalAnswer(approved=False, remember=True),
}


class ApprovalPrompt:
    """A prompt that shows on standard error exactly what would run, and reads the answer from the terminal.

    Args:
        approve: approve every call without asking; each call is still shown.
        remember: offer answers that apply to the whole session.
    """

    def __init__(self, *, approve: bool = False, remember: bool = False) -> None:
        self._approve_all = approve
        self._answers = ONE_CALL_ANSWERS | SESSION_ANSWERS if remember else ONE_CALL_ANSWERS
        session = "[a]lways or [d]eny this very call for the session, " if remember else ""
        self._question = f"Run it? [y]es, [n]o, {session}[w]hole text: "
        self._hint = f"Please answer y, n, {'a, d ' if remember else ''}or w; an empty line is no."
        self._lock = asyncio.Lock()  # one question at a time

    async def __call__(self, approval: Approval) -> ApprovalAnswer:
        """Return the answer; without a terminal the call is refused."""
        async with turn(self._lock):
            screen = console(stderr=True)
            screen.print(present(approval, width=screen.width))
            if self._approve_all:
                return ApprovalAnswer(approved=True)
            if not is_interactive():
                return ApprovalAnswer(
                    False, reason="nobody is at the terminal; --yes approves calls beforehand", unanswered=True
                )
            hidden = left_out(approval)
            while True:
                answer = (await _read_line(self._question)).strip().casefold()
                if answer in ("w", "whole"):
                    screen.print(present(approval, width=screen.width, whole=True))
                    hidden = 0
                elif not answer:
                    return ONE_CALL_ANSWERS["n"]
                elif answer not in self._answers:
                    say(self._hint)
                elif hidden and self._answers[answer].approved:
                    say(f"{hidden} characters of the call were not shown: answer w to see all of it, then approve.")
                else:
                    return self._answers[answer]


def is_interactive() -> bool:
    """Return whether standard input and standard error are terminals, so that a user sees and answers questions."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


async def _read_line(question: str) -> str:
    """Return a line typed after the question was asked; waiting for it can be cancelled."""
    # Keys that were typed before the question must not answer it.
    if termios is not None:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stderr.write(question)
    sys.stderr.flush()
    loop, line_ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(sys.stdin.fileno(), line_ready.set)
    except NotImplementedError:  # an event loop without it, on Windows
        return sys.stdin.readline()
    try:
        await line_ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()
