"""`toolwire check-grammar`: say whether a grammar would have allowed a text, and where it would not."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import toolwire
from toolwire.cli.console import console, emit, labelled, say
from toolwire.cli.format_option import FORMAT_HELP, read_format
from toolwire.cli.input_files import check_one_stdin, read_pieces, read_tools
from toolwire.grammars.message_grammar import GrammarReasoning
from toolwire.grammars.text_match import TextMatch, match_text

EXAMPLES = """Examples:

toolwire check-grammar answer.txt --tools tools.json --format hermes

model | toolwire check-grammar --tools tools.json --format hermes --tool-choice required

toolwire check-grammar answer.txt --tools tools.json --format qwen3_coder --reasoning allowed --json

A model that decodes under the grammar of `toolwire render grammar` writes only what is allowed here. A line end at the
end of the text does not count, because editors add one. llguidance checks the text: `pip install 'toolwire[grammar]'`.

Exit status: 0 the text is allowed as a whole, 1 it is not, 2 wrong usage or bad input."""

BEFORE = 60
"""Number of characters that are shown before the one that is not allowed."""
_FEW = 12
"""Maximum number of characters that are listed one by one."""


def check_grammar(
    file: Annotated[
        str | None, typer.Argument(help="The file with the model's text; standard input if absent or -.")
    ] = None,
    *,
    tools: Annotated[str, typer.Option(help="A JSON file with the definitions of the tools.")],
    format: Annotated[str, typer.Option("--format", "-f", callback=read_format, help=FORMAT_HELP)],
    tool_choice: Annotated[str, typer.Option(help="auto, required, none or a tool's name.")] = "auto",
    parallel: Annotated[
        bool, typer.Option("--parallel/--no-parallel", help="Whether the grammar allows several calls.")
    ] = True,
    reasoning: Annotated[
        GrammarReasoning, typer.Option(help="Reasoning before everything else; open if the prompt has begun it.")
    ] = "none",
    primed: Annotated[
        str | None, typer.Option(help="The end of the prompt; by default, the end of the format's own template.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say whether a grammar would have allowed a text, and which character it would not."""
    check_one_stdin(file, tools)
    written = toolwire.grammar(
        read_tools(tools),
        format=format,
        tool_choice=tool_choice,
        parallel=parallel,
        reasoning=reasoning,
        primed=primed,
    )
    text = "".join(read_pieces(file)).removesuffix("\n").removesuffix("\r")
    match = match_text(written, text)
    if json:
        emit(_as_json(text, match, written.widened))
    else:
        _show(text, match)
        for reason in written.widened:
            say(f"toolwire: the grammar allows more than the schema: {reason}")
    if not match.complete:
        raise typer.Exit(1)


def _as_json(text: str, match: TextMatch, widened: tuple[str, ...]) -> dict[str, Any]:
    line, column = _place(text, match.allowed)
    return {
        "allowed": match.complete,
        "characters": match.allowed,
        "line": line,
        "column": column,
        "refused": text[match.allowed : match.allowed + 1],
        "following": match.following,
        "others": match.others,
        "widened": list(widened),
    }


def _place(text: str, at: int) -> tuple[int, int]:
    """Return the line and the column of a character, both from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _show(text: str, match: TextMatch) -> None:
    screen = console()
    if match.complete:
        screen.print(labelled("allowed", f"all {len(text):,} characters", "green"))
        return
    line, column = _place(text, match.allowed)
    before = text[max(0, match.allowed - BEFORE) : match.allowed]
    if match.allowed == len(text):
        screen.print(labelled("refused", "the text is allowed so far, but a message cannot end there", "red"))
    else:
        character = text[match.allowed]
        screen.print(labelled("refused", f"{character!r} in line {line:,}, column {column:,}", "red"))
    screen.print(labelled("behind", repr(before) if before else "nothing: it is the first character"))
    screen.print(labelled("next", _following(match)))


def _following(match: TextMatch) -> str:
    """Return in words what may follow."""
    if len(match.following) <= _FEW:
        parts = [repr(character) for character in match.following]
    else:
        letters = "".join(character for character in match.following if character.isalnum())
        signs = "".join(character for character in match.following if not character.isalnum())
        parts = [part for part in (_ranges(letters), repr(signs) if signs else "") if part]
    if match.others:
        parts.append("characters outside ASCII")
    return ", ".join(parts) or "only the end of the text"


def _ranges(characters: str) -> str:
    """Return letters and digits as ranges, such as `0-9 a-z`."""
    runs: list[str] = []
    for character in characters:
        if runs and ord(character) == ord(runs[-1][-1]) + 1:
            runs[-1] = runs[-1][0] + character
        else:
            runs.append(character)
    return " ".join("-".join(run) for run in runs)
