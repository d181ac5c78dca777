"""`toolwire te`: the command `te`, by another name."""

from __future__ import annotations

import typer

SETTINGS = {
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
    "ignore_unknown_options": True,
}
"""All that stands behind it belongs to `te`, which reads its options itself."""


def te(context: typer.Context) -> None:
    """Run a command and show what it gives in an envelope; `te` is the same and starts faster."""
    from toolwire.envelope.te.main import main

    main(context.args)
