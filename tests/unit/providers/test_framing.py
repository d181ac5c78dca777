"""Streams of bytes cut into objects, in any split."""

import json
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.providers import framing as framing_module
from toolwire.providers.framing import (
    AwsEventStream,
    Frame,
    Framing,
    JsonLines,
    JsonObjects,
    ServerSentEvents,
    aws_event,
    json_line,
    sse,
)

VALUES = st.lists(
    st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers() | st.none(), max_size=4), max_size=6
)


def frames(framing: Framing, data: bytes, size: int) -> list[Frame]:
    frames: list[Frame] = []
    for at in range(0, len(data), size):
        frames += framing.feed(data[at : at + size])
    return [*frames, *framing.finish()]


def values(found: list[Frame]) -> list[object]:
    assert not any(frame.error for frame in found), found
    return [frame.value for frame in found]


@given(VALUES, st.integers(1, 40))
def test_framed_objects_are_read_in_any_split(objects: list[dict[str, object]], size: int) -> None:
    assert values(frames(ServerSentEvents(), b"".join(map(sse, objects)), size)) == objects
    assert values(frames(JsonObjects(), b"".join(map(json_line, objects)), size)) == objects
    array = json.dumps(objects, indent=1).encode()
    assert values(frames(ServerSentEvents(), array if objects else b"", size)) == objects
    events = b"".join(aws_event(chunk, "chunk") for chunk in objects)
    assert values(frames(AwsEventStream(), events, size)) == objects


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends_are_accepted(end: str, size: int) -> None:
    text = end.join(
        [": hello", "event: ping", 'data: {"a":', "data: 1}", "", "id: 7", 'data:{"b":2}', "", "data: [DONE]", "", ""]
    )
    result = frames(ServerSentEvents(), text.encode(), size)
    assert [(frame.value, frame.event) for frame in result] == [({"a": 1}, "ping"), ({"b": 2}, "")]


def test_line_end_may_be_split_by_empty_pieces() -> None:
    framing = ServerSentEvents()
    frames = [
        frame for piece in (b'data: {"a":\r', b"", b"\ndata: 1}\r", b"", b"\n\r\n") for frame in framing.feed(piece)
    ]
    assert values(frames) == [{"a": 1}]


def test_end_marker_is_not_a_frame() -> None:
    framing = ServerSentEvents()
    assert list(framing.feed(b'data: {"a":1}\n\n')) == [Frame({"a": 1})]
    assert not framing.ended
    assert list(framing.feed(b"data: [DONE]\n\n")) == []
    assert framing.ended


def test_missing_empty_lines_are_tolerated() -> None:
    assert values(frames(ServerSentEvents(), b'data: {"a":1}\ndata: {"b":2}\n\ndata: {"c":3}', 5)) == [
        {"a": 1},
        {"b": 2},
        {"c": 3},
    ]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_invalid_frame_is_reported_and_the_rest_is_read(size: int) -> None:
    result = frames(ServerSentEvents(), b'data: {"a":1}\n\ndata: oops\n\ndata: {"b":NaN}\n\ndata: {"c":3}\n\n', size)
    assert [frame.value for frame in result] == [{"a": 1}, None, None, {"c": 3}]
    assert [frame.raw for frame in result] == ["", "oops", '{"b":NaN}', ""]
    result = frames(JsonObjects(), b'{"a":1} junk {"b":2}\n{"c":', size)
    assert [(frame.value, frame.raw) for frame in result] == [
        ({"a": 1}, ""),
        (None, "junk"),
        ({"b": 2}, ""),
        (None, '{"c":'),
    ]


def test_damaged_binary_frames_are_reported() -> None:
    good = aws_event({"a": 1}, "x")
    assert [frame.event for frame in frames(AwsEventStream(), good, 3)] == ["x"]
    for at in range(len(good)):
        broken = bytearray(good)
        broken[at] ^= 1
        result = frames(AwsEventStream(), bytes(broken) + good, 7)
        assert len([frame for frame in result if frame.error]) == 1
    assert [bool(frame.error) for frame in frames(AwsEventStream(), good[:-1], 4)] == [True]


def test_no_more_than_one_frame_is_buffered() -> None:
    line = sse({"text": "x" * 1000})
    framing = ServerSentEvents()
    tracemalloc.start()
    for _ in range(2000):
        list(framing.feed(line))
    pending, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pending < 100_000


