"""`toolwire inspect`: show recorded requests of a gateway, runs of agents, or rows of tests on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.console import say
from toolwire.text.counted import counted

EXAMPLES = """Examples:

toolwire inspect toolwire-exchanges.jsonl

toolwire trace last --json > trace.jsonl && toolwire inspect trace.jsonl

toolwire inspect rows.jsonl --port 4200

The files are exports of the gateway's inspector, the output of toolwire trace --json, databases of recorded runs, or
rows of conformance tests. The page is shown on this machine alone, and needs the key in its address."""


def inspect(
    files: Annotated[list[Path], typer.Argument(help="Files of JSON lines, or databases of recorded runs.")],
    port: Annotated[int, typer.Option(help="Port of the page; 0 for any that is free.")] = 0,
) -> None:
    """Show recorded requests, runs or test rows in the inspector, on a page on this machine."""
    with needs_extra("toolwire inspect", "gateway"):
        from toolwire.inspector.file_server import show_files
        from toolwire.inspector.trace_files import open_files

    inspector = open_files(files)
    show_files(inspector, port, lambda url: say(f"toolwire: {counted(len(inspector.ids()), 'request')} at {url}", ""))
