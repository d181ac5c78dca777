"""`toolwire profile`: what is known about a model, from its name or its chat template."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

import toolwire
from toolwire.cli.console import CliError, console, emit, styled
from toolwire.cli.input_files import read_pieces
from toolwire.wire.profiles import QUIRKS

EXAMPLES = """Examples:

toolwire profile Qwen/Qwen3-Coder-30B-A3B-Instruct

toolwire profile llama3.1:8b --json

toolwire profile --template chat_template.jinja"""


def profile(
    name: Annotated[str | None, typer.Argument(help="A hub name, an Ollama tag or a provider's model id.")] = None,
    template: Annotated[str | None, typer.Option(help="A file with a chat template; - is standard input.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say in which format a model writes calls, and how that is known."""
    if (not name) == (template is None):
        raise CliError("give either a model's name or --template FILE")
    found = (
        toolwire.profile(name) if name is not None else toolwire.detect_from_template("".join(read_pieces(template)))
    )
    if json:
        emit(asdict(found))
        return
    screen = console()
    screen.print(styled(found.format, "bold"))
    screen.print(styled(found.reason))
    if found.api:
        screen.print(styled(f"API: {found.api}"))
    if found.spans:
        reasoning = f"Reasoning: {found.spans[0].open} ... {found.spans[0].close}"
        screen.print(styled(reasoning + (", opened by the prompt" if found.reasoning_started else "")))
    for quirk in found.quirks:
        screen.print(styled(f"{quirk}: {QUIRKS[quirk]}"))
