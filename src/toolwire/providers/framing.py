"""Framings: they cut bytes into JSON objects. Server-sent events, JSON lines, a JSON array, AWS event streams.

A framing is fed bytes in any split and yields whole frames, in linear time. Bytes that are not a frame become a `Frame`
with an `error`; nothing raises.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Protocol

from toolwire.text.json_text import is_nested_too_deeply, refuse_constant

DONE = b"[DONE]"
MAX_FRAME = 16 * 1024 * 1024
"""Bytes; the maximum length of a frame of an AWS event stream, set by its protocol."""

MAX_EVENT = 32 * 1024 * 1024
"""Bytes; the maximum length of an event or a line in the other framings. A stream with a longer one is not read on."""
MAX_SHOWN = 300
"""Bytes shown of a frame that is too long or nested too deeply."""
_TOO_DEEP = "it is nested too deeply"


@dataclass(slots=True)
class Frame:
    """One object of a stream.

    Attributes:
        value: the object; None after an error.
        event: the name that the framing gives it, or "".
        error: the reason why the bytes are not an object, or "".
        raw: the bytes as text after an error.
    """

    value: Any = None
    event: str = ""
    error: str = ""
    raw: str = ""


class Framing(Protocol):
    """A way to cut bytes into frames.

    Attributes:
        ended: whether the stream contained an end marker.
    """

    ended: bool

    def feed(self, data: bytes) -> Iterable[Frame]:
        """Yield the frames that the next bytes complete."""
        ...

    def wrap(self, value: dict[str, Any]) -> Frame:
        """Return the frame of an object that a client of the provider has cut out already."""
        ...

    def finish(self) -> Iterable[Frame]:
        """End the bytes, and yield the rest."""
        ...


# A number out of range is read: most are in members that nobody needs, and they must not cost an answer.
_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


def _decode(text: str) -> Any:
    """Return the value of a JSON text; `JSONDecoder.decode` alone looks for white space at both ends of each text."""
    if text[:1] == "{":
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
    return _DECODER.decode(text)


def frame_of(data: bytes, event: str = "") -> Frame:
    """Return the frame of an object that is written as JSON; one with an error if it is not."""
    try:
        value = _decode(data.decode("utf-8"))
    except RecursionError:
        return Frame(None, event, _TOO_DEEP, data[:MAX_SHOWN].decode("utf-8", "replace"))
    except ValueError as error:  # a UnicodeDecodeError is a ValueError
        return Frame(None, event, f"it is not JSON: {error}", data.decode("utf-8", "replace"))
    if is_nested_too_deeply(value, data):
        return Frame(None, event, _TOO_DEEP, data[:MAX_SHOWN].decode("utf-8", "replace"))
    return Frame(value, event)


def _oversized(data: bytes) -> Frame:
    why = f"an event has more than {MAX_EVENT >> 20} MiB"
    return Frame(None, "", why, data[:MAX_SHOWN].decode("utf-8", "replace"))


class _Lines:
    """Cuts bytes into lines, at any of the three line ends."""

    _END = re.compile(rb"\r\n|\r|\n")

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self.size = 0
        """Bytes of the unfinished line."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not data:
            return
        if self._pending and self._pending[-1].endswith(b"\r"):  # it may have been half of a line end
            line = b"".join(self._pending)[:-1]
            self._pending, self.size = [], 0
            yield line
            data = data[data.startswith(b"\n") :]
        *lines, rest = data.split(b"\n") if b"\r" not in data else self._split(data)
        for line in lines:
            if self._pending:
                self._pending.append(line)
                line = b"".join(self._pending)
                self._pending, self.size = [], 0
            yield line
        if rest:
            self._pending.append(rest)
            self.size += len(rest)

    def drop(self) -> bytes:
        """Forget the unfinished line, and return its beginning."""
        begin = self._pending[0] if self._pending else b""
        self._pending, self.size = [], 0
        return begin

    def _split(self, data: bytes) -> list[bytes]:
        """Return lines and the rest after the last one, which includes a carriage return at the end."""
        if data.endswith(b"\r"):
            *lines, rest = self._END.split(data[:-1])
            return [*lines, rest + b"\r"]
        return self._END.split(data)

    def finish(self) -> Iterator[bytes]:
        if rest := b"".join(self._pending).rstrip(b"\r"):
            yield rest
        self._pending, self.size = [], 0


