"""`toolwire serve --sidecar`: parsing, rendering and grammars for engines in other languages, as JSON lines.

Each line is a request, and each request gets one line in answer, in the order of the requests. `SidecarSession` has no
input or output of its own: it takes a line and returns one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import toolwire
from toolwire.cli.console import event_dict, plain
from toolwire.errors import ToolwireError
from toolwire.events import Event, ProblemFound
from toolwire.messages import ParsedResponse, ToolCall, ToolResult
from toolwire.runtime.bounded_lines import bounded_lines
from toolwire.runtime.worker_threads import in_thread
from toolwire.text.json_text import standard_json
from toolwire.text.surrogate_pairs import SurrogatePairs

VERSION = 1
"""Version of the protocol; a change that breaks clients raises it."""
MAX_LINE = 64 << 20
"""Maximum length of a line, in bytes."""
MAX_STREAMS = 4096
"""Maximum number of messages of one client that are read in pieces at a time."""

_SHORT = 4096
"""Maximum length of a line, in bytes, and of a message, in characters, that is read at once while other clients wait: a
thread would take longer."""
_PARSE_OPTIONS = frozenset(toolwire.ParseOptions.__annotations__)
_GRAMMAR_OPTIONS = frozenset(signature(toolwire.grammar).parameters)
_CALL_MEMBERS = frozenset(("name", "arguments", "id", "server", "format", "repairs", "confidence"))
_RESULT_MEMBERS = frozenset(("tool_name", "call_id", "result", "error"))


class RequestError(ValueError):
    """A request that cannot be answered; the message says why."""


@dataclass(slots=True)
class _OpenStream:
    """A message that is read in pieces, of this length so far."""

    parser: toolwire.StreamParser
    length: int = 0
    pairs: SurrogatePairs = field(default_factory=SurrogatePairs)

    def feed(self, text: str) -> list[Event]:
        """Read more text. Clients whose text is UTF-16 may split a character between two pieces."""
        self.length += len(text)
        return list(self.parser.feed(self.pairs.feed(text)))

    def finish(self) -> list[Event]:
        """Read the end of the message."""
        return [*self.parser.feed(self.pairs.finish()), *self.parser.finish()]


class SidecarSession:
    """The requests of one client, with the messages that it reads in pieces."""

    def __init__(self) -> None:
        self._streams: dict[str, _OpenStream] = {}
        self._actions: dict[str, Callable[[dict[str, Any]], Any]] = {
            "hello": self._hello,
            "parse": self._parse,
            "open": self._open,
            "feed": self._feed,
            "finish": self._finish,
            "render": self._render,
            "grammar": self._grammar,
        }

    def answer(self, line: str | bytes) -> str:
        """Return the answer to one request, as one line without its end; errors are answers too."""
        try:
            request = _object(line)
        except RequestError as error:
            return json.dumps(_refusal(error))
        return self.answer_request(request)

    def answer_request(self, request: dict[str, Any]) -> str:
        """Return the answer to a request that is decoded, and take its members out of it; see `answer`."""
        request_id = request.pop("id", None)
        try:
            action = self._actions.get(str(request.pop("do", "")))
            if action is None:
                raise RequestError(f"do must be one of {', '.join(self._actions)}")
            body: dict[str, Any] = {"id": request_id, "result": action(request)}
        except (ToolwireError, RequestError, LookupError, TypeError, ValueError, RecursionError) as error:
            body = _refusal(error, request_id)
        return json.dumps(body)  # ASCII, because text of a model may contain half a character

    def is_quick(self, request: Mapping[str, Any]) -> bool:
        """Return whether a request in a short line is answered sooner than a thread could begin with it."""
        if request.get("do") == "finish":  # calls without markers are read at the end of the whole message
            stream = self._streams.get(str(request.get("stream")))
            return stream is None or stream.length <= _SHORT
        return request.get("do") != "grammar"  # one of a short schema can be large

    # -- actions ---------------------------------------------------------------------------------------------------

    def _hello(self, request: dict[str, Any]) -> Any:
        _check_empty(request, name="hello")
        return {"version": VERSION, "toolwire": _package_version(), "formats": list(toolwire.formats())}

    def _parse(self, request: dict[str, Any]) -> Any:
        text = _text(request, "text")
        return _response(toolwire.parse(text, **_options(request, _PARSE_OPTIONS)))

    def _open(self, request: dict[str, Any]) -> Any:
        name = _text(request, "stream")
        if name in self._streams:
            raise RequestError(f"the stream {name!r:.80} is open already")
        if len(self._streams) >= MAX_STREAMS:
            raise RequestError(f"{MAX_STREAMS} streams are open; finish one first")
        self._streams[name] = _OpenStream(toolwire.StreamParser(**_options(request, _PARSE_OPTIONS)))
        return {}

    def _feed(self, request: dict[str, Any]) -> Any:
        stream = self._stream(_text(request, "stream"))
        text = _text(request, "text")
        _check_empty(request, name="feed")
        return _events(stream.feed(text))

    def _finish(self, request: dict[str, Any]) -> Any:
        stream = self._stream(name := _text(request, "stream"))
        _check_empty(request, name="finish")
        del self._streams[name]
        return _events(stream.finish())

    def _stream(self, name: str) -> _OpenStream:
        if name not in self._streams:
            raise RequestError(f"no stream has the name {name!r:.80}: open it first")
        return self._streams[name]

    def _render(self, request: dict[str, Any]) -> Any:
        kind, format = _text(request, "what"), _text(request, "format")
        tools = request.pop("tools", ())
        match kind:
            case "prompt":
                system = _text(request, "system") if "system" in request else ""
                text = toolwire.prompt(tools, format=format, system=system)
            case "definitions":
                text = toolwire.render_definitions(tools, format=format)
            case "calls":
                calls = [_call(value) for value in _objects(request, "calls")]
                text = toolwire.render_calls(calls, format=format, tools=tools)
            case "results":
                results = [_result(value) for value in _objects(request, "results")]
                text = toolwire.render_results(results, format=format)
            case _:
                raise RequestError("what must be prompt, definitions, calls or results")
        _check_empty(request, name=f"render of {kind}")
        return {"text": text}

    def _grammar(self, request: dict[str, Any]) -> Any:
        options = _options(request, _GRAMMAR_OPTIONS)
        written = toolwire.grammar(options.pop("tools", ()), **options)
        return {
            "text": written.text,
            "syntax": written.syntax,
            "widened": list(written.widened),
            "special_tokens": list(written.special_tokens),
        }


def _refusal(error: Exception, request_id: Any = None) -> dict[str, Any]:
    return {"id": request_id, "error": {"type": type(error).__name__, "message": str(error)}}


def _package_version() -> str:
    from importlib.metadata import version  # slow to import

    return version("toolwire")


def _object(line: str | bytes) -> dict[str, Any]:
    try:
        request = standard_json(line)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"a request is one line of JSON: {error}") from None
    if not isinstance(request, dict):
        raise RequestError("a request is a JSON object")
    return request


def _text(request: dict[str, Any], name: str) -> str:
    value = request.pop(name, None)
    if not isinstance(value, str):
        raise RequestError(f"{name} must be text")
    return value


def _objects(request: dict[str, Any], name: str) -> list[dict[str, Any]]:
    values = request.pop(name, None)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise RequestError(f"{name} must be a list of objects")
    return values


def _options(request: Mapping[str, Any], known: frozenset[str]) -> Any:
    if unknown := sorted(request.keys() - known):
        raise RequestError(f"unknown members: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    return dict(request)


def _check_empty(request: Mapping[str, Any], *, name: str) -> None:
    if request:
        raise RequestError(f"unknown members: {', '.join(sorted(request))}; {name} has no others")


def _call(value: dict[str, Any]) -> ToolCall:
    """Return a call, which may be one that `parse` returned."""
    _check_members("a call", value, _CALL_MEMBERS)
    if value.get("name") is None:
        raise RequestError("a call needs name")
    id, server = (_text(value, name) if value.get(name) is not None else "" for name in ("id", "server"))
    return ToolCall(_text(value, "name"), value.get("arguments", {}), id, server)


def _result(value: dict[str, Any]) -> ToolResult:
    _check_members("a result", value, _RESULT_MEMBERS)
    if "tool_name" not in value:
        raise RequestError("a result needs tool_name")
    result, error = value.get("result"), value.get("error")
    if not value.keys() & {"result", "error"} or (result is not None and error is not None):
        raise RequestError("a result has either result or error")
    call_id = _text(value, "call_id") if "call_id" in value else ""
    return ToolResult(call_id, _text(value, "tool_name"), result, error)


def _check_members(what: str, value: Mapping[str, Any], known: frozenset[str]) -> None:
    if unknown := sorted(value.keys() - known):
        raise RequestError(f"unknown members of {what}: {', '.join(unknown)}; known are {', '.join(sorted(known))}")


def _response(response: ParsedResponse) -> dict[str, Any]:
    problems = [event_dict(ProblemFound(problem)) for problem in response.problems]
    return {
        "content": response.content,
        "reasoning": response.reasoning,
        "calls": plain(response.tool_calls),
        "incomplete": plain(response.incomplete),
        "problems": problems,
        "finish_reason": str(response.finish_reason),
    }


def _events(events: Any) -> dict[str, Any]:
    """Return events, and the same as deltas of Chat Completions."""
    return {
        "events": [event_dict(event) for event in events],
        "deltas": toolwire.chat_deltas(toolwire.closed_calls(events)),
    }


# -- input and output ----------------------------------------------------------------------------------------------


def serve_lines() -> None:
    """Answer the requests on standard input until it ends."""
    session = SidecarSession()
    for line, _ in bounded_lines(sys.stdin.buffer, MAX_LINE):
        if line is None or line.strip():
            sys.stdout.write((_too_long() if line is None else session.answer(line)) + "\n")
            sys.stdout.flush()


def _too_long() -> str:
    return json.dumps(_refusal(RequestError(f"a line may have {MAX_LINE >> 20} MiB; this one is longer")))


async def _next_line(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next line, empty at the end of the input; None in place of one that is longer than the limit."""
    is_too_long = False
    while True:
        try:
            line = await reader.readuntil()
        except asyncio.IncompleteReadError as error:
            line = error.partial
        except asyncio.LimitOverrunError as error:
            is_too_long = True
            await reader.readexactly(error.consumed)
            continue
        return None if is_too_long else line


