"""Recorded requests through the gateway, from each API of clients to each API of backends.

`python -m benchmarks.gateway recorded` sends each recorded request through a gateway in this process. The backend is
scripted: it answers, in its own API, what the recorded provider answered. A request passes if

- the body that the backend gets is valid by the types of its provider's own client, and breaks no rule of its server;
  where the backend speaks the API of the client, or one of its kind, it is the body that the client sent;
- the answer that the client gets has the text, the calls and the finish reason of what the backend wrote. Where the
  backend reports that it failed, it is an error.

Requests that continue what another server has stored are refused; they are counted apart. The recordings, types and
rules are those of `official_types.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from toolwire import Client, ParsedResponse, collect, get_api, replay
from toolwire.errors import DefinitionError
from toolwire.gateway.app import Gateway
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.testing import ScriptedTransport

sys.path.append(str(Path(__file__).parent))  # the other benchmarks are programs, not a package
from official_types import CHECKS, Check, broken_rules
from translation import APIS, ROWS, recorded

Json = dict[str, Any]
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/m",
    "ollama": "/api/chat",
}
"""The addresses of the APIs that the gateway speaks to clients."""
STORED = ("previous_response_id", "conversation", "background")
"""Members by which a request depends on a server's store."""


def asked(row: Json) -> tuple[str, Json]:
    """Return the path and the body of a recorded request, for a stream if its answer was one."""
    body, path = dict(row["request"]), PATHS[row["api"]]
    if row["api"] == "gemini":
        return path + (":streamGenerateContent" if row["stream"] else ":generateContent"), body
    if row["stream"] or row["api"] == "ollama":
        body["stream"] = bool(row["stream"])
    return path, {**body, "model": body.get("model") or "m"}


def answered(row: Json) -> ParsedResponse | None:
    """Return what the recorded provider answered; None if nothing of it was recorded."""
    api = get_api(row["api"])
    if not row["stream"]:
        return api.decode_response(row["response"]) if isinstance(row.get("response"), Mapping) else None
    if not row.get("sse"):
        return None
    decoder = api.stream_decoder()
    return collect([*decoder.feed(row["sse"].encode()), *decoder.finish()])


async def sent(app: Gateway, path: str, body: Json) -> tuple[int, bytes]:
    """Send a request to a gateway in this process; return the status and the body of the answer."""
    arrived = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    pieces: list[bytes] = []
    status = 0
    ended = asyncio.Event()

    async def receive() -> Any:
        if not arrived:
            await ended.wait()
        return arrived.pop() if arrived else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                ended.set()

    headers = [(b"host", b"127.0.0.1")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"alt=sse", "headers": headers}
    await app(scope, receive, send)
    return status, b"".join(pieces)


def read(api: str, data: bytes, *, stream: bool, tools: Any = ()) -> ParsedResponse:
    """Return the answer in the bytes of an API."""
    codec = get_api(api)
    if not stream:
        return codec.decode_response(json.loads(data), tools=tools)
    decoder = codec.stream_decoder(tools=tools)
    return collect([*decoder.feed(data), *decoder.finish()])


def said(answer: ParsedResponse) -> tuple[str, list[tuple[str, Any]], str]:
    """Return what a client acts on: the text, the calls and the finish reason."""
    calls = [(call.name, call.arguments) for call in answer.tool_calls]
    return answer.content.strip(), calls, str(answer.finish_reason)


async def faults_of(row: Json, target: str, answer: ParsedResponse, check: Check) -> list[str]:
    """Return what is wrong with one request on its way to a backend and back."""
    transport = ScriptedTransport(target, [answer])
    upstream = ApiUpstream(
        Client(target, "backend", key="k", transport=transport), model="backend", calls_in_text="none"
    )
    path, body = asked(row)
    status, data = await sent(Gateway(ModelTable([ServedModel("*", (upstream,))])), path, body)
    if not transport.requests:
        return [f"{status}: {data.decode()[:300]}"]
    (got,) = transport.requests
    if get_api(target).kind == get_api(row["api"]).kind:
        is_same = got == ({**body, "model": "backend"} if "model" in body else body)
        faults = [] if is_same else ["it is not the client's body"]
    else:
        faults = list(body_faults(row, target, got, check))
    tools = get_api(row["api"]).decode_request(body).tools
    written = read(target, encoded(target, answer, stream=row["stream"]), stream=row["stream"], tools=tools)
    has_failed = any(problem.kind == "provider_error" for problem in written.problems)
    if status != 200:
        return faults if has_failed else [*faults, f"{status}: {data.decode()[:300]}"]
    try:
        expected = said(written)
        received = said(read(row["api"], data, stream=row["stream"]))
    except (DefinitionError, ValueError) as error:
        return [*faults, f"the answer cannot be read: {error}"]
    names = ("text", "calls", "finish reason")
    differing = [at for at, (one, other) in enumerate(zip(expected, received, strict=True)) if one != other]
    return faults + [f"{names[at]}: {received[at]!r:.150} instead of {expected[at]!r:.150}" for at in differing]


def encoded(target: str, answer: ParsedResponse, *, stream: bool) -> bytes:
    """Return an answer in the words of a backend."""
    if stream:
        return b"".join(get_api(target).encode_stream(replay(answer)))
    return json.dumps(get_api(target).encode_response(answer)).encode()


def body_faults(row: Json, target: str, body: Json, check: Check) -> Iterator[str]:
    """Yield what is wrong with the body that a backend got."""
    try:
        check({"model": "m", **body})
    except (ValidationError, ValueError, TypeError, KeyError) as error:
        yield "types: " + re.sub(r"\s+", " ", str(error))[:300]
    before = {rule.partition(" of ")[0].partition(":")[0] for rule in broken_rules(row["api"], row["request"])}
    for rule in broken_rules(target, body):
        if rule.partition(" of ")[0].partition(":")[0] not in before:
            yield f"rule: {rule}"


async def run_recorded(options: argparse.Namespace) -> Json:
    """Send all recorded requests to all APIs; return how many pass, and the faults of the rest."""
    checks = {target: CHECKS[target]() for target in APIS}
    rows = recorded(options.rows, PATHS, "") if options.rows.is_dir() else []
    if not rows:
        raise SystemExit(f"no recordings in {options.rows}")
    counts: dict[str, Counter[str]] = {}
    reasons: list[str] = []
    unsent: Counter[str] = Counter()
    for number, row in enumerate(rows):
        answer = answered(row) if isinstance(row.get("request"), Mapping) else None
        if answer is None:
            unsent["without a request or an answer"] += 1
            continue
        stored = [name for name in STORED if row["request"].get(name)]
        if stored:
            unsent[f"continues what is stored: {stored[0]}"] += 1
            continue
        if options.requests and number % max(len(rows) // options.requests, 1):
            continue
        for target, check in checks.items():
            count = counts.setdefault(f"{row['api']} to {target}", Counter())
            count["sent"] += 1
            faults = await faults_of(row, target, answer, check)
            count["passed"] += not faults
            reasons += [f"{row['id']} to {target}: {fault}" for fault in faults]
    total, passed = (sum(count[name] for count in counts.values()) for name in ("sent", "passed"))
    return {
        "requests": total,
        "passed": passed,
        "share": round(passed / max(total, 1), 4),
        "not_sent": dict(unsent),
        "pairs": {name: f"{count['passed']} of {count['sent']}" for name, count in counts.items()},
        "faults": reasons,
    }


__all__ = ["ROWS", "run_recorded"]
