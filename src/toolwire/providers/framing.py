"""How APIs cut a stream of bytes into JSON objects: server-sent events, JSON lines, a JSON array, AWS event streams.

Each framing is fed bytes in any split and gives the frames that are whole, in linear time. Bytes that are no frame
become a `Frame` whose `error` says so; nothing raises.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Protocol

from toolwire.text.json_text import refuse_constant

DONE = b"[DONE]"
MAX_FRAME = 16 * 1024 * 1024
"""Bytes that a frame of an AWS event stream may have, as its protocol says."""


@dataclass(slots=True)
class Frame:
    """One object of a stream.

    Attributes:
        value: the object; None if the bytes are none.
        event: what the framing calls it, or "".
        error: why the bytes are no object.
        raw: the bytes, as text, where there is an error.
    """

    value: Any = None
    event: str = ""
    error: str = ""
    raw: str = ""


class Framing(Protocol):
    """Cuts bytes into frames.

    Attributes:
        ended: the stream has said that it is over.
    """

    ended: bool

    def feed(self, data: bytes) -> Iterable[Frame]:
        """The frames that the next bytes complete."""
        ...

    def finish(self) -> Iterable[Frame]:
        """The bytes are over: what is left."""
        ...


_decode = json.JSONDecoder(parse_constant=refuse_constant).decode


def _frame(data: bytes, event: str = "") -> Frame:
    try:
        return Frame(_decode(data.decode("utf-8")), event)
    except (ValueError, RecursionError) as error:  # a UnicodeDecodeError is a ValueError
        return Frame(None, event, f"it is not JSON: {error}", data.decode("utf-8", "replace"))


class _Lines:
    """Bytes cut into lines, at any of the three line ends."""

    _END = re.compile(rb"\r\n|\r|\n")

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not data:
            return
        if self._held and self._held[-1].endswith(b"\r"):  # it may have been half of a line end
            line = b"".join(self._held)[:-1]
            self._held = []
            yield line
            data = data[data.startswith(b"\n") :]
        *lines, rest = data.split(b"\n") if b"\r" not in data else self._split(data)
        for line in lines:
            if self._held:
                self._held.append(line)
                line = b"".join(self._held)
                self._held = []
            yield line
        if rest:
            self._held.append(rest)

    def _split(self, data: bytes) -> list[bytes]:
        """Lines, and what follows the last; a carriage return at the very end stays with that."""
        if data.endswith(b"\r"):
            *lines, rest = self._END.split(data[:-1])
            return [*lines, rest + b"\r"]
        return self._END.split(data)

    def finish(self) -> Iterator[bytes]:
        if rest := b"".join(self._held).rstrip(b"\r"):
            yield rest
        self._held = []


class ServerSentEvents:
    """`data:` lines up to an empty one; a body without any may be one JSON array or object, as Gemini sends it."""

    def __init__(self) -> None:
        self.ended = False
        self._lines = _Lines()
        self._data: list[bytes] = []
        self._event = ""
        self._other: Framing | None = None
        self._begun = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that the next bytes complete."""
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
            elif line:
                self._field(line)
            else:
                yield from self._whole()

    def finish(self) -> Iterator[Frame]:
        """The bytes are over: what is left."""
        if self._other is not None:
            yield from self._other.finish()
            return
        for line in self._lines.finish():
            self._field(line)
        yield from self._whole()

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value[value.startswith(b" ") :]
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")

    def _whole(self) -> Iterator[Frame]:
        """An empty line: the event is whole, if there is one."""
        lines, event = self._data, self._event
        if not lines:
            self._event = ""
            return
        self._data, self._event = [], ""
        data = lines[0] if len(lines) == 1 else b"\n".join(lines)
        if data.strip() in (b"", DONE):
            self.ended = self.ended or data.strip() == DONE
            return
        frame = _frame(data, event)
        if frame.error and len(lines) > 1:  # some servers leave out the empty lines
            yield from (_frame(one, event) for one in lines if one.strip() not in (b"", DONE))
        else:
            yield frame


