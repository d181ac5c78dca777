"""`toolwire profile`: show the profile of a model, from its name, its chat template or an evaluation."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import toolwire
from toolwire.cli.console import CliError, console, emit, styled
from toolwire.cli.input_files import read_pieces
from toolwire.cli.report_profiles import show_report_profiles
from toolwire.wire.format_registry import AUTO
from toolwire.wire.profiles import QUIRKS

EXAMPLES = """Examples:

toolwire profile Qwen/Qwen3-Coder-30B-A3B-Instruct

toolwire profile llama3.1:8b --json

toolwire profile --template chat_template.jinja

toolwire profile --from evaluation

With --from, the formats in which a model was evaluated are compared, and the best one is printed as a profile of a
configuration file."""


def profile(
    name: Annotated[str | None, typer.Argument(help="A hub name, an Ollama tag or a provider's model id.")] = None,
    template: Annotated[str | None, typer.Option(help="A file with a chat template; - is standard input.")] = None,
    report: Annotated[
        Path | None, typer.Option("--from", help="A report of `toolwire eval`, or the directory with it.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the format in which a model writes calls, and the evidence for it."""
    if report is not None:
        if template is not None:
            raise CliError("--from and --template exclude each other")
        show_report_profiles(report, name or "", json=json)
        return
    if (not name) == (template is None):
        raise CliError("give the name of a model, --template FILE or --from REPORT")
    model_profile = (
        toolwire.profile(name) if name is not None else toolwire.detect_from_template("".join(read_pieces(template)))
    )
    if json:
        emit(asdict(model_profile))
        return
    screen = console()
    screen.print(styled(model_profile.format, "bold"))
    screen.print(styled(model_profile.reason))
    if model_profile.prompt_format not in (AUTO, model_profile.format):
        screen.print(styled(f"In a prompt, ask for: {model_profile.prompt_format}"))
    if model_profile.forms:
        screen.print(styled(f"Asked in a prompt, such models wrote ({model_profile.answers:,} answers with calls):"))
        for share in model_profile.forms:
            screen.print(styled(f"  {share.share:6.1%}  {share.form}{' (dialect)' if share.dialect else ''}"))
    if model_profile.api:
        screen.print(styled(f"API: {model_profile.api}"))
    if model_profile.spans:
        reasoning = f"Reasoning: {model_profile.spans[0].open} ... {model_profile.spans[0].close}"
        screen.print(styled(reasoning + (", opened by the prompt" if model_profile.reasoning_started else "")))
    for quirk in model_profile.quirks:
        screen.print(styled(f"{quirk}: {QUIRKS[quirk]}"))
