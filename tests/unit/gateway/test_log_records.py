"""The log of the gateway: no error forges a line in it, and no mistake in logging ends a request."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import StringIO

import pytest

from toolwire.gateway.log_records import LOG


@pytest.fixture
def written() -> Iterator[StringIO]:
    """Yield what the log writes."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    LOG.addHandler(handler)
    yield stream
    LOG.removeHandler(handler)


def test_no_line_of_an_error_looks_like_a_record(written: StringIO) -> None:
    try:
        raise ValueError("broken\nERROR all is lost\r\nERROR more")
    except ValueError:
        LOG.exception("a request failed\nERROR another")
    first, *lines = written.getvalue().splitlines()
    assert first == r"ERROR a request failed\nERROR another"
    assert any("ERROR all is lost" in line for line in lines)
    assert not [line for line in lines if not line.startswith("  ")]


def test_a_wrong_argument_of_a_record_raises_nothing(
    written: StringIO, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", True)
    monkeypatch.setattr(LOG, "propagate", False)  # the handlers of pytest raise such errors
    LOG.error("%d requests", "many")
    assert written.getvalue() == ""
    assert "TypeError" in capsys.readouterr().err
