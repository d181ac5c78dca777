"""`toolwire convert`: translate requests, responses and recorded streams between provider APIs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer

import toolwire
from toolwire.cli.console import CliError, say, write_raw
from toolwire.cli.input_files import PIECE, display_name, loads, read_bytes
from toolwire.providers.base import ProviderApi
from toolwire.providers.request import Notes
from toolwire.text.json_text import NumberError, standard_json

EXAMPLES = """Examples:

toolwire convert --from openai_chat --to anthropic_messages request.json

toolwire convert --from gemini --to openai_chat stream.txt > chunks.txt

curl -s ... | toolwire convert --from groq --to bedrock_converse -

The kind of the file is detected from its content; --kind overrides this. Each part that the other API cannot express is
reported in a line on standard error. APIs: """ + ", ".join(toolwire.apis())

_REQUEST_KEYS = frozenset(("messages", "contents", "input"))
_RESPONSE_KEYS = frozenset(("choices", "output", "candidates", "stop_reason", "stopReason"))


class Kind(StrEnum):
    """The content of a file."""

    REQUEST = "request"
    RESPONSE = "response"
    STREAM = "stream"


def convert(
    file: Annotated[str, typer.Argument(help="A request, a response or a recorded stream; - is standard input.")],
    source: Annotated[str, typer.Option("--from", help="The API of the file.")],
    target: Annotated[str, typer.Option("--to", help="The API to write.")],
    kind: Annotated[Kind | None, typer.Option(help="The content of the file, where it cannot be detected.")] = None,
    model: Annotated[str, typer.Option(help="The name of the model to write; by default, the one in the file.")] = "",
) -> None:
    """Translate between provider APIs."""
    source_api, target_api = toolwire.get_api(source), toolwire.get_api(target)
    data = read_bytes(file)
    value = _json_object(data, display_name(file), kind)
    notes = Notes()
    if value is None:
        failure = _stream(source_api, target_api, data, model, notes)
    elif kind is Kind.REQUEST or (
        kind is None and bool(_REQUEST_KEYS & value.keys()) and not _RESPONSE_KEYS & value.keys()
    ):
        failure = ""
        _show(target_api.encode_request(source_api.decode_request(value), model=model or None, notes=notes))
    else:
        failure = _response(source_api, target_api, value, model, notes)
    for note in notes:
        say(f"toolwire: {note}", "yellow")
    if failure:
        raise CliError(f"{display_name(file)} does not contain a response of {source_api.name}: {failure}", status=1)


def _stream(source_api: ProviderApi, target_api: ProviderApi, data: bytes, model: str, notes: Notes) -> str:
    """Translate a stream; return the reason why it cannot be translated, or ""."""
    events = list(_events(source_api, data))
    if failure := _failure(toolwire.collect(events)):
        return failure
    for piece in target_api.encode_stream(events, model=model or _streamed_model(source_api, data), notes=notes):
        if sys.stdout.isatty():
            write_raw(piece.decode("utf-8", "replace"))
        else:
            sys.stdout.buffer.write(piece)
    return ""


def _response(source_api: ProviderApi, target_api: ProviderApi, body: dict[str, Any], model: str, notes: Notes) -> str:
    """Translate a response; return the reason why it cannot be translated, or ""."""
    response = source_api.decode_response(body)
    if failure := _failure(response):
        return failure
    for problem in response.problems:
        notes.dropped(problem.kind, problem.message)
    _show(target_api.encode_response(response, model=model or _model_of(body), notes=notes))
    return ""


def _show(body: Any) -> None:
    write_raw(json.dumps(body, indent=2, ensure_ascii=False) + "\n")


def _failure(response: toolwire.ParsedResponse) -> str:
    """Return the problems of a response that has nothing but problems; "" for other responses."""
    readable = response.content or response.reasoning or response.all_calls or response.incomplete or response.parts
    return "" if readable else " ".join(problem.message for problem in response.problems)


def _streamed_model(source_api: ProviderApi, data: bytes) -> str:
    """Return the model's name if one of the first objects of a stream contains it, or ""."""
    for frame in islice(source_api.framing().feed(data), 5):
        value = frame.value if isinstance(frame.value, dict) else {}
        inner = [value.get(key) for key in ("message", "response")]
        for body in (value, *(part for part in inner if isinstance(part, dict))):
            if name := _model_of(body):
                return name
    return ""


def _json_object(data: bytes, name: str, kind: Kind | None) -> dict[str, Any] | None:
    """Return the JSON object in a file; None for a stream."""
    if kind is Kind.STREAM:
        return None
    if kind is None:
        try:
            value = standard_json(data)
        except NumberError as error:
            raise CliError(f"{name} is not JSON: {error}") from error
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None
    value = loads(data.decode("utf-8", "replace"), name)
    if not isinstance(value, dict):
        raise CliError(f"{name} is not a JSON object, so it cannot be a {kind}")
    return value


def _model_of(body: dict[str, Any]) -> str:
    name = body.get("model") or body.get("modelVersion")
    return name if isinstance(name, str) else ""


def _events(source_api: ProviderApi, data: bytes) -> Iterator[toolwire.Event]:
    decoder = source_api.stream_decoder()
    for at in range(0, len(data), PIECE):
        yield from decoder.feed(data[at : at + PIECE])
    yield from decoder.finish()
