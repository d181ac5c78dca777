"""The rules for building an answer from pieces, the same for every API."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire import (
    ArgumentsDelta,
    CallStart,
    ContentDelta,
    FinishReason,
    ParsedResponse,
    ReasoningPart,
    collect,
    get_api,
)
from toolwire.messages import call_id
from toolwire.providers.finish_reasons import read_reason
from toolwire.providers.response_builder import ResponseBuilder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read(
    pieces: list[str], reason: FinishReason | None = FinishReason.TOOL_CALLS, **facts: object
) -> tuple[ParsedResponse, str]:
    """One call whose arguments come in these pieces; and what its deltas join to."""
    builder = ResponseBuilder("test")
    builder.begin_call(0, facts.get("name", "f"), facts.get("id", "c1"), free=bool(facts.get("free")))
    for piece in pieces:
        builder.add_arguments(0, piece)
    builder.reason = reason
    builder.finish()
    events = builder.take()
    return collect(events), "".join(event.text for event in events if isinstance(event, ArgumentsDelta))


@pytest.mark.mission("E18")
@given(st.dictionaries(st.text(max_size=6), JSON, max_size=4), st.integers(1, 9), st.booleans())
def test_arguments_are_assembled_from_any_pieces(arguments: dict[str, object], size: int, ascii: bool) -> None:
    text = json.dumps(arguments, ensure_ascii=ascii)
    response, joined = read([text[at : at + size] for at in range(0, len(text), size)])
    assert [call.arguments for call in response.tool_calls] == [arguments]
    assert json.loads(joined) == arguments
    assert not response.problems
    assert response.tool_calls[0].raw == text


@pytest.mark.mission("D23")
@pytest.mark.need(11)
@pytest.mark.parametrize("text", ["", " ", "null", "\n", "{}", " {} "])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    response, joined = read([text])
    assert [call.arguments for call in response.tool_calls] == [{}]
    assert json.loads(joined) == {}


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("text", "arguments", "repairs"),
    [
        ("{'a': True}", {"a": True}, {"single_quotes", "python_literal"}),
        ('{"a": 1,}', {"a": 1}, {"trailing_comma"}),
        ('{"a": 1}}', {"a": 1}, {"extra_close"}),
        ('"{\\"a\\": 1}"', {"a": 1}, {"double_encoded"}),
        ('{"a": "x\ny"}', {"a": "x\ny"}, {"raw_control"}),
    ],
)
def test_arguments_are_repaired(text: str, arguments: dict[str, object], repairs: set[str], size: int) -> None:
    response, joined = read([text[at : at + size] for at in range(0, len(text), size)])
    (call,) = response.tool_calls
    assert call.arguments == arguments == json.loads(joined)
    assert set(call.repairs) == repairs


@pytest.mark.mission("D24", "D25", "E18")
@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": "x', "truncated"),
        ('{"a": 1', "truncated"),
        ('{"a": 1} {"b": 2}', "malformed"),
        ('{"a": 1, "a": 2}', "malformed"),
        ('{"a": NaN}', "malformed"),
        ("[1]", "malformed"),
        ("5", "malformed"),
        ("nothing at all", "malformed"),
    ],
)
def test_arguments_other_than_an_object_make_an_incomplete_call(text: str, kind: str, size: int) -> None:
    response, _ = read([text[at : at + size] for at in range(0, len(text), size)])
    assert not response.tool_calls
    assert [call.name for call in response.incomplete] == ["f"]
    assert [(problem.kind, problem.index, problem.raw) for problem in response.problems] == [(kind, 0, text)]


def test_truncated_call_shows_its_whole_arguments() -> None:
    for size in (1, 4, 100):
        text = '{"a": 1, "b": [2, {"c": 3}], "d": {"e": 4'
        response, _ = read([text[at : at + size] for at in range(0, len(text), size)])
        assert response.incomplete[0].arguments == {"a": 1, "b": [2, {"c": 3}]}


@pytest.mark.need(11)
def test_truncated_answer_makes_no_call_without_arguments() -> None:
    for reason in (FinishReason.LENGTH, FinishReason.ERROR, None):
        response, _ = read([], reason)
        assert not response.tool_calls
        assert response.problems[0].kind == "truncated"
    assert read(['{"a": 1}'], FinishReason.LENGTH)[0].tool_calls


def test_name_may_come_late_or_never() -> None:
    builder = ResponseBuilder("test")
    builder.begin_call("k")
    builder.add_arguments("k", '{"a":')
    assert builder.take() == []
    builder.name_call("k", "f", "id1")
    builder.name_call("k", "f", "id2")
    assert builder.take() == [CallStart(0, "f", "id1"), ArgumentsDelta(0, '{"a":')]
    builder.add_arguments("k", "1}")
    builder.begin_call("other")
    builder.add_arguments("other", "{}")
    builder.finish()
    response = collect(builder.take())
    assert [call.id for call in response.tool_calls] == ["id1"]
    assert [problem.kind for problem in response.problems] == ["missing_name"]


def test_missing_id_is_derived() -> None:
    assert read(["{}"], id=None)[0].tool_calls[0].id == call_id("", 0, "f")


def test_text_input_is_one_argument() -> None:
    response, joined = read(["4 ", "+ 4"], free=True)
    assert response.tool_calls[0].arguments == {"input": "4 + 4"} == json.loads(joined)


def utf16_units(text: str) -> list[str]:
    units = text.encode("utf-16-le")
    return [units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)]


@pytest.mark.parametrize("is_free", [False, True], ids=["json", "text"])
@pytest.mark.parametrize("text", ['{"x": "a😀b"}', '{"😀": 1, "y": "🎉🎉"}', '"{\\"x\\": \\"😀\\"}"'])
def test_pairs_that_are_split_in_arguments_are_joined(text: str, is_free: bool) -> None:
    expected, joined = read([text], free=is_free)
    assert (read(utf16_units(text), free=is_free)) == (expected, joined) and not expected.problems


@pytest.mark.parametrize(
    "pieces", [['{"x": "\ud83d', '"}'], ['{"x": 1}', "\ud83d"], ["\ud83d"], ['"\ud83d'], ["\ude00{}"]]
)
def test_half_a_character_alone_in_arguments_is_an_error(pieces: list[str]) -> None:
    response, _ = read(pieces)
    assert not response.tool_calls and len(response.problems) == 1


@pytest.mark.mission("E19")
def test_split_surrogate_pairs_are_joined() -> None:
    builder = ResponseBuilder("test")
    for piece in ("a\ud83d", "\ude00b", "\ude00", "c\ud83d"):
        builder.add_text(piece)
    builder.finish()
    assert collect(builder.take()).content == "a\U0001f600b\ufffdc\ufffd"


@pytest.mark.mission("F12")
@pytest.mark.need(25)
@pytest.mark.parametrize(
    ("told", "called", "reason"),
    [
        (None, True, "tool_calls"),
        (None, False, "stop"),
        (FinishReason.STOP, True, "tool_calls"),
        (FinishReason.TOOL_CALLS, False, "stop"),
        (FinishReason.LENGTH, True, "length"),
        (FinishReason.ERROR, False, "error"),
    ],
)
def test_finish_reason_depends_on_complete_calls(told: FinishReason | None, called: bool, reason: str) -> None:
    builder = ResponseBuilder("test")
    if called:
        builder.add_call("f", {"a": 1}, "c")
    builder.reason = told
    builder.finish()
    assert collect(builder.take()).finish_reason == reason


@pytest.mark.parametrize("word", ["content_filter", "insufficient_system_resource", "abort", "nobody knows this"])
def test_call_without_arguments_is_incomplete_after_an_unknown_finish_reason(word: str) -> None:
    builder = ResponseBuilder("openai_chat")
    builder.begin_call(0, "delete_all", "c")
    builder.reason = read_reason("openai_chat", word)
    builder.finish()
    response = collect(builder.take())
    assert not response.tool_calls
    assert [problem.kind for problem in response.problems] == ["truncated"]


def test_arguments_are_read_in_linear_time() -> None:
    """Cut or in single quotes they are read without the fast scanner; what is whole is kept without counting again."""
    keys = 20_000
    text = "{" + ", ".join(f"'k{number}': {number}" for number in range(keys)) + ", 'cut': "
    response, _ = read([text[at : at + 1000] for at in range(0, len(text), 1000)])
    assert len(response.incomplete[0].arguments) == keys


FUNCTION: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
CUT_ANSWERS: dict[str, dict[str, Any]] = {
    "openai_chat": {"choices": [{"finish_reason": "length", "message": {"tool_calls": [FUNCTION]}}]},
    "mistral": {"choices": [{"finish_reason": "length", "message": {"tool_calls": [FUNCTION]}}]},
    "anthropic_messages": {
        "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
        "stop_reason": "max_tokens",
    },
    "gemini": {"candidates": [{"finishReason": "MAX_TOKENS", "content": {"parts": [{"functionCall": {"name": "f"}}]}}]},
    "bedrock_converse": {
        "output": {"message": {"content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}]}},
        "stopReason": "max_tokens",
    },
    "ollama": {
        "message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
        "done": True,
        "done_reason": "length",
    },
    "cohere": {"finish_reason": "MAX_TOKENS", "message": {"tool_calls": [FUNCTION]}},
    "openai_responses": {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "function_call", "name": "f", "arguments": "", "call_id": "c", "status": "incomplete"}],
    },
}


@pytest.mark.parametrize("api", CUT_ANSWERS)
def test_call_at_the_end_of_a_cut_answer_is_incomplete(api: str) -> None:
    response = get_api(api).decode_response(CUT_ANSWERS[api])
    assert (response.tool_calls, response.finish_reason) == ((), "length")
    assert [call.name for call in response.incomplete] == ["f"]
    assert [problem.kind for problem in response.problems] == ["truncated"]


FAILED_ANSWERS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "choices": [{"finish_reason": "insufficient_system_resource", "message": {"tool_calls": [FUNCTION]}}]
    },
    "mistral": {"choices": [{"finish_reason": "error", "message": {"tool_calls": [FUNCTION]}}]},
    "gemini": {"candidates": [{"finishReason": "OTHER", "content": {"parts": [{"functionCall": {"name": "f"}}]}}]},
    "cohere": {"finish_reason": "TIMEOUT", "message": {"tool_calls": [FUNCTION]}},
    "openai_responses": {
        "status": "cancelled",
        "output": [{"type": "function_call", "name": "f", "arguments": "", "call_id": "c", "status": "completed"}],
    },
}


@pytest.mark.parametrize("api", FAILED_ANSWERS)
def test_call_without_arguments_at_the_end_of_a_failed_answer_is_incomplete(api: str) -> None:
    """As in a stream: the answer may have failed before the arguments."""
    response = get_api(api).decode_response(FAILED_ANSWERS[api])
    assert (response.tool_calls, response.finish_reason) == ((), "error")
    assert [call.name for call in response.incomplete] == ["f"]


def test_call_before_the_end_of_a_cut_answer_is_complete() -> None:
    body = {
        "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}, {"type": "text", "text": "And"}],
        "stop_reason": "max_tokens",
    }
    assert [call.name for call in get_api("anthropic_messages").decode_response(body).tool_calls] == ["f"]


def test_arguments_that_show_their_end_are_complete_in_a_cut_answer() -> None:
    call = {**FUNCTION, "function": {"name": "f", "arguments": '{"a": 1}'}}
    body = {"choices": [{"finish_reason": "length", "message": {"tool_calls": [call]}}]}
    assert get_api("openai_chat").decode_response(body).tool_calls[0].arguments == {"a": 1}


@pytest.mark.parametrize("last", ["\ud800", "\udbff"])
def test_the_first_half_of_a_surrogate_pair_waits_for_the_second(last: str) -> None:
    builder = ResponseBuilder("test")
    builder.add_text(f"a{last}")
    assert collect(builder.take()).content == "a"
    builder.add_text("\udc00")
    assert collect(builder.take()).content == (last + "\udc00").encode("utf-16", "surrogatepass").decode("utf-16")


@pytest.mark.parametrize("last", ["\udc00", "\udfff"])
def test_the_second_half_of_a_surrogate_pair_waits_for_nothing(last: str) -> None:
    builder = ResponseBuilder("test")
    builder.add_text(f"a{last}")
    assert collect(builder.take()).content == "a\ufffd"


def test_text_ends_a_stretch_of_reasoning() -> None:
    builder = ResponseBuilder("test")
    builder.add_reasoning("Hm.")
    assert builder.in_reasoning
    builder.add_text("A")
    assert not builder.in_reasoning
    builder.add_reasoning("Hm.")
    builder.end_reasoning(ReasoningPart("Hm."))
    assert not builder.in_reasoning


def test_an_answer_ends_once() -> None:
    builder = ResponseBuilder("test")
    builder.finish()
    assert [type(event).__name__ for event in builder.take()] == ["Finish"]
    builder.finish()
    assert builder.take() == []


def test_an_error_has_no_place_in_the_text() -> None:
    builder = ResponseBuilder("test")
    builder.add_text("A")
    builder.fail("it broke", error={"code": 503, "type": "overloaded_error"})
    assert builder.problem is not None
    assert (builder.problem.position, builder.problem.index) == (0, None)
    assert (builder.problem.status, builder.problem.code) == (503, "overloaded_error")


@pytest.mark.parametrize(("value", "text"), [(5, "5"), ("f", "f")])
def test_a_name_is_text(value: Any, text: str) -> None:
    builder = ResponseBuilder("test")
    builder.begin_call(0, "f", value)
    assert builder.id_of(0) == text


def test_half_a_character_ends_before_a_call_begins() -> None:
    builder = ResponseBuilder("test")
    builder.add_text("a\ud83d")
    builder.begin_call(0, "f", "c1")
    builder.add_arguments(0, "{}")
    builder.finish()
    content = [event.text for event in builder.take() if isinstance(event, ContentDelta)]
    assert "".join(content) == "a\ufffd"
