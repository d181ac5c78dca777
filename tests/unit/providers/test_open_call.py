"""Calls whose arguments are still being read: what can be streamed, and what is left of arguments that break off."""

import pytest

from toolwire.providers.open_call import OpenCall


def fed(*pieces: str) -> tuple[OpenCall, list[str]]:
    """Return a call with these pieces of its arguments, and what each of them lets be streamed."""
    call = OpenCall(0, "f", "c1")
    return call, [call.add(piece) for piece in pieces]


def test_arguments_are_streamed_from_their_first_bracket_on() -> None:
    call, streamed = fed("", " \n", '{"a": ', "1", "}")
    assert streamed[:2] == ["", ""]
    assert "".join(streamed) + call.close() == '{"a": 1}'
    assert (call.whole, call.over, call.raw, call.shows_end) == (True, True, ' \n{"a": 1}', True)


def test_text_behind_the_arguments_is_not_streamed() -> None:
    call, streamed = fed('{"a": 1} ', "and more", "!")
    assert "".join(streamed) == '{"a": 1}'
    assert "".join(call.trailing).strip() == "and more!"
    assert call.whole_values == {"a": 1}


@pytest.mark.parametrize("text", ["[1]", "null", "a word", ""])
def test_what_is_not_an_object_is_not_streamed(text: str) -> None:
    call, streamed = fed(text)
    assert (streamed, call.close(), call.whole, call.whole_values) == ([""], "", False, {})


def test_text_that_is_no_json_stays_whole() -> None:
    call = OpenCall(0, "f", "c1")
    assert not call.free
    call.free = True
    assert (call.add("{ a patch }"), call.close()) == ("", "")
    assert (call.scanner, call.raw, call.shows_end, call.whole_values) == (None, "{ a patch }", False, {})


def test_whole_values_of_truncated_arguments_are_left() -> None:
    call, _ = fed('{"a": [1, 2], "b": "thr')
    call.close()
    assert (call.whole, call.whole_values) == (False, {"a": [1, 2]})


def test_an_object_of_the_provider_is_whole() -> None:
    call, _ = fed('{"a": 1')
    call.object = {"a": 12}
    assert (call.whole, call.whole_values, call.shows_end) == (True, {"a": 12}, False)