class JsonLines:
    """An object on each line."""

    def __init__(self) -> None:
        self.ended = False
        self._lines = _Lines()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that the next bytes complete."""
        for line in self._lines.feed(data):
            if line.strip():
                yield _frame(line)

    def finish(self) -> Iterator[Frame]:
        """The bytes are over: what is left."""
        for line in self._lines.finish():
            if line.strip():
                yield _frame(line)


class JsonObjects:
    """JSON objects, one after another, or as the items of one array that grows; in any number of lines."""

    _MARK = re.compile(rb'["{}]')
    _STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)

    def __init__(self) -> None:
        self.ended = False
        self._held = bytearray()
        self._at = 0  # up to where it was looked at
        self._depth = 0
        self._in_string = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that the next bytes complete."""
        held = self._held
        held += data
        pos, start = self._at, 0
        while pos < len(held):
            if self._in_string:
                match = self._STRING.match(held, pos)
                pos = match.end() if match else pos
                if pos == len(held) or held[pos] != 0x22:  # more of it, or a backslash at the end
                    break
                self._in_string = False
                pos += 1
                continue
            match = self._MARK.search(held, pos)
            if match is None:
                pos = len(held)
                break
            pos = match.end()
            if match[0] == b'"':
                self._in_string = True
            elif match[0] == b"{":
                if self._depth == 0:
                    yield from self._between(bytes(held[start : pos - 1]))
                    start = pos - 1
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if self._depth == 0:
                    yield _frame(bytes(held[start:pos]))
                    start = pos
        del held[:start]
        self._at = pos - start

    def finish(self) -> Iterator[Frame]:
        """The bytes are over: what is left."""
        rest = bytes(self._held)
        self._held.clear()
        if self._depth:
            yield Frame(None, "", "the stream ends inside an object", rest.decode("utf-8", "replace"))
        else:
            yield from self._between(rest)

    @staticmethod
    def _between(data: bytes) -> Iterator[Frame]:
        if text := data.strip(b" \t\r\n,[]"):
            yield Frame(None, "", "it is not JSON", text.decode("utf-8", "replace"))


_HEADER_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value, by its type; text and bytes say theirs themselves."""


_REMEMBERED = 64


class AwsEventStream:
    """The binary frames of `application/vnd.amazon.eventstream`: lengths, headers, payload and two checksums."""

    _PRELUDE = Struct(">III")

    def __init__(self) -> None:
        self.ended = False
        self._held = bytearray()
        self._broken = False
        self._kinds: dict[bytes, str] = {}  # by headers

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that the next bytes complete."""
        if self._broken:
            return
        held = self._held
        held += data
        start = 0
        while len(held) - start >= self._PRELUDE.size:
            total, headers, checksum = self._PRELUDE.unpack_from(held, start)
            if zlib.crc32(held[start : start + 8]) != checksum or not 16 + headers <= total <= MAX_FRAME:
                yield self._broke("the lengths of a frame do not fit their checksum", bytes(held[start : start + 12]))
                return
            if len(held) - start < total:
                break
            body = bytes(held[start : start + total])
            if zlib.crc32(body[:-4]) != int.from_bytes(body[-4:], "big"):
                yield self._broke("a frame does not fit its checksum", body)
                return
            yield _frame(body[12 + headers : -4] or b"{}", self._kind(body[12 : 12 + headers]))
            start += total
        del held[:start]

    def finish(self) -> Iterator[Frame]:
        """The bytes are over: what is left."""
        if self._held and not self._broken:
            yield Frame(None, "", "the stream ends inside a frame", repr(bytes(self._held)))

    def _broke(self, why: str, data: bytes) -> Frame:
        self._broken = True
        return Frame(None, "", why, repr(data[:300]))

    def _kind(self, headers: bytes) -> str:
        """What the headers of a frame call it; most frames of a stream have the same few."""
        kind = self._kinds.get(headers)
        if kind is None:
            names = dict(self._headers(headers))
            kind = names.get(":event-type") or names.get(":exception-type") or names.get(":error-code", "")
            if len(self._kinds) < _REMEMBERED:
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
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return head.encode() + b"data: " + _encoded(value) + b"\n\n"


def json_line(value: Any) -> bytes:
    """One line of JSON."""
    return _encoded(value) + b"\n"


def aws_event(value: Any, event: str, *, exception: bool = False) -> bytes:
    """One frame of an AWS event stream; `exception`: one that says what went wrong."""
    kind = "exception" if exception else "event"
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(text).to_bytes(2, "big") + text.encode()
        for name, text in ((f":{kind}-type", event), (":content-type", "application/json"), (":message-type", kind))
    )
    payload = _encoded(value)
    prelude = (16 + len(headers) + len(payload)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    body = prelude + zlib.crc32(prelude).to_bytes(4, "big") + headers + payload
    return body + zlib.crc32(body).to_bytes(4, "big")


def _encoded(value: Any) -> bytes:
    try:
        return compact(value).encode()
    except UnicodeEncodeError:  # half of a character stands in it: only an escape can say that
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def compact(value: Any) -> str:
    """JSON text without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
