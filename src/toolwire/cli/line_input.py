"""Lines that somebody types, with a history, several of them at once if need be; or that come through a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from toolwire.runtime.state_dir import state_folder

HISTORY = "chat_history"


class Lines(Protocol):
    """Where messages come from.

    Attributes:
        blocks: nothing else runs while it reads, so that it has to take Ctrl-C itself.
    """

    blocks: bool

    async def read(self) -> str | None:
        """The next message; None at the end.

        Raises:
            KeyboardInterrupt: Ctrl-C, with nothing typed.
        """
        ...


def lines(commands: Mapping[str, str], below: Callable[[], str]) -> Lines:
    """The best way to read here.

    Args:
        commands: what can be completed, with its description.
        below: the line under the one that is typed.
    """
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return Piped()
    with suppress(ImportError):
        return _Editor(commands, below)
    return _Plain()


class Piped:
    """Lines as they come; each is a message."""

    blocks = True

    async def read(self) -> str | None:
        """See `Lines`."""
        line = sys.stdin.readline() if sys.stdin is not None else ""
        return line.rstrip("\r\n") if line else None


class _Plain:
    """A terminal without an editor."""

    blocks = True

    async def read(self) -> str | None:
        try:
            return input("> ")
        except EOFError:
            return None


class _Editor:
    """A line editor: history and search, pasted lines stay together, commands are completed."""

    blocks = False

    def __init__(self, commands: Mapping[str, str], below: Callable[[], str]) -> None:
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
            bottom_toolbar=below,
            prompt_continuation="  ",
            style=Style.from_dict({"bottom-toolbar": "noreverse ansibrightblack", "prompt": "bold"}),
            output=create_output(stdout=sys.stderr),
            reserve_space_for_menu=4,
            enable_suspend=True,
        )

    async def read(self) -> str | None:
        try:
            text: str = await self._session.prompt_async(
                [("class:prompt", "> ")],
                handle_sigint=False,  # it would take Ctrl-C away from whoever has it; the key is bound anyhow
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
    """What was typed before, in a file that only its user may read; in memory where that cannot be."""
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
def unechoed() -> Iterator[None]:
    """What is typed does not show as long as the block lasts; it is not lost."""
    with _echo(on=False, forget=False):
        yield


@contextmanager
def asking() -> Iterator[None]:
    """What was typed before is forgotten, so that it answers no question; what is typed now shows."""
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
