"""Law L8: whatever a model writes into a call is in the call, in a problem or in content."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property import texts
from tests.property.nodes import names

import toolwire
from toolwire.messages import ParsedResponse

KEY, VALUE = "qkeyq", "qvalueq"
"""Words that are in no format, and in no text that is drawn."""

ADDED = (
    f'"{KEY}": "{VALUE}", ',
    f', "{KEY}": "{VALUE}"',
    f'"{KEY}": {{"a": ["{VALUE}"]}}, ',
    f", {KEY}='{VALUE}'",
    f" {KEY}={VALUE} ",
    f"<{KEY}>{VALUE}</{KEY}>",
    f'<parameter name="{KEY}">{VALUE}</parameter>',
    f"{KEY}:{VALUE},",
    f"{KEY}\n{VALUE}",
)


def _kept(response: ParsedResponse) -> Iterator[str]:
    yield from (response.content, response.reasoning)
    for call in (*response.tool_calls, *response.incomplete):
        yield from (call.name, call.id, call.server, json.dumps(call.arguments, ensure_ascii=False))
    for call in response.incomplete:
        yield call.raw
    for problem in response.problems:
        yield problem.raw


@pytest.mark.parametrize("name", names())
def test_no_added_word_is_dropped(name: str) -> None:
    @given(texts.messages(name), st.integers(0, 2000), st.sampled_from(ADDED), st.booleans(), st.booleans())
    def check(text: str, place: int, added: str, repair: bool, known: bool) -> None:
        # At a place where something is written between two parts, rather than in the middle of a word.
        places = [at for at, character in enumerate(text) if not character.isalnum()] or [0]
        at = places[place % len(places)]
        whole = text[: at + 1] + added + text[at + 1 :]
        response = toolwire.parse(
            whole, format=name, tools=texts.TOOLS if known else (), repair="safe" if repair else "none"
        )
        kept = list(_kept(response))
        for word in (KEY, VALUE):
            assert any(word in part for part in kept), f"{word!r} is lost: {whole!r} {response!r}"

    check()
