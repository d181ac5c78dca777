"""Text that is collected in pieces."""

import tracemalloc

import pytest

from toolwire.wire.text_buffer import TextBuffer


@pytest.mark.parametrize("count", [0, 1, 2, 1023, 1024, 1025, 5000])
def test_the_pieces_come_back_in_order_and_once(count: int) -> None:
    buffer = TextBuffer()
    pieces = [f"{number};" for number in range(count)]
    for piece in pieces:
        buffer.add(piece)
    assert bool(buffer) == (count > 0)
    assert buffer.take() == "".join(pieces)
    assert not buffer
    assert buffer.take() == ""


def test_a_buffer_can_be_filled_again() -> None:
    buffer = TextBuffer()
    for text in ("first", "second"):
        buffer.add(text)
        assert buffer.take() == text


def test_many_small_pieces_take_little_more_memory_than_their_text() -> None:
    buffer = TextBuffer()
    tracemalloc.start()
    try:
        for number in range(100_000, 200_000):
            buffer.add(str(number))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(buffer.take()) == 600_000
    assert size < 3 * 600_000
