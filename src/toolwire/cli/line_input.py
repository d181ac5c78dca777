"""Input of a chat: a line editor with a history in a terminal, or lines from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from toolwire.runtime.state_dir import state_folder

HISTORY = "chat_history"


class LineSource(Protocol):
    """A source of messages.

    Attributes:
        blocks: whether `read` blocks the event loop, so that it must handle Ctrl-C itself.
    """

    blocks: bool

    async def read(self) -> str | None:
        """Return the next message; None at the end.

        Raises:
            KeyboardInterrupt: Ctrl-C, with nothing typed.
        """
        ...


def open_line_source(commands: Mapping[str, str], status_line: Callable[[], str]) -> LineSource:
    """Return the best line source for this terminal or pipe.

    Args:
        commands: names to complete, with their descriptions.
        status_line: text of the line below the input.
    """
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return PipedLines()
    with suppress(ImportError):
        return LineEditor(commands, status_line)
    return TerminalLines()


class PipedLines:
    """Lines from a pipe; each is a message."""

    blocks = True

    async def read(self) -> str | None:
        """See `LineSource`."""
        line = sys.stdin.readline() if sys.stdin is not None else ""
        return line.rstrip("\r\n") if line else None


class TerminalLines:
    """A terminal without prompt_toolkit."""

    blocks = True

    async def read(self) -> str | None:
        """See `LineSource`."""
        try:
            return input("> ")
        except EOFError:
            return None


class LineEditor:
    """A line editor with a history, search, multi-line paste and completion of commands."""

    blocks = False

    def __init__(self, commands: Mapping[str, str], status_line: Callable[[], str]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.output import create_output
        from prompt_toolkit.styles import Style

        class Commands(Completer):
            def get_completions(self, document: Any, event: Any) -> Iterator[Completion]:
                word = document.text_before_cursor
                if word.startswith("/") and " " not in word:
                    for name, meaning in commands.items():
                        if name.startswith(word):
                            yield Completion(name, start_position=-len(word), display_meta=meaning)

        self._session: Any = PromptSession(
            history=_history(),
            completer=Commands(),
            complete_while_typing=True,
            key_bindings=_keys(),
            bottom_toolbar=status_line,
            prompt_continuation="  ",
            style=Style.from_dict({"bottom-toolbar": "noreverse ansibrightblack", "prompt": "bold"}),
            output=create_output(stdout=sys.stderr),
            reserve_space_for_menu=4,
            enable_suspend=True,
        )

    async def read(self) -> str | None:
        """See `LineSource`."""
        try:
            text: str = await self._session.prompt_async(
                [("class:prompt", "> ")],
                handle_sigint=False,  # a handler here would replace that of the chat; the key is bound below
            )
        except EOFError:
            return None
        return text


def _keys() -> Any:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: Any) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt())

    return keys


def _history() -> Any:
    """Return the input history, in a file that only its user may read; in memory if there can be no file."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        folder = state_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / HISTORY
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


@contextmanager
def without_echo() -> Iterator[None]:
    """Switch echo off while the block runs; typed text is not lost."""
    with _echo(on=False, forget=False):
        yield


@contextmanager
def with_echo() -> Iterator[None]:
    """Switch echo on while the block runs, and discard earlier input, so that it answers no question."""
    with _echo(on=True, forget=True):
        yield


@contextmanager
def _echo(*, on: bool, forget: bool) -> Iterator[None]:
    if sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    try:
        import termios
    except ImportError:  # Windows
        yield
        return
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    now = termios.tcgetattr(file)
    now[3] = now[3] | termios.ECHO if on else now[3] & ~termios.ECHO
    termios.tcsetattr(file, termios.TCSAFLUSH if forget else termios.TCSADRAIN, now)
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
