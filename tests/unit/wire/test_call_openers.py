"""A fast look at a text for the beginning of a call."""

from __future__ import annotations

import pytest

import toolwire
from toolwire.errors import UnknownFormat
from toolwire.wire.call_openers import may_contain_call


@pytest.mark.parametrize("format", ["plain", "hermes", "qwen3_coder", "kimi_k2", "mistral_args"])
def test_a_text_without_a_marker_contains_no_call(format: str) -> None:
    assert not may_contain_call("Hello, world: 1 < 2.", format=format)


def test_a_marker_may_begin_a_call() -> None:
    assert may_contain_call("a <tool_call> b", format="hermes")
    assert may_contain_call("a <tool_call> b", format=toolwire.get_format("hermes"))
    assert not may_contain_call("", format="hermes")


def test_any_text_may_contain_a_call_where_no_marker_decides() -> None:
    nocase = next(wire for name in toolwire.formats() if (wire := toolwire.get_format(name)).nocase)
    primed = next(wire for name in toolwire.formats() if (wire := toolwire.get_format(name)).primed)
    for format in ("auto", "Auto", nocase, primed):
        assert may_contain_call("Hello", format=format) and not may_contain_call("", format=format)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="text must be text"):
        may_contain_call(3)  # type: ignore[arg-type]
    with pytest.raises(UnknownFormat):
        may_contain_call("", format="hermez")
