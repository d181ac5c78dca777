"""Law L8: whatever a model writes into a call is in the call, in a problem or in content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property import texts
from tests.property.nodes import names
from tests.property.test_dialects import CALLS, TOOLS, WRITERS, Call

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


def _values(response: ParsedResponse) -> Iterator[Any]:
    for call in (*response.tool_calls, *response.incomplete):
        yield from call.arguments.values()


def _lines(arguments: dict[str, Any], template: str, between: str = "") -> str:
    return between.join(template.format(key, json.dumps(value, ensure_ascii=False)) for key, value in arguments.items())


OTHER_WRITERS: dict[str, Callable[[Call], str]] = {
    "thought_beside": lambda call: json.dumps({"thought": "I look.", "tool": call[0], "args": call[1]}),
    "misspelled_key": lambda call: json.dumps({"name": call[0], "argumentz": call[1]}),
    "yaml": lambda call: f"name: {call[0]}\narguments:\n{_lines(call[1], '  {}: {}', chr(10))}",
    "command": lambda call: f"/{call[0]} {_lines(call[1], '{}={}', ' ')}",
    "attributes": lambda call: f'<use name="{call[0]}" {_lines(call[1], "{}={}", " ")}/>',
    "elements_below": lambda call: f"{call[0]}\n{_lines(call[1], '<{0}>{1}</{0}>', chr(10))}",
    "headings": lambda call: f"Action: {call[0]}\nAction Input: {json.dumps(call[1])}",
    "result_of_another_format": lambda call: f"[TOOL_RESULTS]{json.dumps({'name': call[0], 'arguments': call[1]})}",
}
"""How models write a call in no format and no dialect, or where it is not one."""


_SAYS_NOTHING = re.compile(r'<!--.*?-->|"(?:id|call_id|tool_call_id)": "[^"]*"', re.DOTALL)
"""Comments, and ids: one that no API takes is replaced."""


def _insert(text: str, place: int, added: str) -> str:
    """Insert at a place where something is written between two parts, and not in the middle of a word or a comment."""
    silent = [match.span() for match in _SAYS_NOTHING.finditer(text)]
    outside = (at for at in range(len(text)) if not any(start <= at < end - 1 for start, end in silent))
    places = [at for at in outside if not text[at].isalnum()] or [0]
    at = places[place % len(places)]
    return text[: at + 1] + added + text[at + 1 :]


def _check_kept(text: str, **options: Any) -> None:
    response = toolwire.parse(text, **options)
    kept = list(_kept(response))
    if options["format"] != "auto" and toolwire.get_format(options["format"]).pseudo:
        # What a pseudo call of a list says is in the text of the call behind it.
        kept += [call.raw for call in response.tool_calls]
    # In a list, the tag of an element says only that it is an item.
    is_item = any(VALUE in (value if isinstance(value, list) else ()) for value in _values(response))
    for word in (VALUE,) if is_item else (KEY, VALUE):
        assert any(word in part for part in kept), f"{word!r} is lost: {text!r} {response!r}"


@pytest.mark.parametrize("name", names())
def test_no_added_word_is_dropped(name: str) -> None:
    @given(texts.messages(name), st.integers(0, 2000), st.sampled_from(ADDED), st.booleans(), st.booleans())
    def check(text: str, place: int, added: str, repair: bool, known: bool) -> None:
        whole = _insert(text, place, added)
        _check_kept(whole, format=name, tools=texts.TOOLS if known else (), repair="safe" if repair else "none")

    check()


@pytest.mark.parametrize("writer", [*WRITERS, *OTHER_WRITERS])
@given(
    calls=CALLS,
    around=st.sampled_from(("{}", "```json\n{}\n```", "I look:\n{}\nDone.")),
    place=st.integers(0, 2000),
    added=st.sampled_from(ADDED),
    name=st.sampled_from(("auto", "hermes", "pythonic")),
    fallback=st.sampled_from(("whole_message", "embedded")),
)
def test_no_added_word_is_dropped_from_a_call_without_markers(
    writer: str, calls: list[Call], around: str, place: int, added: str, name: str, fallback: str
) -> None:
    write_one = OTHER_WRITERS.get(writer)
    written = "\n".join(map(write_one, calls)) if write_one else WRITERS[writer](calls, "\n")
    _check_kept(_insert(around.format(written), place, added), format=name, fallback=fallback, tools=TOOLS)
