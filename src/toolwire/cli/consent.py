"""Ask whoever sits at the terminal whether a call may run."""

from __future__ import annotations

import asyncio
import sys

from toolwire.cli.screen import console, say
from toolwire.consent import Agreement, Approval, left_out, present

ANSWERS = {
    "y": Agreement(agreed=True),
    "a": Agreement(agreed=True, remember=True),
    "n": Agreement(agreed=False),
    "d": Agreement(agreed=False, remember=True),
}
QUESTION = "Run it? [y]es, [n]o, [a]lways or [d]eny this very call for the session, [w]hole text: "


class Consent:
    """Shows on standard error exactly what would run, and reads the answer from the terminal.

    Args:
        agree: agree to everything without asking; what would run is shown all the same.
    """

    def __init__(self, *, agree: bool = False) -> None:
        self._agree = agree
        self._lock = asyncio.Lock()  # one question at a time

    async def __call__(self, approval: Approval) -> Agreement:
        """The answer; nobody at the terminal is a no."""
        async with self._lock:
            screen = console(stderr=True)
            screen.print(present(approval, width=screen.width))
            if self._agree:
                return Agreement(agreed=True)
            if not somebody():
                return Agreement(agreed=False, reason="nobody is at the terminal; --yes agrees beforehand")
            unseen = left_out(approval)
            while True:
                answer = (await _line(QUESTION)).strip().lower()[:1]
                if answer in ANSWERS and not (unseen and ANSWERS[answer].agreed):
                    return ANSWERS[answer]
                if answer == "w":
                    screen.print(present(approval, width=screen.width, whole=True))
                    unseen = 0
                elif answer in ANSWERS:
                    say(f"{unseen} characters of it were not shown: w shows the whole, then you can agree.")
                elif answer:
                    say("Please answer y, n, a, d or w; an empty line is no.")
                else:
                    return ANSWERS["n"]


def somebody() -> bool:
    """Whether anybody is at the terminal who could be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


async def _line(question: str) -> str:
    """A line from the terminal; waiting for it can be cancelled."""
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
