"""`toolwire ask`: a model, on this machine or behind an API, answers a question with read-only file tools."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Annotated, Any

import typer

import toolwire
from toolwire import textloop as agent
from toolwire.builtin import reading_tools
from toolwire.cli.screen import CliError, call_line, console, emit, plain, safe, say, styled
from toolwire.errors import ToolError
from toolwire.textloop import Step
from toolwire.wire.registry import AUTO

EXAMPLES = """Examples:

toolwire ask "In which file is the function collect defined? Search for def collect in src." --root .

toolwire ask "Which files are in docs?" --root . --format anthropic_xml

toolwire ask "What is in notes.txt?" --root ~/notes --model ~/models/my.gguf --json

toolwire ask "Which files are in docs?" --root . --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B -f hermes

Models this small read little and err often: ask for one fact, and name the folder or the words to look for.

Exit status 1: the question was not answered."""

DEFAULT_MODEL = "1.5b"
RESULT_FOR_SMALL = 4_000
"""Characters of a file that models with little memory are told at a time."""
RESULT_LINES = 15
RESULT_CHARACTERS = 1_500


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    root: Annotated[str | None, typer.Option(help="The directory the model may read; without it, none.")] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", help="Wire format the model is asked to write.")
    ] = "forge_xml",
    model: Annotated[
        str,
        typer.Option(help="0.5b, 1.5b, the path of a GGUF file, or hf:REPO/FILE; with --api or --base-url, its name."),
    ] = DEFAULT_MODEL,
    api: Annotated[
        str | None, typer.Option(help="The API of a model that is not on this machine; the key is in the environment.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="The server's address; its API is openai_chat unless --api says.")
    ] = None,
    key_env: Annotated[
        str, typer.Option("--key-env", help="The environment variable that holds the key for --base-url.")
    ] = "",
    max_rounds: Annotated[int, typer.Option(min=1, max=100, help="How many times the model may write.")] = 6,
    require_tool_call: Annotated[
        bool, typer.Option("--require-tool-call", help="Fail unless a tool call was read and run.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per event.")] = False,
) -> None:
    """Ask a model; it may list, read and search files below --root."""
    if format.lower() in (AUTO, "plain"):
        raise CliError(f"{format} cannot be asked for; `toolwire formats` lists formats that a model can write")
    toolwire.get_format(format)
    remote = api is not None or base_url is not None
    if remote and model == DEFAULT_MODEL:
        raise CliError("say with --model what the server calls the model")
    try:
        tools = reading_tools(*([root] if root is not None else []), characters=RESULT_FOR_SMALL)
    except ToolError as error:
        raise CliError(str(error)) from error
    if not tools:
        say("toolwire: no --root, so the model cannot look into any file", "yellow")
    show = _emit if json else _Screen().show
    ran, answered = False, False
    opened = _remote(api or "openai_chat", model, base_url or "", key_env) if remote else _opened(model)
    steps = agent.run(question, model=opened, tools=tools, format=format, max_rounds=max_rounds)
    for step in _waited_for(steps, here=not remote):
        show(step)
        ran = ran or bool(step.result and step.result.success)
        answered = answered or step.reason == "answered"
    if require_tool_call and not ran:
        raise CliError("no tool call was read and run", status=1)
    if tools and answered and not ran:
        say("toolwire: no tool was run, so the answer rests on nothing below --root", "yellow")
    if not answered:
        raise typer.Exit(1)


def _waited_for(steps: Iterator[Step], *, here: bool) -> Iterator[Step]:
    """The steps; while none comes a terminal shows, on standard error, what is waited for."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        if here:
            say("toolwire: the model reads the prompt; on a small machine that takes up to a minute")
        yield from steps
        return
    reading = screen.status(styled("the model reads", "dim"))
    reading.start()
    try:
        for step in steps:
            reading.stop()
            yield step
            if step.kind in ("result", "correction"):
                reading.start()
    finally:
        reading.stop()


