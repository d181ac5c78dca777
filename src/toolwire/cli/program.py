"""The commands as one Typer program."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.exceptions import TyperException

from toolwire.cli import COMMANDS, EXIT_STATUS, INTERRUPTED, SUMMARY, fail
from toolwire.cli.console import CliError, say
from toolwire.errors import ConfigurationError, DefinitionError, RenderError, ToolwireError
from toolwire.text.suggest import closest, did_you_mean


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # here, because it is slow to import and only used here

        sys.stdout.write(f"toolwire {version('toolwire')}\n")
        raise typer.Exit


def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Accept the options before a command."""


def program(arguments: Sequence[str]) -> typer.Typer:
    """Return the program with the command that the arguments name; with all commands if there are no arguments.

    For arguments that name no command, the commands have a name and a summary only: what they need is not imported.
    """
    app = typer.Typer(
        name="toolwire",
        help=SUMMARY,
        epilog=EXIT_STATUS,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_options)
    command = next((word for word in arguments if not word.startswith("-")), "")  # options before it take no values
    if command in COMMANDS:
        _add(app, command)
    elif not arguments:
        for name in COMMANDS:
            _add(app, name)
    elif arguments != ["--version"]:
        for name, summary in COMMANDS.items():
            app.command(name, help=summary)(_name_only)
    return app


def _name_only() -> None:
    """Stand for a command in help and suggestions; it is never run, because the arguments name no command."""


def _add(app: typer.Typer, name: str) -> None:
    function = name.replace("-", "_")
    module = vars(importlib.import_module(f"toolwire.cli.{function}_command"))
    if "app" in module:
        app.add_typer(module["app"], name=name)
        for command in module["app"].registered_commands:
            command.epilog = _unwrapped(command.epilog)
    else:
        epilog, settings = _unwrapped(module.get("EXAMPLES")), module.get("SETTINGS")
        app.command(name, epilog=epilog, context_settings=settings)(module[function])


def _unwrapped(epilog: str | None) -> str | None:
    """Return the paragraphs on one line each, because Typer keeps line ends when it wraps them to the terminal.

    A word in brackets, as in `toolwire[grammar]`, is escaped: Typer would take it for markup and leave it out.
    """
    return epilog and escape("\n\n".join(" ".join(paragraph.split()) for paragraph in epilog.split("\n\n")))


def run_program(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status; errors and warnings are lines on standard error."""
    try:
        with _warnings_shown():
            return int(program(arguments)(arguments, prog_name="toolwire", standalone_mode=False) or 0)
    except typer.Abort:
        return INTERRUPTED
    except CliError as error:
        return fail(str(error), error.status)
    except TyperException as error:
        message = _usage_message(error)
        return fail(message, error.exit_code) if message else error.exit_code
    except (ConfigurationError, DefinitionError, RenderError) as error:
        return fail(str(error), 2)
    except ToolwireError as error:
        return fail(str(error), 1)


def _usage_message(error: TyperException) -> str:
    """Return Typer's message for wrong usage, with the nearest choice and the command whose help says more."""
    # The validation behind Typer puts the kind of its error before the message.
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    if choice := _CHOICE.search(message):
        message += did_you_mean(closest(choice[1], re.findall(r"'([^']*)'", choice[2])))
    context = getattr(error, "ctx", None)
    return f"{message} (`{context.command_path} --help` says more)" if message and context else message


_CHOICE = re.compile(r"'([^']*)' is not one of (.*)")


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """Print each warning for users once, as a line on standard error: a faulty policy, a format that does not load."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        default, shown = warnings.showwarning, set[str]()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, UserWarning):
                default(message, category, *place, **more)
            elif str(message) not in shown:
                shown.add(str(message))
                say(f"toolwire: {message}", "yellow")

        warnings.showwarning = show
        yield