class ServerSentEvents:
    """`data:` lines up to an empty one; or a single JSON array or object, as Gemini sends it."""

    def __init__(self) -> None:
        self.ended = False
        self._lines = _Lines()
        self._data: list[bytes] = []
        self._size = 0  # of `_data`
        self._is_broken = False
        self._event = ""
        self._other: Framing | None = None
        self._begun = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that the next bytes complete."""
        if self._is_broken:
            return
        if not self._begun:
            begin = data.lstrip(b" \t\r\n\xef\xbb\xbf")
            if not begin:
                return
            self._begun = True
            if begin[:1] in (b"[", b"{"):
                self._other = JsonObjects()
            data = begin
        if self._other is not None:
            yield from self._other.feed(data)
            return
        for line in self._lines.feed(data):
            if line[:5] == b"data:":
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._size += len(line)
                if self._size > MAX_EVENT:
                    break
            elif line:
                self._field(line)
            else:
                yield from self._whole()
        if self._size + self._lines.size > MAX_EVENT:
            self._is_broken = True
            begin, self._data = self._data[0] if self._data else b"", []
            yield _oversized(begin or self._lines.drop())

    def wrap(self, value: dict[str, Any]) -> Frame:
        """Return the frame of an object."""
        return Frame(value)

    def finish(self) -> Iterator[Frame]:
        """End the bytes, and yield the rest."""
        if self._other is not None:
            yield from self._other.finish()
            return
        if self._is_broken:
            return
        for line in self._lines.finish():
            self._field(line)
        yield from self._whole()

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value[value.startswith(b" ") :]
        if field == b"data":
            self._data.append(value)
            self._size += len(line)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")

    def _whole(self) -> Iterator[Frame]:
        """Yield the event that an empty line completes, if there is one."""
        lines, event = self._data, self._event
        if not lines:
            self._event = ""
            return
        self._data, self._event, self._size = [], "", 0
        data = (lines[0] if len(lines) == 1 else b"\n".join(lines)).strip()
        if data in (b"", DONE):
            self.ended = self.ended or data == DONE
            return
        frame = frame_of(data, event)
        if frame.error and len(lines) > 1:  # some servers leave out the empty lines
            yield from (frame_of(line, event) for line in lines if line.strip() not in (b"", DONE))
        else:
            yield frame


class JsonLines:
    """One object on each line."""

    def __init__(self) -> None:
        self.ended = False
        self._is_broken = False
        self._lines = _Lines()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that the next bytes complete."""
        if self._is_broken:
            return
        for line in self._lines.feed(data):
            if line.strip():
                yield frame_of(line)
        if self._lines.size > MAX_EVENT:
            self._is_broken = True
            yield _oversized(self._lines.drop())

    def wrap(self, value: dict[str, Any]) -> Frame:
        """Return the frame of an object."""
        return Frame(value)

    def finish(self) -> Iterator[Frame]:
        """End the bytes, and yield the rest."""
        for line in self._lines.finish():
            if line.strip():
                yield frame_of(line)


class JsonObjects:
    """JSON objects, one after another or as the items of an array, on any number of lines."""

    _MARK = re.compile(rb'["{}]')
    _STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)

    def __init__(self) -> None:
        self.ended = False
        self._buffer = bytearray()
        self._at = 0  # position up to which the bytes were scanned
        self._depth = 0
        self._in_string = False
        self._is_broken = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that the next bytes complete."""
        if self._is_broken:
            return
        buffer = self._buffer
        buffer += data
        pos, start = self._at, 0
        while pos < len(buffer):
            if self._in_string:
                match = self._STRING.match(buffer, pos)
                pos = match.end() if match else pos
                if pos == len(buffer) or buffer[pos] != 0x22:  # the string continues, or ends with a backslash so far
                    break
                self._in_string = False
                pos += 1
                continue
            match = self._MARK.search(buffer, pos)
            if match is None:
                pos = len(buffer)
                break
            pos = match.end()
            if match[0] == b'"':
                self._in_string = True
            elif match[0] == b"{":
                if self._depth == 0:
                    yield from self._between(bytes(buffer[start : pos - 1]))
                    start = pos - 1
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if self._depth == 0:
                    yield frame_of(bytes(buffer[start:pos]))
                    start = pos
        del buffer[:start]
        self._at = pos - start
        if len(buffer) > MAX_EVENT:
            self._is_broken = True
            yield _oversized(bytes(buffer[:MAX_SHOWN]))
            buffer.clear()
            self._depth = 0

    def wrap(self, value: dict[str, Any]) -> Frame:
        """Return the frame of an object."""
        return Frame(value)

    def finish(self) -> Iterator[Frame]:
        """End the bytes, and yield the rest."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if self._depth:
            yield Frame(None, "", "the stream ends inside an object", rest.decode("utf-8", "replace"))
        else:
            yield from self._between(rest)

    @staticmethod
    def _between(data: bytes) -> Iterator[Frame]:
        if text := data.strip(b" \t\r\n,[]"):
            yield Frame(None, "", "it is not JSON", text.decode("utf-8", "replace"))