@pytest.mark.parametrize(
    ("framing", "piece"),
    [
        (ServerSentEvents, b"data: xxxxxxxx"),
        (ServerSentEvents, b"data: xxxxxxxx\n"),
        (ServerSentEvents, b"data\n"),
        (ServerSentEvents, b'{"a": "xxxxxxxx'),
        (JsonLines, b'{"a": "xxxxxxx'),
        (JsonObjects, b'{"a": "xxxxxxx'),
    ],
)
def test_an_event_without_an_end_is_not_collected(
    framing: type[ServerSentEvents | JsonLines | JsonObjects], piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(framing_module, "MAX_EVENT", 1_000)
    reader = framing()
    frames = [frame for _ in range(500) for frame in reader.feed(piece)] + list(reader.finish())
    assert [(frame.value, bool(frame.error)) for frame in frames] == [(None, True)]
    assert len(frames[0].raw) <= framing_module.MAX_SHOWN


def test_an_event_that_arrives_whole_is_not_larger_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing_module, "MAX_EVENT", 100)
    for size, refused in ((100, False), (101, True)):
        reader = ServerSentEvents()
        (frame,) = reader.feed(b"data: ".ljust(size, b"1") + b"\n\n")
        assert frame.error.startswith("an event has more than") is refused
        assert (list(reader.feed(b"data: 1\n\n")) == []) is refused


def test_a_frame_that_is_nested_too_deeply_is_an_error() -> None:
    for depth in (300, 50_000):
        (frame,) = ServerSentEvents().feed(b"data: " + b"[" * depth + b"]" * depth + b"\n\n")
        assert (frame.value, frame.error, len(frame.raw)) == (None, "it is nested too deeply", 300)
    (frame,) = JsonLines().feed(b'{"a":' + b"[" * 200 + b"]" * 200 + b"}\n")
    assert not frame.error


def test_bytes_that_are_not_text_are_shown_as_far_as_they_are() -> None:
    (frame,) = ServerSentEvents().feed(b"data: {\xff}\n\n")
    assert (frame.value, frame.raw) == (None, "{\ufffd}")
    (frame,) = ServerSentEvents().feed(b"event: a\xffb\ndata: 1\n\n")
    assert (frame.value, frame.event) == (1, "a\ufffdb")


@pytest.mark.parametrize(
    ("framing", "before", "begin"),
    [
        (ServerSentEvents, b"", b"data:"),
        (ServerSentEvents, b": comment\n", b"data:"),
        (ServerSentEvents, b'data: {"a": 1}\n\n', b"data:"),
        (ServerSentEvents, b"", b'{"a": "'),
        (JsonLines, b"", b'{"a": "'),
        (JsonLines, b'{"a": 1}\n', b'{"a": "'),
        (JsonObjects, b"", b'{"a": "'),
        (JsonObjects, b'{"a": 1}', b'{"a": "'),
    ],
)
def test_as_many_bytes_as_the_limit_may_wait_for_their_end(
    framing: type[ServerSentEvents | JsonLines | JsonObjects],
    before: bytes,
    begin: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(framing_module, "MAX_EVENT", 100)
    reader = framing()
    list(reader.feed(before))
    assert list(reader.feed(begin.ljust(100, b"x"))) == []
    (frame,) = reader.feed(b"x")
    assert frame.error.startswith("an event has more than")
    assert list(reader.feed(b"x")) == list(reader.finish()) == []


def aws_frame(headers: bytes, payload: bytes = b"{}") -> bytes:
    prelude = (16 + len(headers) + len(payload)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    body = prelude + zlib.crc32(prelude).to_bytes(4, "big") + headers + payload
    return body + zlib.crc32(body).to_bytes(4, "big")


def aws_header(name: str, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


EVENT_TYPE = aws_header(":event-type", 7, b"\x00\x05chunk")


@pytest.mark.parametrize(("kind", "size"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)])
def test_headers_of_every_type_are_passed_over(kind: int, size: int) -> None:
    (frame,) = AwsEventStream().feed(aws_frame(aws_header("other", kind, b"\x07" * size) + EVENT_TYPE))
    assert frame == Frame({}, "chunk")


def test_headers_with_a_length_of_their_own_are_passed_over() -> None:
    for kind in (6, 7):
        headers = aws_header("other", kind, b"\x01\x01" + b"y" * 257) + EVENT_TYPE
        assert [frame.event for frame in AwsEventStream().feed(aws_frame(headers))] == ["chunk"]


@pytest.mark.parametrize(
    ("headers", "event"),
    [
        (aws_header("other", 10, b"") + EVENT_TYPE, ""),  # a type that the protocol does not have
        (b"\x05other", ""),  # a name, and nothing behind it
        (b"\x50other", ""),
        (EVENT_TYPE + b"\x05other", "chunk"),
        (aws_header(":exception-type", 7, b"\x00\x04slow"), "slow"),
        (aws_header(":error-code", 7, b"\x00\x04full"), "full"),
        (b"", ""),
    ],
)
def test_headers_that_cannot_be_read_end_the_search_for_a_name(headers: bytes, event: str) -> None:
    (frame,) = AwsEventStream().feed(aws_frame(headers, b'{"a": 1}'))
    assert frame == Frame({"a": 1}, event)


def test_a_frame_may_have_no_payload() -> None:
    assert list(AwsEventStream().feed(aws_frame(EVENT_TYPE, b""))) == [Frame({}, "chunk")]
