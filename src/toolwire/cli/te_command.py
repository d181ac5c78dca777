"""`toolwire te`: the command `te` as a subcommand."""

from __future__ import annotations

import typer

SETTINGS = {
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
    "ignore_unknown_options": True,
}
"""Settings that pass all further arguments to `te`, which parses its options itself."""


def te(context: typer.Context) -> None:
    """Run a command and show its output in an envelope; `te` is the same and starts faster."""
    from toolwire.envelope.te.main import main

    main(context.args)