_HEADER_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value, by its type; text and bytes have a length of their own."""

_MAX_KINDS = 64
"""Combinations of headers that are cached."""


class AwsEventStream:
    """The binary frames of `application/vnd.amazon.eventstream`: lengths, headers, payload and two checksums."""

    _PRELUDE = Struct(">III")

    def __init__(self) -> None:
        self.ended = False
        self._buffer = bytearray()
        self._broken = False
        self._other: JsonObjects | None = None
        self._kinds: dict[bytes, str] = {}  # by headers

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that the next bytes complete."""
        if self._broken:
            return
        buffer = self._buffer
        if self._other is None and not buffer and data[:1] == b"{":
            self._other = JsonObjects()  # an error of a server before AWS; a frame would have more than 1 GB
        if self._other is not None:
            yield from self._other.feed(data)
            return
        buffer += data
        start = 0
        while len(buffer) - start >= self._PRELUDE.size:
            total, headers, checksum = self._PRELUDE.unpack_from(buffer, start)
            if zlib.crc32(buffer[start : start + 8]) != checksum or not 16 + headers <= total <= MAX_FRAME:
                yield self._broke(
                    "the lengths of a frame do not match their checksum", bytes(buffer[start : start + 12])
                )
                return
            if len(buffer) - start < total:
                break
            body = bytes(buffer[start : start + total])
            if zlib.crc32(body[:-4]) != int.from_bytes(body[-4:], "big"):
                yield self._broke("a frame does not match its checksum", body)
                return
            yield frame_of(body[12 + headers : -4] or b"{}", self._kind(body[12 : 12 + headers]))
            start += total
        del buffer[:start]

    def wrap(self, value: dict[str, Any]) -> Frame:
        """Return the frame of an object: botocore puts it under the name of the event."""
        name, payload = next(iter(value.items()), ("", None))
        return Frame(payload, name) if len(value) == 1 and isinstance(payload, dict) else Frame(value)

    def finish(self) -> Iterator[Frame]:
        """End the bytes, and yield the rest."""
        if self._other is not None:
            yield from self._other.finish()
        elif self._buffer and not self._broken:
            yield Frame(None, "", "the stream ends inside a frame", repr(bytes(self._buffer)))

    def _broke(self, why: str, data: bytes) -> Frame:
        self._broken = True
        return Frame(None, "", why, repr(data[:300]))

    def _kind(self, headers: bytes) -> str:
        """Return the name that the headers give a frame; most frames of a stream have the same few headers."""
        kind = self._kinds.get(headers)
        if kind is None:
            names = dict(self._headers(headers))
            kind = names.get(":event-type") or names.get(":exception-type") or names.get(":error-code", "")
            if len(self._kinds) < _MAX_KINDS:
                self._kinds[headers] = kind
        return kind

    def _headers(self, data: bytes) -> Iterator[tuple[str, str]]:
        pos = 0
        while pos < len(data):
            size = data[pos]
            name = data[pos + 1 : pos + 1 + size].decode("utf-8", "replace")
            kind = data[pos + 1 + size] if pos + 1 + size < len(data) else -1
            pos += 2 + size
            if kind in (6, 7):
                size = int.from_bytes(data[pos : pos + 2], "big")
                yield name, data[pos + 2 : pos + 2 + size].decode("utf-8", "replace")
                pos += 2 + size
            elif kind in _HEADER_SIZES:
                pos += _HEADER_SIZES[kind]
            else:
                return


def sse(value: Any, event: str = "") -> bytes:
    """Return a server-sent event."""
    head = f"event: {event}\n" if event else ""
    return head.encode() + b"data: " + json_bytes(value) + b"\n\n"


def json_line(value: Any) -> bytes:
    """Return a line of JSON."""
    return json_bytes(value) + b"\n"


def aws_event(value: Any, event: str, *, exception: bool = False) -> bytes:
    """Return a frame of an AWS event stream; `exception`: one that reports an error."""
    kind = "exception" if exception else "event"
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(text).to_bytes(2, "big") + text.encode()
        for name, text in ((f":{kind}-type", event), (":content-type", "application/json"), (":message-type", kind))
    )
    payload = json_bytes(value)
    prelude = (16 + len(headers) + len(payload)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    body = prelude + zlib.crc32(prelude).to_bytes(4, "big") + headers + payload
    return body + zlib.crc32(body).to_bytes(4, "big")


def json_bytes(value: Any) -> bytes:
    """Return JSON text without blanks in UTF-8."""
    try:
        return compact(value).encode()
    except UnicodeEncodeError:  # UTF-8 cannot contain half of a surrogate pair: an escape can
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def compact(value: Any) -> str:
    """Return JSON text without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
