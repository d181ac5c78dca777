"""Ask whoever sits at the terminal whether a call may run."""

from __future__ import annotations

import asyncio
import sys

from toolwire.cli.console import console, say
from toolwire.execution.confirmation import turn
from toolwire.policy.approval import Agreement, Approval, left_out, present

try:
    import termios
except ImportError:  # on Windows
    termios = None  # type: ignore[assignment]

ONCE = {
    "y": Agreement(agreed=True),
    "yes": Agreement(agreed=True),
    "n": Agreement(agreed=False),
    "no": Agreement(agreed=False),
}
FOR_THE_SESSION = {
    "a": Agreement(agreed=True, remember=True),
    "always": Agreement(agreed=True, remember=True),
    "d": Agreement(agreed=False, remember=True),
    "deny": Agreement(agreed=False, remember=True),
}


class ApprovalPrompt:
    """Shows on standard error exactly what would run, and reads the answer from the terminal.

    Args:
        agree: agree to everything without asking; what would run is shown all the same.
        remember: offer answers that hold for the session; of no use where it ends with the call.
    """

    def __init__(self, *, agree: bool = False, remember: bool = False) -> None:
        self._agree = agree
        self._answers = ONCE | FOR_THE_SESSION if remember else ONCE
        session = "[a]lways or [d]eny this very call for the session, " if remember else ""
        self._question = f"Run it? [y]es, [n]o, {session}[w]hole text: "
        self._hint = f"Please answer y, n, {'a, d ' if remember else ''}or w; an empty line is no."
        self._lock = asyncio.Lock()  # one question at a time

    async def __call__(self, approval: Approval) -> Agreement:
        """The answer; with nobody at the terminal, that it does not run."""
        async with turn(self._lock):
            screen = console(stderr=True)
            screen.print(present(approval, width=screen.width))
            if self._agree:
                return Agreement(agreed=True)
            if not somebody():
                return Agreement(False, reason="nobody is at the terminal; --yes agrees beforehand", unanswered=True)
            unseen = left_out(approval)
            while True:
                answer = (await _line(self._question)).strip().casefold()
                if answer in ("w", "whole"):
                    screen.print(present(approval, width=screen.width, whole=True))
                    unseen = 0
                elif not answer:
                    return ONCE["n"]
                elif answer not in self._answers:
                    say(self._hint)
                elif unseen and self._answers[answer].agreed:
                    say(f"{unseen} characters of it were not shown: w shows the whole, then you can agree.")
                else:
                    return self._answers[answer]


def somebody() -> bool:
    """Whether anybody is at the terminal who could be asked, and would see the question."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


async def _line(question: str) -> str:
    """A line typed after the question was asked; waiting for it can be cancelled."""
    if termios is not None:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stderr.write(question)
    sys.stderr.flush()
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(sys.stdin.fileno(), typed.set)
    except NotImplementedError:  # an event loop without it, on Windows
        return sys.stdin.readline()
    try:
        await typed.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()
