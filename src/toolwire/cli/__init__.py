"""The command line: `toolwire parse`, `render`, `tools`, `call`, `ask` and their like, one module each.

A command's module is imported when the command is given, so that nobody waits for what other commands need.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

import typer
from typer.exceptions import TyperException

from toolwire.cli.console import CliError, leave, safe, say
from toolwire.errors import ConfigurationError, DefinitionError, PolicyWarning, RenderError, ToolwireError

INTERRUPTED = 130
_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""What goes wrong with standard output; other errors of the system say themselves what they are about."""

COMMANDS: Final = (
    *("parse", "render", "formats", "convert", "profile", "tools", "call", "ask", "chat", "init", "mcp", "te"),
    *("trace", "stats", "coach", "runs"),
)
"""The commands, as the help lists them; each is a module, which holds a function of its name or an `app`."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # here, since nothing else needs it and it loads much

        sys.stdout.write(f"toolwire {version('toolwire')}\n")
        raise typer.Exit


def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Tool calling with any language model."""


def program(arguments: Sequence[str]) -> typer.Typer:
    """The program, with the command that is given alone; with all of them where none is, for help and suggestions."""
    app = typer.Typer(
        name="toolwire",
        epilog="Exit status: 0 done, 1 it failed, 2 wrong usage or bad input, 3 a call was denied, 130 interrupted.",
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_options)
    given = next((word for word in arguments if not word.startswith("-")), "")  # options before it take no values
    if given in COMMANDS:
        _add(app, given)
    elif arguments != ["--version"]:
        for name in COMMANDS:
            _add(app, name)
    return app


def _add(app: typer.Typer, name: str) -> None:
    found = vars(importlib.import_module(f"toolwire.cli.{name}_command"))
    if "app" in found:
        app.add_typer(found["app"], name=name)
    else:
        app.command(epilog=found.get("EXAMPLES"), context_settings=found.get("SETTINGS"))(found[name])


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; errors and warnings are lines on standard error."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with _warnings_shown():
            return int(program(arguments)(arguments, prog_name="toolwire", standalone_mode=False) or 0)
    except CliError as error:
        return _fail(str(error), error.status)
    except TyperException as error:
        message = error.format_message()
        return _fail(message, error.exit_code) if message else error.exit_code
    except (ConfigurationError, DefinitionError, RenderError) as error:
        return _fail(str(error), 2)
    except ToolwireError as error:
        return _fail(str(error), 1)


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """What a policy names and is not there is said in one line each, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PolicyWarning)
        usual, said = warnings.showwarning, set[str]()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, PolicyWarning):
                usual(message, category, *place, **more)
            elif str(message) not in said:
                said.add(str(message))
                say(f"toolwire: {message}", "yellow")

        warnings.showwarning = show
        yield


def main() -> None:
    """The entry point `toolwire`."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # closed by the caller: there is nobody to tell
            sys.exit(1)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    try:
        status = run()
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            what = "cannot write: " if error.errno in _WRITING else f"{error.filename}: " if error.filename else ""
            _fail(f"{what}{error.strerror or error}", 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    if status == INTERRUPTED:
        leave(status)
    sys.exit(status)


def _fail(message: str, status: int) -> int:
    line = " ".join(safe(message).split())
    print(f"toolwire: {line}", file=sys.stderr)
    return status
