"""The code fence around an answer of JSON: removed in every split, and nothing else."""

from __future__ import annotations

import pytest

from toolwire import CallEnd, ContentDelta, Event, Finish, FinishReason, ToolCall, Usage, UsageCounted
from toolwire.gateway.fenced_output import FencedOutput

FENCE = "```"


def content(pieces: list[str], *last: Event) -> str:
    output = FencedOutput()
    events = [ContentDelta(piece) for piece in pieces]
    written = [event for piece in events for event in output.without_fence([piece])]
    written += output.without_fence([*last, Finish(FinishReason.STOP)])
    assert isinstance(written[-1], Finish)
    return "".join(event.text for event in written if isinstance(event, ContentDelta))


TEXTS = {
    "json fence": (f'{FENCE}json\n{{"a": "`b`"}}\n{FENCE}', '{"a": "`b`"}'),
    "fence": (f" \n{FENCE}\n[1]\n{FENCE}\n\n", "[1]"),
    "line ends of Windows": (f"{FENCE}json\r\n[1]\r\n{FENCE}\r\n", "[1]"),
    "no closing fence": (f"{FENCE}json\n[1]\n", "[1]\n"),
    "no fence": ('{"a": 1}', '{"a": 1}'),
    "two backticks": ("``x``", "``x``"),
    "fence without an end of its line": (f"{FENCE}json", f"{FENCE}json"),
    "prose first": (f"Here:\n{FENCE}json\n[1]\n{FENCE}", f"Here:\n{FENCE}json\n[1]\n{FENCE}"),
    "prose last": (f"{FENCE}json\n[1]\n{FENCE}\nDone.", f"[1]\n{FENCE}\nDone."),
    "backticks and spaces inside": (f"{FENCE}\n` `` ``` \n ````` x \n{FENCE}", "` `` ``` \n ````` x"),
    "empty": ("", ""),
    "nothing in the fence": (f"{FENCE}\n{FENCE}", ""),
}


@pytest.mark.parametrize("name", TEXTS)
def test_every_split_gives_the_content_of_the_fence(name: str) -> None:
    text, expected = TEXTS[name]
    assert content(list(text)) == expected
    for at in range(len(text) + 1):
        assert content([text[:at], text[at:]]) == expected


def test_text_that_waits_is_written_before_a_call() -> None:
    output = FencedOutput()
    call = CallEnd(0, ToolCall("f", {}), True)
    assert output.without_fence([ContentDelta(f"{FENCE}js"), call]) == [ContentDelta(f"{FENCE}js"), call]


def test_token_counts_do_not_end_the_fence() -> None:
    assert content([f"{FENCE}\n[1", "]", f"\n{FENCE}"], UsageCounted(Usage(1, 2))) == "[1]"


@pytest.mark.parametrize("beginning", ["", f"{FENCE}json", f"{FENCE}\n", f"{FENCE}\n[1]\n{FENCE}"], ids=range(4))
@pytest.mark.parametrize("flood", [" ", "\n", "`", "x"], ids=["space", "newline", "backtick", "letter"])
def test_little_text_waits_for_what_follows(beginning: str, flood: str) -> None:
    output = FencedOutput()
    events = [event for piece in (beginning, *flood * 1_000) for event in output.without_fence([ContentDelta(piece)])]
    assert sum(len(event.text) for event in events if isinstance(event, ContentDelta)) > 900
