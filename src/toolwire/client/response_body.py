"""Bodies of responses, with bounds on their size before and after unpacking; and texts of servers without secrets.

The bodies of a broken or hostile server end here: they do not fill the memory of the program that asked.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Protocol

from toolwire.errors import ProviderError
from toolwire.text.json_text import is_nested_too_deeply, refuse_constant, same_object
from toolwire.text.secret_spellings import encoded_spellings

MAX_BODY = 64 << 20
"""Maximum size of a whole response, in bytes."""
MAX_STREAM = 128 << 20
"""Maximum size of all events of a streamed response, in bytes."""
MAX_ERROR_BODY = 64 << 10
"""Bytes of the body of an error that are read."""
ENCODINGS = "gzip, deflate"
"""The compressions that requests accept. Each unpacks in steps of bounded size with the standard library alone."""
PART = 6
"""Minimum length of a part of a secret that is hidden, in characters."""
_STEP = 1 << 20
"""Maximum size of a piece that is unpacked at once, in bytes."""


class _Response(Protocol):
    """The members of an `httpx.Response` that are read here; scripted transports work without that package."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def is_stream_consumed(self) -> bool: ...
    @property
    def content(self) -> bytes: ...
    def aiter_raw(self) -> AsyncIterator[bytes]: ...


async def unpacked(response: _Response) -> AsyncIterator[bytes]:
    """Yield the body of a response, unpacked in pieces of bounded size.

    Raises:
        ProviderError: it is compressed in a way that no request accepts, or is not what its header says.
        httpx.RequestError: the connection breaks off.
    """
    if response.is_stream_consumed:  # a response of the tests' own, whose body is there already
        for at in range(0, len(response.content), _STEP):
            yield response.content[at : at + _STEP]
        return
    encoding = response.headers.get("content-encoding", "")
    async for piece in unpacked_pieces(response.aiter_raw(), encoding, response.status_code):
        yield piece


async def unpacked_pieces(pieces: AsyncIterator[bytes], encoding: str, status: int) -> AsyncIterator[bytes]:
    """Yield the pieces of a body, unpacked in pieces of bounded size.

    Args:
        pieces: the body as it arrives.
        encoding: the header `content-encoding`.
        status: the status of the response, for errors.

    Raises:
        ProviderError: the body is compressed in a way that no request accepts, or is not what the header says.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        async for piece in pieces:
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        # Several compressions one inside the other unpack to a million times their size.
        raise ProviderError(f"the answer is compressed as {encoding!r:.60}, which was not requested")
    unpacker = _Unpacker(status)
    async for piece in pieces:
        for part in unpacker.feed(piece):
            yield part


class _Unpacker:
    """Unpacks gzip, and deflate with or without its header, in steps of bounded size."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._has_begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            try:
                part = self._inflate.decompress(data, _STEP)
            except zlib.error as error:
                if self._has_begun:
                    raise ProviderError(f"the answer cannot be unpacked: {error}", status=self._status) from error
                self._has_begun = True
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave out the header of deflate
                continue
            if part:
                self._has_begun = True
                yield part
            data = self._inflate.unconsumed_tail


async def limited(pieces: AsyncIterator[bytes], limit: int, status: int = 0) -> AsyncIterator[bytes]:
    """Yield the pieces of a body.

    Raises:
        ProviderError: they have more than `limit` bytes.
    """
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > limit:
            raise ProviderError(f"the answer has more than {limit >> 20} MiB", status=status)
        yield piece


async def beginning(pieces: AsyncIterator[bytes], limit: int) -> bytes:
    """Return the first `limit` bytes of a body, without waiting for the rest."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def json_of(body: bytes, *, lets_threads_run: bool = False) -> Any:
    """Return the JSON value of a body; None if it is not JSON, or is nested too deeply to be read.

    Args:
        body: the body.
        lets_threads_run: whether other threads can run after each object.
    """
    hook = same_object if lets_threads_run else None
    try:
        # As in streams, a number out of range is read.
        value = json.loads(body, parse_constant=refuse_constant, object_hook=hook)
    except (ValueError, RecursionError):
        return None
    return None if is_nested_too_deeply(value, body) else value


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> str:
    """Return why a server refuses a request: the message of the body, or where it redirects to."""
    location = headers.get("location", "") if 300 <= status < 400 else ""
    return f"it redirects to {location}, which is not followed" if location else error_message(body)


def error_message(body: bytes) -> str:
    """Return the message in the body of an error of any API; the body's text if there is none."""
    value = json_of(body)
    if isinstance(value, list) and value:  # a stream of Gemini
        value = value[0]
    if isinstance(value, Mapping):
        error = value.get("error")
        for message in (error.get("message") if isinstance(error, Mapping) else error, value.get("message")):
            if message:
                return str(message)
    return body.decode("utf-8", "replace")


def model_names(listed: Any) -> list[str]:
    """Return the names in a list of models of any API; none for anything else."""
    models = (listed.get("data") or listed.get("models")) if isinstance(listed, Mapping) else None
    names: list[str] = []
    for model in models if isinstance(models, list) else ():
        if isinstance(model, Mapping):
            name = model.get("id") or model.get("name")
            names += [name.removeprefix("models/")] if isinstance(name, str) else []
    return names


def without_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """Return the text of a server without secrets of the request: each, and each longer part of it, by its name.

    A secret is also found in the encodings of `encoded_spellings`.

    Servers, and proxies before them, cut what they quote, also in the middle of a key.

    Args:
        text: the text.
        secrets: the secrets by the names that replace them.
    """
    for name, secret in secrets.items():
        for spelling in (secret, *encoded_spellings(secret)) if secret else ():
            text = _hide(text.replace(spelling, f"[{name}]"), spelling, f"[{name}]")
    return text


def _hide(text: str, secret: str, instead: str) -> str:
    if len(secret) < 2 * PART:  # a part of so short a secret is a word
        return text
    begins: Iterable[str] = {secret[at : at + PART] for at in range(len(secret) - PART + 1)}
    pattern = re.compile("|".join(map(re.escape, begins)))
    pieces: list[str] = []
    copied = 0
    while (match := pattern.search(text, copied)) is not None:
        end = match.end()
        while end < len(text) and text[match.start() : end + 1] in secret:
            end += 1
        pieces += (text[copied : match.start()], instead)
        copied = end
    return "".join((*pieces, text[copied:]))
