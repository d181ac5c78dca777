"""`toolwire parse`: read the tool calls in a model's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

import toolwire
from toolwire.cli.console import call_line, console, emit, event_dict, labelled, plain, say
from toolwire.cli.fallback_option import Fallback, fallback_level
from toolwire.cli.format_option import FORMAT_HELP, read_format
from toolwire.cli.input_files import check_one_stdin, display_name, read_pieces, read_tools
from toolwire.cli.option_groups import takes_options
from toolwire.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    ProblemFound,
    ReasoningDelta,
)
from toolwire.messages import ParsedResponse, Problem, ToolCall
from toolwire.tools import definitions
from toolwire.wire.format_registry import AUTO, all_formats
from toolwire.wire.reading_report import report_reading

EXAMPLES = """Examples:

toolwire parse answer.txt

model | toolwire parse --format hermes --tools tools.json --stream

toolwire parse --json answer.txt | jq .tool_calls

toolwire parse --explain --tools tools.json answer.txt

toolwire parse --fallback embedded --tools tools.json answer.txt

--tools takes one definition, a list, or an object with the key `tools`. A definition is
`{"name", "description", "parameters"}`, or has the shape of OpenAI, Anthropic or MCP.

Exit status 1: the text has a problem."""

MAX_OPENERS = 20
"""Maximum number of openers that `--explain` lists."""

NO_CALL = "no tool call"
NO_CALL_UNKNOWN = f"{NO_CALL} (calls without markers, such as bare JSON, are parsed only with --tools)"
NO_CALL_EMPTY = f"{NO_CALL} (calls without markers, such as bare JSON, are parsed only if --tools defines tools)"


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """The options that say how `parse` reads a text; see `takes_options`."""

    format: Annotated[str, typer.Option("--format", "-f", callback=read_format, help=FORMAT_HELP)] = "auto"
    tools: Annotated[str | None, typer.Option(help="A JSON file with the definitions of the tools.")] = None
    reasoning_started: Annotated[
        bool, typer.Option("--reasoning-started", help="Parse the text as if the prompt had opened a reasoning block.")
    ] = False
    fallback: Fallback = ""
    primed: Annotated[
        str | None, typer.Option(help="The end of the prompt; by default, the end of the format's own template.")
    ] = None


@takes_options(ReadingOptions)
def parse(
    options: ReadingOptions,
    file: Annotated[
        str | None, typer.Argument(help="The file with the model's text; standard input if absent or -.")
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Show each event as soon as it is certain.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what was looked for, and why a text is not a call.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the response as JSON; with --stream, one event per line.")
    ] = False,
) -> None:
    """Read the tool calls in a model's text."""
    format, tools = options.format, options.tools
    check_one_stdin(file, tools)
    level = fallback_level(options.fallback)
    tool_list = read_tools(tools)
    if not tool_list and format.lower() not in (AUTO, "plain") and not toolwire.get_format(format).markers:
        todo = "add --tools" if tools is None else f"{display_name(tools)} defines no tools"
        say(f"toolwire: {format} has no markers of its own, so only calls to known tools are parsed: {todo}")
    no_call = NO_CALL if explain else f"{NO_CALL} (--explain says why)"
    if not tool_list and format.lower() == AUTO:
        no_call = NO_CALL_UNKNOWN if tools is None else NO_CALL_EMPTY
    parser = toolwire.StreamParser(
        format=format,
        tools=tool_list,
        reasoning_started=options.reasoning_started,
        primed=options.primed,
        fallback=level,
    )
    pieces = read_pieces(file)
    if explain:
        text = "".join(pieces)
        _explain(text, format, tool_list, json=json)
        pieces = iter((text,))
    events = _events(parser, pieces)
    if stream:
        problems = _show_events(events, no_call, json=json)
    else:
        response = toolwire.collect(events)
        problems = bool(response.problems)
        if json:
            emit(plain(response))
        else:
            _show(response, no_call)
    if problems:
        raise typer.Exit(1)


def _explain(text: str, format: str, tools: Iterable[Any], *, json: bool) -> None:
    detected = [wire for wire in all_formats() if wire.detected]
    formats = detected if format.lower() == AUTO else [toolwire.get_format(format)]
    report = report_reading(text, formats, definitions(tools))
    if json:
        emit({"explanation": plain(report)})
        return
    _row("looked for", report.looked_for, "dim")
    _row("openers", _openers(report.openers), "dim")
    _row("markers", "\n".join(report.markers) or "none", "dim")
    _row("all calls?", report.whole_message, "dim")
    _row("amid prose", "\n".join(report.amid_prose) or "no call to a known tool", "dim")


def _openers(openers: Sequence[str]) -> str:
    """Return the openers of one format; of all formats together only their number, because nobody reads a hundred."""
    if len(openers) <= MAX_OPENERS:
        return "  ".join(openers) or "none"
    return f"{len(openers)} of all formats; --format NAME lists those of one, --json lists all"


def _events(parser: toolwire.StreamParser, pieces: Iterable[str]) -> Iterator[Event]:
    for piece in pieces:
        yield from parser.feed(piece)
    yield from parser.finish()


def _show_events(events: Iterable[Event], nothing: str, *, json: bool) -> bool:
    problems = has_calls = False
    for event in events:
        problems = problems or isinstance(event, ProblemFound)
        has_calls = has_calls or isinstance(event, CallStart)
        if json:
            emit(event_dict(event))
        else:
            _line(event)
    if not (json or has_calls or problems):
        say(nothing)
    return problems


def _line(event: Event) -> None:
    match event:
        case ContentDelta(text):
            _row("content", repr(text))
        case ReasoningDelta(text):
            _row("reasoning", repr(text), "dim")
        case CallStart(index, name, id):
            _row("call start", f"#{index} {name} ({id})", "bold cyan")
        case ArgumentsDelta(index, text):
            _row("arguments", f"#{index} {text!r}", "cyan")
        case CallEnd(index, call, complete):
            _row("call end", f"#{index} {_call(call)}" + ("" if complete else " INCOMPLETE"), "bold cyan")
        case ProblemFound(problem):
            _row("problem", _problem(problem), "red")
        case Finish(reason):
            _row("finish", reason.value)


def _show(response: ParsedResponse, nothing: str) -> None:
    if response.reasoning:
        _row("reasoning", response.reasoning, "dim")
    if response.content.strip():
        _row("content", response.content.strip("\n"))
    for call in response.tool_calls:
        _row("call", _call(call), "bold cyan")
    for call in response.incomplete:
        _row("incomplete", _call(call), "yellow")
    for problem in response.problems:
        _row("problem", _problem(problem), "red")
    if not (response.tool_calls or response.incomplete or response.problems):
        say(nothing)


def _row(label: str, text: str, style: str = "") -> None:
    """Print a labelled line; further lines of the text are indented."""
    console().print(labelled(label, text, style, indent=12))


def _call(call: ToolCall) -> str:
    notes = [f"format {call.format}"] if call.format else []
    notes += [f"server {call.server}"] if call.server else []
    notes += [f"repaired: {', '.join(call.repairs)}"] if call.repairs else []
    notes += [f"confidence {call.confidence:g}"] if call.confidence != 1 else []
    return call_line(call.name, call.arguments) + (f"  [{'; '.join(notes)}]" if notes else "")


def _problem(problem: Problem) -> str:
    return f"{problem.kind} at {problem.position}: {problem.message}"
