"""A spinner on standard error for commands that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.spinner import Spinner

from toolwire.cli.console import console, styled

if TYPE_CHECKING:
    from toolwire.mcp.server_status import ToolProgress


class BusySign:
    """A spinner on standard error that stops while a question is asked."""

    def __init__(self) -> None:
        self._live: Live | None = None
        self._spinner = Spinner("dots", style="status.spinner")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show the spinner while the block runs."""
        screen = console(stderr=True)
        if screen.is_terminal:
            # Standard output may be a file or another program, which has to get its lines while the spinner runs.
            self._live = Live(self._spinner, console=screen, transient=True, redirect_stdout=False)
            self.update(what)
        try:
            if self._live is not None:
                self._live.start()
            yield
        finally:
            if self._live is not None:
                self._live.stop()
            self._live = None

    @contextmanager
    def counting(self, things: str, names: Sequence[str]) -> Iterator[Callable[[], None]]:
        """Show how many of some things are done, and the name of the next one; call the function after each."""
        count_done = 0

        def progress() -> str:
            name = names[count_done] if count_done < len(names) else ""
            return f"{count_done} of {len(names)} {things}{': ' if name else ''}{name}"

        def next_thing() -> None:
            nonlocal count_done
            count_done += 1
            self.update(progress())

        with self.waiting(progress()):
            yield next_thing

    def update(self, what: str) -> None:
        """Show another text beside the spinner."""
        if self._live is not None:
            self._spinner.update(text=styled(what, "dim"))

    def progress(self, report: ToolProgress) -> None:
        """Show the progress of a call."""
        of = f" of {report.total:g}" if report.total is not None else ""
        self.update(f"{report.tool}: {report.done:g}{of} {report.message}")

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the spinner while the block runs."""
        if self._live is not None:
            self._live.stop()
        try:
            yield
        finally:
            if self._live is not None:
                self._live.start()


BUSY = BusySign()
