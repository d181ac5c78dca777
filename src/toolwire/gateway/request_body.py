"""Bodies of requests: read within bounds, unpacked within bounds, and parsed as one JSON object."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from toolwire._surface import needs_extra
from toolwire.gateway.failures import UNKNOWN_ENCODING, GatewayFailure
from toolwire.providers.failure_kinds import BODY_TOO_LARGE, INVALID
from toolwire.text.json_text import is_nested_too_deeply, standard_json

Receive = Callable[[], Awaitable[Any]]
_P = ParamSpec("_P")
_T = TypeVar("_T")

MAX_BODY = 64 << 20
"""Maximum size of a request's body, in bytes, before and after unpacking. Pictures and documents are part of it."""
BODY_SECONDS = 60.0
"""Seconds in which a body must arrive."""
MAX_VALUES = 2_000_000
"""Maximum number of commas and opening brackets of a body: a small JSON value takes fifty times its text in memory. A
conversation with more of them has more tokens than any model reads."""
LARGE = 1 << 20
"""Size of a body, in bytes, from which work on it does not make other requests wait."""
_STEP = 1 << 20
_ZSTANDARD_STEP = 1 << 11
"""Bytes of zstd that are unpacked at once. Four of them may stand for 128 KiB, so this bounds what they unpack to."""


async def read_body(receive: Receive, headers: Mapping[str, str], limit: int = MAX_BODY) -> bytes:
    """Return a request's body without its compression.

    Args:
        receive: the receiver of the request's messages.
        headers: the request's headers, in lower case.
        limit: maximum size of the body before and after unpacking, in bytes.

    Raises:
        GatewayFailure: the body is too large, too slow, or compressed in an unknown way.
        ConnectionError: the client has gone.
    """
    body = await _read(receive, limit)
    encodings = headers.get("content-encoding", "")
    # What a few bytes unpack to is not known before.
    return await beside_loop(LARGE, unpacked, body, encodings, limit) if encodings else body


async def beside_loop(size: int, function: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T:
    """Return the result of a function whose time grows with a body; for a large one it is called in a thread.

    Args:
        size: the size of the body, in bytes.
        function: the function.
        arguments: its arguments.
        options: its arguments with names.
    """
    if size < LARGE:
        return function(*arguments, **options)
    return await asyncio.to_thread(function, *arguments, **options)


def object_of(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a request's body is.

    Raises:
        GatewayFailure: the body has too many values, or is not one JSON object.
    """
    if len(body) > MAX_VALUES and sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise GatewayFailure(BODY_TOO_LARGE, f"the body has more than {MAX_VALUES:,} values")
    try:
        value = standard_json(body, lets_threads_run=len(body) >= LARGE)
    except (ValueError, RecursionError) as error:
        raise GatewayFailure(INVALID, f"the body is not JSON: {error}"[:300]) from error
    if is_nested_too_deeply(value, body):
        raise GatewayFailure(INVALID, "the body is nested too deeply")
    if not isinstance(value, dict):
        raise GatewayFailure(INVALID, f"the body must be a JSON object, not a {type(value).__name__}")
    return value


async def _read(receive: Receive, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise ConnectionError("the client has gone")
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > limit:
                    raise GatewayFailure(BODY_TOO_LARGE, f"the body has more than {limit >> 20} MiB")
                more = message.get("more_body", False)
    except TimeoutError as error:
        message = f"the body did not arrive within {BODY_SECONDS:.0f} seconds"
        raise GatewayFailure(INVALID, message, status=408) from error
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def unpacked(body: bytes, encodings: str, limit: int) -> bytes:
    """Return a body without its compression.

    Args:
        body: the body.
        encodings: the header `content-encoding`.
        limit: maximum size of the result, in bytes.

    Raises:
        GatewayFailure: the compression is unknown, the body is not compressed so, or the result is too large.
    """
    names = [name.strip().lower() for name in encodings.split(",") if name.strip()]
    for name in reversed(names):
        if name == "identity":
            continue
        unpack = _UNPACKERS.get(name)
        if unpack is None or len(names) > 1:
            message = f"the body is compressed as {encodings!r:.60}; use one of {', '.join(_UNPACKERS)}"
            raise GatewayFailure(UNKNOWN_ENCODING, message)
        try:
            pieces: list[bytes] = []
            size = 0
            for piece in unpack(body):
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise GatewayFailure(BODY_TOO_LARGE, f"the unpacked body has more than {limit >> 20} MiB")
        except (zlib.error, EOFError) as error:
            raise GatewayFailure(INVALID, f"the body is not compressed as {name}: {error}"[:300]) from error
        body = b"".join(pieces)
    return body


def _inflated(body: bytes, window: int) -> Iterator[bytes]:
    inflate = zlib.decompressobj(window)
    while True:
        yield inflate.decompress(body, _STEP)
        body = inflate.unconsumed_tail
        if not body:
            break
    yield inflate.flush()
    if not inflate.eof:
        raise EOFError("it ends too early")


def _deflated(body: bytes) -> Iterator[bytes]:
    """Yield a body of deflate, which some clients send without the header that the standard requires."""
    has_header = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
    return _inflated(body, zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)


def _zstandard(body: bytes) -> Iterator[bytes]:
    with needs_extra("A body that is compressed as zstd"):
        import zstandard
    unpacker = zstandard.ZstdDecompressor(max_window_size=8 << 20).decompressobj()
    try:
        for at in range(0, len(body), _ZSTANDARD_STEP):
            if unpacker.eof:
                break
            yield unpacker.decompress(body[at : at + _ZSTANDARD_STEP])
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error
    if not unpacker.eof:
        raise EOFError("it ends too early")


_UNPACKERS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": lambda body: _inflated(body, zlib.MAX_WBITS | 16),
    "x-gzip": lambda body: _inflated(body, zlib.MAX_WBITS | 16),
    "deflate": _deflated,
    "zstd": _zstandard,
}
