"""`toolwire convert`: requests, responses and recorded streams of one provider API in the words of another."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer

import toolwire
from toolwire.cli.console import CliError, say
from toolwire.cli.input_files import loads, named, read_bytes
from toolwire.providers.base import ProviderApi
from toolwire.providers.request import Notes

EXAMPLES = """Examples:

toolwire convert --from openai_chat --to anthropic_messages request.json

toolwire convert --from gemini --to openai_chat stream.txt > chunks.txt

curl -s ... | toolwire convert --from groq --to bedrock_converse -

What a file holds is told by its content; --kind says it. What cannot be said in the other API is told on standard
error, a line each. APIs: """ + ", ".join(toolwire.apis())

_ASKS = frozenset(("messages", "contents", "input"))
_ANSWERS = frozenset(("choices", "output", "candidates", "stop_reason", "stopReason"))
PIECE = 65_536


class Kind(StrEnum):
    """What a file holds."""

    REQUEST = "request"
    RESPONSE = "response"
    STREAM = "stream"


def convert(
    file: Annotated[str, typer.Argument(help="A request, a response or a recorded stream; - is standard input.")],
    source: Annotated[str, typer.Option("--from", help="The API that the file is of.")],
    target: Annotated[str, typer.Option("--to", help="The API to write.")],
    kind: Annotated[Kind | None, typer.Option(help="What the file holds, if its content does not tell.")] = None,
    model: Annotated[str, typer.Option(help="The model's name to be written; else the one that is there.")] = "",
) -> None:
    """Translate between provider APIs."""
    read, written = toolwire.get_api(source), toolwire.get_api(target)
    data = read_bytes(file)
    value = _object(data, named(file), kind)
    notes = Notes()
    if value is None:
        failed = _stream(read, written, data, model, notes)
    elif kind is Kind.REQUEST or (kind is None and bool(_ASKS & value.keys()) and not _ANSWERS & value.keys()):
        failed = ""
        _show(written.encode_request(read.decode_request(value), model=model or None, notes=notes))
    else:
        failed = _response(read, written, value, model, notes)
    for note in notes:
        say(f"toolwire: {note}", "yellow")
    if failed:
        raise CliError(f"{named(file)} holds no answer of {read.name}: {failed}", status=1)


def _stream(read: ProviderApi, written: ProviderApi, data: bytes, model: str, notes: Notes) -> str:
    """Translate a stream; why it cannot be, or ""."""
    events = list(_events(read, data))
    if failed := _why_none(toolwire.collect(events)):
        return failed
    for piece in written.encode_stream(events, model=model or _streamed_model(read, data), notes=notes):
        sys.stdout.buffer.write(piece)
    return ""


def _response(read: ProviderApi, written: ProviderApi, body: dict[str, Any], model: str, notes: Notes) -> str:
    """Translate a response; why it cannot be, or ""."""
    response = read.decode_response(body)
    if failed := _why_none(response):
        return failed
    for problem in response.problems:
        notes.dropped(problem.kind, problem.message)
    _show(written.encode_response(response, model=model or _model_of(body), notes=notes))
    return ""


def _show(body: Any) -> None:
    sys.stdout.write(json.dumps(body, indent=2, ensure_ascii=False) + "\n")


def _why_none(response: toolwire.ParsedResponse) -> str:
    """The problems of a response of which nothing else was read; "" if something was."""
    said = response.content or response.reasoning or response.tool_calls or response.incomplete or response.parts
    return "" if said else " ".join(problem.message for problem in response.problems)


def _streamed_model(read: ProviderApi, data: bytes) -> str:
    """The model's name, where one of the first objects of a stream says it."""
    for frame in islice(read.framing().feed(data), 5):
        value = frame.value if isinstance(frame.value, dict) else {}
        inner = [value.get(key) for key in ("message", "response")]
        for one in (value, *(part for part in inner if isinstance(part, dict))):
            if name := _model_of(one):
                return name
    return ""


def _object(data: bytes, name: str, kind: Kind | None) -> dict[str, Any] | None:
    """The JSON object in a file; None if it holds a stream."""
    if kind is Kind.STREAM:
        return None
    if kind is None:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None
    value = loads(data.decode("utf-8", "replace"), name)
    if not isinstance(value, dict):
        raise CliError(f"{name} holds no JSON object, so it is no {kind}")
    return value


def _model_of(body: dict[str, Any]) -> str:
    name = body.get("model") or body.get("modelVersion")
    return name if isinstance(name, str) else ""


def _events(read: ProviderApi, data: bytes) -> Iterator[toolwire.Event]:
    decoder = read.stream_decoder()
    for at in range(0, len(data), PIECE):
        yield from decoder.feed(data[at : at + PIECE])
    yield from decoder.finish()
