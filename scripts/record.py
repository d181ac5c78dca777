"""Record a provider's real answers for a list of requests, without secrets, as rows of recorded traffic.

    scripts/record anthropic requests.jsonl rows.jsonl
    scripts/record openai_chat requests.jsonl rows.jsonl --base-url http://localhost:8000/v1 --provider vllm
    scripts/record gemini requests.jsonl rows.jsonl --hide private.txt

Each line of the first file is the body of one request, in the words of the API, with its `model`. A body with
`"stream": true` is answered in a stream; where the API has another address for that, the member is not sent. The key is
read from the provider's usual environment variable, or from that of --key-env.

No header is recorded. Keys, cookies, the secrets of your environment, ids of organisations, projects and accounts, and
whatever looks like a secret are replaced, in the request and in the answer. --hide names a file with further texts to
replace, one a line. A row in which a secret remains, because it is split between the pieces of a stream or is in binary
frames, is not written. The status is 1 if a request was not recorded.

`calls` and `text` of a row are what Toolwire reads in the answer. Compare them with it before you rely on a row.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from toolwire.client.client import Client
from toolwire.client.endpoints import ENDPOINTS, Endpoint
from toolwire.client.exchange import HttpRequest, Transport
from toolwire.client.transport import HttpTransport
from toolwire.errors import ToolwireError
from toolwire.events import collect
from toolwire.messages import ParsedResponse
from toolwire.providers.model_settings import RequestAdditions
from toolwire.text.redaction import (
    REDACTED,
    environment_secrets,
    is_secret_name,
    redact,
    redact_value,
    secrets_in,
)
from toolwire.text.secret_spellings import MIN_LENGTH, secret_spellings

FEATURES = ("tools", "tool_choice", "tool_config", "toolConfig", "response_format", "thinking", "reasoning")
"""Members of a request that a row names in `feats`."""
_OWNER_HEADER = re.compile(r"organi[sz]ation|project|account|workspace|cookie|tenant|user", re.IGNORECASE)
"""Names of headers of an answer whose values identify an account."""
_OWNERS = (
    (re.compile(r"arn:aws[\w-]*:(?:iam|sts)::\d{12}:[^\s\"'\\]+"), f"arn:aws:iam::000000000000:{REDACTED}"),
    (re.compile(r"(arn(?::|%3A)aws[\w-]*(?::|%3A)[\w-]*(?::|%3A)[\w-]*(?::|%3A))\d{12}"), r"\g<1>000000000000"),
    (
        re.compile(r"\b(org|proj|project|user|acct|account|workspace|wrkspc|team|tenant)([-_])[A-Za-z0-9]{10,}\b"),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(r"\b(projects/)(?!-/)[\w-]{4,}"), rf"\1{REDACTED}"),
    (re.compile(r"(?i)\b(account(?: ?(?:id|number|no\.?))?\W{1,4})\d{6,}"), rf"\1{REDACTED}"),
)
"""Ids of organisations, projects and accounts, by their shapes."""


class SecretLeft(Exception):
    """A secret that cannot be replaced; the message says where it is."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, as bytes.

    Attributes:
        request: the request, with its key.
        body: the JSON body of the request.
        stream: whether a stream was asked for.
        status: the HTTP status of the answer.
        headers: the headers of the answer.
        answer: the body of the answer.
    """

    request: HttpRequest
    body: dict[str, Any]
    stream: bool
    status: int
    headers: Mapping[str, str]
    answer: bytes


async def exchange(client: Client, transport: Transport, body: Mapping[str, Any]) -> Exchange:
    """Send a body and return the exchange.

    Raises:
        ToolwireError: no key is set, or the server cannot be reached.
    """
    body = dict(body)
    stream = bool(body.get("stream"))
    endpoint = ENDPOINTS.get(client.api.name, Endpoint())
    if endpoint.stream_path:
        body.pop("stream", None)
    request = client._request(body, RequestAdditions.of(), stream=stream)
    async with transport.open(request) as answer:
        return Exchange(request, body, stream, answer.status, dict(answer.headers), await answer.read())


class Redactor:
    """Replaces secrets in an exchange.

    Args:
        known: texts that are secret.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known = [text for text in known if len(text) >= MIN_LENGTH]
        self._spellings = secret_spellings(self._known)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        for spelling in self._spellings:
            text = text.replace(spelling, REDACTED)
        for pattern, replacement in _OWNERS:
            text = pattern.sub(replacement, text)
        return redact(text)

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets, in its keys too."""
        return self._texts(redact_value(value))

    def _texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._texts(item) for key, item in value.items()}
        return [self._texts(item) for item in value] if isinstance(value, list) else value

    def stream(self, text: str) -> str:
        """Return a stream of server-sent events or JSON lines without secrets."""
        return "".join(self._line(line) for line in text.splitlines(keepends=True))

    def _line(self, line: str) -> str:
        prefix, _, rest = line.rpartition("data:") if line.startswith("data:") else ("", "", line)
        start = "data: " if line.startswith("data:") else prefix
        try:
            value = json.loads(rest)
        except ValueError:
            return self.text(line)
        clean = self.value(value)
        if clean == value:
            return line
        return f"{start}{json.dumps(clean, ensure_ascii=False)}{line[len(line.rstrip()) :]}"

    def check(self, text: str, place: str) -> None:
        """Check that a text contains no secret, in no common encoding.

        Raises:
            SecretLeft: it does.
        """
        for secret in self._known:
            encoded = (quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), secret.encode().hex())
            if any(spelling in text for spelling in (*secret_spellings([secret]), *encoded)):
                raise SecretLeft(f"a known secret is in {place}")
        if self.text(text) != text:
            raise SecretLeft(f"a text that looks like a secret is in {place}")


def known_secrets(traffic: Exchange, environment: Mapping[str, str], hidden: Iterable[str]) -> list[str]:
    """Return the texts that must not reach a file: of the request, of the answer's headers, and of the environment."""
    known = [*hidden, *environment_secrets(environment), *secrets_in(traffic.body)]
    for name, value in traffic.request.headers.items():
        if is_secret_name(name) or _OWNER_HEADER.search(name):
            known += [value, value.rpartition(" ")[2]]
    for name, value in traffic.headers.items():
        if _OWNER_HEADER.search(name) or is_secret_name(name):
            known += [value, *_cookie_values(value)]
    url = urlsplit(traffic.request.url)
    return [*known, *filter(None, (url.username, url.password)), *re.findall(r"=([^&]{8,})", url.query)]


