"""Reasoning that a prompt has opened."""

from __future__ import annotations

import pytest

from toolwire.errors import UnknownFormat
from toolwire.wire.formats import FORMATS
from toolwire.wire.prompt_state import prompt_opens_reasoning
from toolwire.wire.syntax import WireFormat

TURN = "<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("prompt", "is_open"),
    [
        ("<|im_start|>user\nHi" + TURN + "<think>\n", True),
        ("<|im_start|>user\nHi" + TURN + "<think>\nI have begun to", True),
        ("<|im_start|>user\nHi" + TURN + "<think>\n\n</think>\n\n", False),
        ("<|im_start|>user\nHi" + TURN, False),
        ("<|im_start|>user\nWrite it between <think> tags" + TURN, False),
        ("<|im_start|>assistant\n<think>a</think>b" + TURN + "<think>", True),
        ("<think>", True),
        ("", False),
    ],
)
def test_the_end_of_the_prompt_decides(prompt: str, is_open: bool) -> None:
    assert prompt_opens_reasoning(prompt, format="hermes") is is_open
    assert prompt_opens_reasoning(prompt) is is_open


@pytest.mark.parametrize("wire", [pytest.param(wire, id=wire.name) for wire in FORMATS if wire.spans])
def test_every_format_has_its_markers(wire: WireFormat) -> None:
    for span in wire.spans:
        assert prompt_opens_reasoning(f"Hello.\n{span.open}\n", format=wire)
        assert not prompt_opens_reasoning(f"Hello.\n{span.open}\n{span.close}\n", format=wire)


def test_words_of_a_prompt_are_no_markers() -> None:
    assert not prompt_opens_reasoning("Begin with Thought: and go on.", format="react")
    assert prompt_opens_reasoning("Question: 1 + 1?\nThought:", format="react")
    assert not prompt_opens_reasoning("Question: 1 + 1?\nThought:")


def test_only_the_end_is_looked_at() -> None:
    assert not prompt_opens_reasoning("<think>" + "a" * 70_000, format="hermes")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="prompt must be text"):
        prompt_opens_reasoning(b"<think>")  # type: ignore[arg-type]
    with pytest.raises(UnknownFormat):
        prompt_opens_reasoning("a", format="hermez")
