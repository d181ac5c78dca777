"""Recordings: what they may contain, and how large an answer may be."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.errors import ConfigurationError, ProviderError
from toolwire.testing import RecordingTransport, ReplayTransport

EXCHANGE = {"url": "http://h/v1", "request": {}, "status": 200, "answer": "{}"}


class Endless:
    """A server whose answer does not end."""

    @asynccontextmanager
    async def open(self, _: HttpRequest) -> AsyncIterator[HttpAnswer]:
        async def body() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 1_000

        yield HttpAnswer(200, {}, body())


def test_an_endless_answer_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.testing.transports.MAX_STREAM", 10_000)

    async def read() -> None:
        async with RecordingTransport(Endless(), tmp_path / "file").open(HttpRequest("http://h", b"{}")) as answer:
            async for _ in answer.body:
                pass

    with pytest.raises(ProviderError):
        asyncio.run(read())
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "[" * 100_000,
        json.dumps({"url": "http://h", "request": {}}),
        json.dumps({**EXCHANGE, "status": "200"}),
        json.dumps({**EXCHANGE, "answer": None}),
    ],
)
def test_a_line_that_is_not_an_exchange_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_text(f"{json.dumps(EXCHANGE)}\n\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"recording, line 3: it is not an exchange"):
        ReplayTransport(path)


def test_an_answer_that_is_too_large_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.testing.transports.MAX_STREAM", 1)
    path = tmp_path / "recording"
    path.write_text(json.dumps(EXCHANGE))
    with pytest.raises(ConfigurationError, match="line 1: its answer has more than 1 bytes"):
        ReplayTransport(path)