async def _answer_line(session: SidecarSession, line: bytes | None) -> str:
    """Return the answer to a line of a client, while other clients get theirs."""
    if line is None:
        return _too_long()
    answer: str
    if len(line) > _SHORT:
        answer = await in_thread(session.answer, {"line": line})
        return answer
    try:
        request = _object(line)
    except RequestError as error:
        return json.dumps(_refusal(error))
    if session.is_quick(request):
        return session.answer_request(request)
    answer = await in_thread(session.answer_request, {"request": request})
    return answer


def serve_socket(path: Path) -> None:
    """Answer the clients of a Unix socket, which only its user may open, until SIGINT or SIGTERM."""

    async def answer_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = SidecarSession()
        # A client leaves, or the process ends, which asyncio would report as an error.
        with suppress(ConnectionError, asyncio.CancelledError):
            while (line := await _next_line(reader)) != b"":
                if line is None or line.strip():
                    writer.write((await _answer_line(session, line)).encode() + b"\n")
                    await writer.drain()
        writer.close()

    async def serve() -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        # The socket has these permissions from its first moment on.
        before = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(answer_client, path, limit=MAX_LINE)
        finally:
            os.umask(before)
        created = path.stat()
        try:
            await stopped.wait()
        finally:
            server.close()  # without `wait_closed`, which waits in later versions of Python until all clients have left
            # Another process may have replaced the socket by its own.
            with suppress(FileNotFoundError):
                if os.path.samestat(created, path.stat()):
                    path.unlink()

    with suppress(KeyboardInterrupt):
        asyncio.run(serve())
