"""A spinner on standard error for commands that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.status import Status

from toolwire.cli.console import console, styled

if TYPE_CHECKING:
    from toolwire.mcp.server_status import ToolProgress


class BusySign:
    """A spinner on standard error that stops while a question is asked."""

    def __init__(self) -> None:
        self._status: Status | None = None

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show the spinner while the block runs."""
        screen = console(stderr=True)
        self._status = screen.status(styled(what, "dim")) if screen.is_terminal else None
        try:
            if self._status is not None:
                self._status.start()
            yield
        finally:
            if self._status is not None:
                self._status.stop()
            self._status = None

    @contextmanager
    def counting(self, count: int, things: str) -> Iterator[Callable[[], None]]:
        """Show how many of some things are done while the block runs; call the function after each."""
        count_done = 0

        def next_thing() -> None:
            nonlocal count_done
            count_done += 1
            self.update(f"{count_done} of {count} {things}")

        with self.waiting(f"0 of {count} {things}"):
            yield next_thing

    def update(self, what: str) -> None:
        """Show another text beside the spinner."""
        if self._status is not None:
            self._status.update(styled(what, "dim"))

    def progress(self, report: ToolProgress) -> None:
        """Show the progress of a call."""
        of = f" of {report.total:g}" if report.total is not None else ""
        self.update(f"{report.tool}: {report.done:g}{of} {report.message}")

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the spinner while the block runs."""
        if self._status is not None:
            self._status.stop()
        try:
            yield
        finally:
            if self._status is not None:
                self._status.start()


BUSY = BusySign()