def _cookie_values(header: str) -> list[str]:
    cookie: SimpleCookie = SimpleCookie()
    try:
        cookie.load(header)
    except CookieError:
        return re.findall(r"=([^;,\s]{8,})", header)
    return [morsel.value for morsel in cookie.values() if len(morsel.value) >= MIN_LENGTH]


def row_of(client: Client, traffic: Exchange, redactor: Redactor, *, provider: str, number: int) -> dict[str, Any]:
    """Return the row of an exchange.

    Raises:
        SecretLeft: a secret cannot be replaced.
    """
    binary = traffic.stream and traffic.status == 200 and not _is_text(traffic.answer)
    text = "" if binary else traffic.answer.decode("utf-8", "replace")
    row: dict[str, Any] = {
        "id": "",
        "provider": provider,
        "model": redactor.text(client.model),
        "api": client.api.name,
        "status": traffic.status,
        "source": {"path": "scripts/record", "date": time.strftime("%Y-%m-%d", time.gmtime()), "n": number},
        "kind": "recorded",
        "url_path": redactor.text(urlsplit(traffic.request.url).path),
        "stream": traffic.stream,
        "feats": [name for name in FEATURES if name in traffic.body],
        "request": redactor.value(traffic.body),
        "response": None if traffic.stream else _response(text, redactor),
        "sse": redactor.stream(text) if traffic.stream and not binary else None,
    }
    if binary:
        row["raw_b64"] = base64.b64encode(traffic.answer).decode()
    response = _read(client, row, traffic.answer if binary else (row["sse"] or "").encode())
    row["calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in response.tool_calls]
    row["server_items"] = []
    row["text"] = response.content
    row["oracle"] = "own, not reviewed"
    digest = hashlib.sha256(json.dumps([row["request"], row["response"], row["sse"]], sort_keys=True).encode())
    row["id"] = f"{client.api.name}-{digest.hexdigest()[:12]}"
    if binary:
        for text in (traffic.answer.decode("latin-1"), *_frames(client, traffic.answer)):
            redactor.check(text, "binary frames, in which it cannot be replaced")
    for part in (response.content, response.reasoning, *(json.dumps(call["arguments"]) for call in row["calls"])):
        redactor.check(part, "the pieces of a stream" if traffic.stream else "the answer")
    redactor.check(json.dumps({**row, "id": "", "raw_b64": ""}, ensure_ascii=False), "the row")
    return row


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _frames(client: Client, data: bytes) -> Iterator[str]:
    """Yield the events of binary frames as JSON text; some have them in Base64, which hides secrets in them."""
    framing = client.api.stream_decoder()._framing
    for frame in (*framing.feed(data), *framing.finish()):
        yield frame.raw if frame.value is None else json.dumps(frame.value, ensure_ascii=False)


def _response(text: str, redactor: Redactor) -> Any:
    try:
        return redactor.value(json.loads(text))
    except ValueError:
        return redactor.text(text)


def _read(client: Client, row: Mapping[str, Any], stream: bytes) -> ParsedResponse:
    """Return the answer as Toolwire reads it; an empty one for an error."""
    if row["status"] != 200:
        return ParsedResponse()
    if row["stream"]:
        decoder = client.api.stream_decoder()
        return collect([*decoder.feed(stream), *decoder.finish()])
    return client.api.decode_response(row["response"]) if isinstance(row["response"], dict) else ParsedResponse()


def read_requests(path: str) -> list[dict[str, Any]]:
    """Return the bodies in a file.

    Raises:
        ValueError: a line is not a JSON object with a model.
    """
    bodies = []
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            body = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: it is not JSON: {error}") from error
        if not isinstance(body, dict) or not isinstance(body.get("model", body.get("modelId")), str):
            raise ValueError(f"{path}, line {number}: it is not a JSON object with a model")
        bodies.append(body)
    return bodies


async def record(bodies: Iterable[dict[str, Any]], options: argparse.Namespace, hidden: list[str]) -> int:
    """Send the requests and append their rows to the file; return the number of those that were not recorded."""
    failures = 0
    async with HttpTransport() as transport:
        for number, body in enumerate(bodies):
            model = str(body.get("model", body.get("modelId")))
            client = Client(options.api, model, base_url=options.base_url, key_env=options.key_env)
            if "{model}" in ENDPOINTS.get(client.api.name, Endpoint()).path:
                body = {key: value for key, value in body.items() if key != "model"}
            provider = options.provider or client.api.name
            try:
                traffic = await exchange(client, transport, body)
                redactor = Redactor(known_secrets(traffic, os.environ, hidden))
                row = row_of(client, traffic, redactor, provider=provider, number=number)
            except (SecretLeft, ToolwireError) as error:
                print(f"request {number + 1} is not recorded: {redact(str(error))}", file=sys.stderr)
                failures += 1
                continue
            with open(options.rows, "a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
            print(f"request {number + 1}: {row['id']}, status {row['status']}, {len(row['calls'])} calls")
    return failures


def main(arguments: list[str] | None = None) -> int:
    """Record, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="scripts/record", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("api", help="the API, or a name of its provider")
    parser.add_argument("requests", help="a file with one body per line")
    parser.add_argument("rows", help="the file that rows are appended to")
    parser.add_argument("--base-url", default="", help="the server, if it is not the provider's own")
    parser.add_argument("--key-env", default="", help="the environment variable that contains the key")
    parser.add_argument("--provider", default="", help="the provider's name in the rows; by default that of the API")
    parser.add_argument("--hide", metavar="FILE", help="a file with further secrets, one per line")
    options = parser.parse_args(arguments)
    try:
        bodies = read_requests(options.requests)
        hidden = Path(options.hide).read_text("utf-8").split("\n") if options.hide else []
        return 1 if asyncio.run(record(bodies, options, [line.strip() for line in hidden if line.strip()])) else 0
    except OSError as error:
        print(
            f"scripts/record: {error.filename} cannot be opened: {error.strerror} (`scripts/record --help` says what "
            "each file contains)",
            file=sys.stderr,
        )
        return 2
    except (ValueError, KeyError, ToolwireError) as error:
        print(f"scripts/record: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
