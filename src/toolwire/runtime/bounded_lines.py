"""Lines of a file or a pipe whose lengths are limited, so that no line takes all memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO


def bounded_lines(file: BinaryIO, limit: int) -> Iterator[tuple[bytes | None, int]]:
    """Yield each line with its number of bytes; None in place of one that is longer than the limit.

    Args:
        file: the file.
        limit: maximum length of a line without its end, in bytes.
    """
    while line := file.readline(limit + 1):
        size = len(line)
        is_too_long = size > limit and not line.endswith(b"\n")
        while is_too_long and line and not line.endswith(b"\n"):
            line = file.readline(limit)
            size += len(line)
        yield (None if is_too_long else line), size
