"""`toolwire render`: write definitions, calls or results as a model expects them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

import toolwire
from toolwire.cli.console import CliError, emit, say, write_raw
from toolwire.cli.format_option import FORMAT_HELP, read_format
from toolwire.cli.input_files import display_name, loads, read_json, read_tools
from toolwire.cli.option_groups import takes_options
from toolwire.grammars.message_grammar import GrammarReasoning, GrammarSyntax
from toolwire.messages import ToolCall, ToolResult

EXAMPLES = """Examples:

toolwire render definitions tools.json --format hermes

toolwire render calls calls.json --format forge_xml --tools tools.json

toolwire render results results.json --format anthropic_xml

toolwire render grammar tools.json --format hermes --syntax gbnf

toolwire render grammar tools.json --format hermes --tool-choice required --no-parallel --json

A definition is `{"name": ..., "description": ..., "parameters": {...}}`, or has the shape of OpenAI, Anthropic or MCP.
A call is `{"name": ..., "arguments": {...}}`. A result is `{"tool_name": ..., "call_id": ..., "result": ...}`, or has
`"error"` in place of `"result"`. A file contains one of them or a list.

What a grammar cannot express of the schemas is reported on standard error; with `--json` it is in `widened`."""


class Subject(StrEnum):
    """The kind of value to render."""

    DEFINITIONS = "definitions"
    CALLS = "calls"
    RESULTS = "results"
    GRAMMAR = "grammar"


@dataclass(frozen=True, slots=True)
class GrammarOptions:
    """The options of a grammar; None or False for one that is not on the command line."""

    syntax: Annotated[GrammarSyntax | None, typer.Option(help="The language of a grammar; lark by default.")] = None
    tool_choice: Annotated[
        str | None, typer.Option(help="auto, required, none or a tool's name, for a grammar; auto by default.")
    ] = None
    parallel: Annotated[
        bool | None,
        typer.Option("--parallel/--no-parallel", help="Whether a grammar allows several calls; it does by default."),
    ] = None
    reasoning: Annotated[
        GrammarReasoning | None,
        typer.Option(help="Reasoning before everything else, for a grammar; open if the prompt has begun it."),
    ] = None
    primed: Annotated[
        str | None,
        typer.Option(help="The end of the prompt, for a grammar; by default, the end of the format's own template."),
    ] = None
    json: Annotated[
        bool, typer.Option("--json", help="Print a grammar as one JSON object, with what it cannot express.")
    ] = False

    def names(self) -> list[str]:
        """Return the options that are on the command line."""
        names = [f"--{name.replace('_', '-')}" for name, value in asdict(self).items() if value not in (None, False)]
        return names if self.parallel is not False else [*names, "--no-parallel"]

    def grammar_of(self, tools: list[Any], format: str) -> toolwire.Grammar:
        """Return the grammar of a message that calls tools; see `toolwire.grammar` for the errors."""
        return toolwire.grammar(
            tools,
            format=format,
            syntax=self.syntax or "lark",
            tool_choice=self.tool_choice or "auto",
            parallel=self.parallel is not False,
            reasoning=self.reasoning or "none",
            primed=self.primed,
        )


@takes_options(GrammarOptions)
def render(
    subject: Annotated[
        Subject, typer.Argument(help="The content of the file; grammar: write one for the definitions in it.")
    ],
    format: Annotated[str, typer.Option("--format", "-f", callback=read_format, help=FORMAT_HELP)],
    file: Annotated[str | None, typer.Argument(help="A JSON file; - is standard input.")] = None,
    tools: Annotated[
        str | None,
        typer.Option(
            help="A JSON file with the definitions of the called tools; for a grammar, the same as the argument."
        ),
    ] = None,
    *,
    options: GrammarOptions,
) -> None:
    """Write definitions, calls or results as a model expects them, or the grammar of its calls."""
    if subject is not Subject.GRAMMAR and (names := options.names()):
        raise CliError(f"only render grammar takes {' and '.join(names)}")
    if subject is Subject.GRAMMAR:
        if file is not None and tools is not None:
            raise CliError(f"the tools of a grammar are in one file, and not in {file} and {tools}")
        file = file or tools
    if file is None:
        raise CliError(f"name the JSON file with the {'tools' if subject is Subject.GRAMMAR else subject.value}")
    toolwire.get_format(format)
    match subject:
        case Subject.DEFINITIONS:
            text = toolwire.render_definitions(read_tools(file), format=format)
        case Subject.CALLS:
            calls = [_call(value, display_name(file)) for value in _objects(file)]
            text = toolwire.render_calls(calls, format=format, tools=read_tools(tools))
        case Subject.RESULTS:
            text = toolwire.render_results(
                [_result(value, display_name(file)) for value in _objects(file)], format=format
            )
        case Subject.GRAMMAR:
            written = options.grammar_of(read_tools(file), format)
            if options.json:
                emit(asdict(written))
                return
            for reason in written.widened:
                say(f"toolwire: {reason}")
            text = written.text
    write_raw(text if text.endswith("\n") else text + "\n")


def _objects(file: str) -> list[Mapping[str, Any]]:
    value = read_json(file)
    objects = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in objects):
        raise CliError(f"{display_name(file)} must contain an object or a list of objects")
    return objects


def _call(value: Mapping[str, Any], file: str) -> ToolCall:
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    arguments = inner.get("arguments", inner.get("input", {}))
    if isinstance(arguments, str):
        arguments = loads(arguments, f"{file}: the arguments text of a call")
    name = inner.get("name")
    has_arguments = "arguments" in inner or "input" in inner
    if not (has_arguments and isinstance(name, str) and isinstance(arguments, dict)):
        raise CliError(f'{file}: a call needs "name" (text) and "arguments" (an object)')
    return ToolCall(name, arguments, id=str(value.get("id", "")), server=str(value.get("server", "")))


def _result(value: Mapping[str, Any], file: str) -> ToolResult:
    name = value.get("tool_name", value.get("name"))
    if not isinstance(name, str) or ("result" in value) == ("error" in value):
        raise CliError(f'{file}: a result needs "tool_name" (text) and either "result" or "error"')
    error = value.get("error")
    return ToolResult(str(value.get("call_id", "")), name, value.get("result"), None if error is None else str(error))
