"""`execute_command`: a program, run without a shell, in a directory below the roots.

A command is a list of words. Text is accepted too if a shell would read it as words and nothing else: plain words,
`'...'`, and `"..."` without `$`, backquotes and backslashes. Other shell syntax is refused, unless the program that
offers the tool names a shell. That shell then runs the text, and the preview says so.

The environment contains a few well-known variables and those that the program adds: no keys. The command is not
sandboxed, so it should need approval, or a rule should allow it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolwire._surface import check_items, check_number
from toolwire.builtin import previews
from toolwire.builtin.shown_calls import ShownCalls, changeable_code, code_note, link_note
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.runtime.directory_descriptors import real_path
from toolwire.runtime.launched_files import shell_words
from toolwire.text.escape import escape_invisible
from toolwire.text.truncate import omission

if TYPE_CHECKING:
    from toolwire.runtime.process_groups import CapturedOutput

MAX_OUTPUT = 20_000
"""Maximum size of output in a result, in bytes, half of it from the end."""
DEFAULT_SECONDS = 120.0
MOST_SECONDS = 600.0
MAX_TEXT = 100_000
"""Maximum length of a command as text, in characters; systems accept no longer words either."""
MAX_TOLD = 600
"""Maximum length of output in an error, in characters."""

QUIET = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
"""Variables that keep programs from waiting for input at a terminal."""

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_SPECIAL = frozenset(";&|<>`$(){}*?[]!\\")
"""Characters that a shell interprets outside quotes; within double quotes see `_SPECIAL_QUOTED`."""
_SPECIAL_QUOTED = frozenset("`$!\\")
_SPECIAL_FIRST = frozenset("~#")


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """Settings for commands.

    Attributes:
        shell: path of a shell that runs text with shell syntax; "" refuses such text.
        environment: additional variables for commands.
        passed_on: names of this program's variables that commands get too.
        seconds: default time limit.
        most_seconds: maximum time limit that a model may ask for.
        output: maximum size of output in a result, in bytes, half of it from the end.
    """

    shell: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    passed_on: tuple[str, ...] = ()
    seconds: float = DEFAULT_SECONDS
    most_seconds: float = MOST_SECONDS
    output: int = MAX_OUTPUT

    def __post_init__(self) -> None:
        """Check that the limits are numbers, and that names of variables are not one text.

        Raises:
            TypeError, ValueError: they are not; see `check_number` and `check_items`.
        """
        check_items("passed_on", self.passed_on, str, 'a tuple of names, such as ("VIRTUAL_ENV",)')
        check_number("seconds", self.seconds, "a number of seconds")
        check_number("most_seconds", self.most_seconds, "a number of seconds")
        check_number("output", self.output, "a number of bytes", whole=True)


class Commands:
    """The tool `execute_command`."""

    def __init__(self, roots: AllowedRoots, settings: CommandSettings | None = None) -> None:
        self._roots = roots
        self._settings = settings or CommandSettings()
        self._shown = ShownCalls()

    async def execute_command(self, command: list[str] | str, cwd: str = ".", seconds: float = 0) -> str:
        """Run a program and give back what it writes, and its exit status.

        Args:
            command: the program and its arguments, one word each: ["git", "log", "-3"]. No shell reads them, so there
                are no pipes, redirections, wildcards or variables.
            cwd: the directory it runs in, relative to the root.
            seconds: how long it may take; 0 for the default time.
        """
        from toolwire.runtime import processes  # here, because it brings asyncio with it

        settings = self._settings
        argv, by_shell = self._argv(command)
        limit = self._limit(seconds)
        env = self._environment()
        previewed = self._shown.take([command, cwd])
        with self._roots.directory(cwd) as directory:
            if previewed is not None:
                code = self._code(argv, directory, env, by_shell=by_shell)
                if changed := _difference(previewed, _state(argv[0], directory, env, code)):
                    raise ToolError(
                        f"{changed.format(cwd=cwd, program=argv[0])} since this was approved, so nothing was run"
                    )
            ended = await processes.run(
                argv, directory=directory, env=env, seconds=limit, max_output=settings.output, ask_first=True
            )
        text = _told(ended.out)
        if ended.timed_out:
            last = text[-MAX_TOLD:].strip()
            raise ToolError(f"{argv[0]} was stopped after {limit:g} seconds" + (f"; it wrote: {last}" if last else ""))
        newline = "" if text.endswith("\n") or not text else "\n"
        return f"{text}{newline}({_status(ended.status)})"

    def preview(self, arguments: dict[str, Any]) -> str:
        """Return exactly what would run, and where."""
        argv, by_shell = self._argv(arguments["command"])
        cwd, limit = arguments.get("cwd", "."), self._limit(arguments.get("seconds", 0))
        with self._roots.directory(cwd) as directory:
            env = self._environment()
            code = self._code(argv, directory, env, by_shell=by_shell)
            self._shown.put([arguments["command"], cwd], json.dumps(_state(argv[0], directory, env, code)))
            note = link_note(self._roots, cwd, real_path(directory)) + code_note(code)
            action = "have a shell run this" if by_shell else "run"
            return (
                f"{note}{action} in {escape_invisible(cwd)}, for at most {limit:g} seconds:\n{previews.command(argv)}"
            )

    def _environment(self) -> dict[str, str]:
        """Return the whole environment of a command."""
        from toolwire.runtime import processes  # here, because it brings asyncio with it

        env = processes.environment(*self._settings.passed_on) | QUIET | dict(self._settings.environment)
        env["PATH"] = processes.absolute_path(env.get("PATH", os.defpath))
        return env

    def _code(self, argv: list[str], directory: int, env: Mapping[str, str], *, by_shell: bool) -> dict[str, str]:
        """Return what `changeable_code` does; `by_shell`: the last argument is text that a shell interprets."""
        words_read = [argv[0], *shell_words(argv[-1])] if by_shell else argv
        return changeable_code(words_read, real_path(directory), env, self._roots.roots)

    def _limit(self, seconds: float) -> float:
        if not 0 <= seconds <= self._settings.most_seconds:
            raise ToolError(f"a command may take up to {self._settings.most_seconds:g} seconds, not {seconds:g}")
        return seconds or self._settings.seconds

    def _argv(self, command: list[str] | str) -> tuple[list[str], bool]:
        """Return the argument vector, and whether it is a shell that interprets the command."""
        if isinstance(command, str):
            if len(command) > MAX_TEXT:
                raise ToolError(f"the command has {len(command):,} characters; at most {MAX_TEXT:,} are read")
            try:
                return words(command), False
            except ToolError:
                if not self._settings.shell or "\0" in command:
                    raise
                return [self._settings.shell, "-c", command], True
        if not command or not command[0]:
            raise ToolError("the command is empty")
        if any("\0" in word for word in command):
            raise ToolError("a word of the command has a null character")
        return list(command), False


_CHANGES = {
    "path": "{cwd} leads elsewhere",
    "directory": "{cwd} is another directory",
    "program": "the program {program} has changed",
    "code": "a file of code that the command names has changed",
    "environment": "the environment of commands has changed",
}


def _state(program: str, directory: int, env: Mapping[str, str], code: Mapping[str, str]) -> dict[str, Any]:
    """Return what a preview shows a command to depend on: its directory, its program, its code and its environment."""
    place = os.fstat(directory)
    executable = program if "/" in program else shutil.which(program, path=env["PATH"])
    identity: list[Any] = []
    with suppress(OSError, ValueError):  # there is no such program: running it says so
        if executable is not None:
            file = os.stat(executable, dir_fd=directory)
            identity = [executable, file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns]
    return {
        "path": real_path(directory),
        "directory": [place.st_dev, place.st_ino],
        "program": identity,
        "code": code,
        "environment": hashlib.sha256(json.dumps(sorted(env.items())).encode()).hexdigest(),
    }


def _difference(previewed: str, state: Mapping[str, Any]) -> str:
    """Return what has changed since a preview, as the beginning of a sentence; "" for nothing."""
    before = json.loads(previewed)
    return next((words for name, words in _CHANGES.items() if before[name] != state[name]), "")


def words(text: str) -> list[str]:
    """Split text into the words that a shell would read.

    Raises:
        ToolError: the text contains other shell syntax, or a quote is not closed.
    """
    complete: list[str] = []
    word: list[str] | None = None
    at = 0
    while at < len(text):
        character = text[at]
        if character in " \t":
            complete += [] if word is None else ["".join(word)]
            word = None
        elif character in "'\"":
            end = text.find(character, at + 1)
            if end < 0:
                raise ToolError(f"the quote {character} is not closed; give the command as a list of words")
            inside = text[at + 1 : end]
            _refuse(inside, _SPECIAL_QUOTED if character == '"' else frozenset())
            word = word if word is not None else []
            word += [inside] if inside else []
            at = end
        else:
            _refuse(character, _SPECIAL if word else _SPECIAL | _SPECIAL_FIRST)
            word = word if word is not None else []
            word.append(character)
        at += 1
    complete += [] if word is None else ["".join(word)]
    if not complete or not complete[0]:
        raise ToolError("the command is empty")
    if _ASSIGNMENT.match(text.lstrip(" \t")):
        raise ToolError("the command begins with a variable, which only a shell would set; leave it out")
    return complete


def _refuse(text: str, special: frozenset[str]) -> None:
    for character in text:
        if character in special:
            raise ToolError(
                f"no shell interprets `{character}` here; give the program and its arguments as a "
                "list of words, one program at a time, and the directory to run in as cwd"
            )
        if character < " " or character == "\x7f":
            raise ToolError(
                f"the command has the character {escape_invisible(character)} in it; give it as a list of words"
            )


def _told(output: CapturedOutput) -> str:
    """Return a program's output, with a note on what was left out."""
    if not output.left_out:
        return output.joined().decode("utf-8", "replace")
    head, tail = (part.decode("utf-8", "replace") for part in output.parts())
    return f"{head}\n{omission(output.left_out, 'byte')}\n{tail}"


def _status(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by the signal {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by the signal {-status}"