def _remote(api: str, name: str, base_url: str, key_env: str) -> agent.Model:
    """A model behind an API, which is asked with text alone, so that any model will do."""
    try:
        from toolwire.client import Client, TextModel
    except ImportError as error:
        raise CliError("a model behind an API needs httpx: pip install 'toolwire[api]'", status=1) from error
    toolwire.get_api(api)  # before anything else is done
    return TextModel(lambda: Client(api, name, base_url=base_url, key_env=key_env, text_format=None))


def _opened(name: str) -> agent.Model:
    """The model, loaded; a progress bar on standard error while its weights come."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from toolwire.local import HUB, WEIGHTS, LocalModel, locate

    hub = name.startswith(HUB)
    if not hub and name.lower() not in WEIGHTS and not os.path.isfile(os.path.expanduser(name)):
        sizes = ", ".join(WEIGHTS)
        raise CliError(
            f"no model {name!r}: it is neither a size ({sizes}), a GGUF file that is there, nor hf:REPO/FILE"
        )

    columns = (TextColumn("weights"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    screen = console(stderr=True)
    progress = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
    with progress if screen.is_terminal else nullcontext():  # older rich ends a disabled one with an empty line
        task = progress.add_task("weights", total=None, visible=False)

        def came(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        def told(text: str) -> None:
            progress.console.print(styled(text, "dim"))

        path = locate(name, say=told, progress=came)
    say(f"toolwire: loading {path.name}")
    # The runtime hears nothing while it loads, so Ctrl-C is left to the system, which ends the process at once.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return LocalModel(path)
    finally:
        signal.signal(signal.SIGINT, handler)


def _emit(step: Step) -> None:
    if step.kind == "text" and not step.text:
        return
    body: dict[str, Any] = {"event": step.kind, "round": step.round}
    if step.kind in ("text", "correction", "answer"):
        body["text"] = step.text
    if step.call:
        body["call"] = plain(step.call)
    if step.result:
        body["result"] = {**plain(step.result), "success": step.result.success}
    if step.reason:
        body["reason"] = step.reason
    emit(body)


class _Screen:
    """Prints steps for a reader: what the model wrote as it comes, then what was made of it."""

    def __init__(self) -> None:
        self._console = console()
        self._round = 0
        self._open = False

    def show(self, step: Step) -> None:
        if step.kind == "text":
            self._text(step)
            return
        if self._open:
            self._console.print()
            self._open = False
        if step.kind == "call" and step.call:
            repairs = f"  [repaired: {', '.join(step.call.repairs)}]" if step.call.repairs else ""
            self._row("call", call_line(step.call.name, step.call.arguments) + repairs, "bold cyan")
        elif step.kind == "result" and step.result:
            good = step.result.success
            self._row("result" if good else "error", _cut(step.result.text), "green" if good else "red")
        elif step.kind == "correction":
            self._row("told", step.text, "yellow")
        elif step.kind == "answer":
            ended = "" if step.reason == "answered" else f" [ended: {step.reason.replace('_', ' ')}]"
            self._row("answer", step.text + ended, "bold")

    def _text(self, step: Step) -> None:
        if step.round != self._round:
            self._round = step.round
            self._console.print(styled(f"\nround {step.round}", "bold magenta"))
        if step.text:
            self._console.print(styled(step.text, "dim"), end="")
            self._console.file.flush()
            self._open = not step.text.endswith("\n")

    def _row(self, label: str, text: str, style: str) -> None:
        indented = safe(text).replace("\n", "\n" + " " * 8)
        self._console.print(styled(f"{label:<7} ", "bold"), styled(indented, style), sep="")


def _cut(text: str) -> str:
    """The beginning of a long result; the model gets all of it."""
    lines = text[:RESULT_CHARACTERS].split("\n")[:RESULT_LINES]
    shown = "\n".join(lines)
    return shown if len(shown) == len(text) else f"{shown}\n... ({len(text)} characters in all)"
