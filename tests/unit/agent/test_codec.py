"""Records of a run: whatever its values hold comes back exactly."""

import dataclasses
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire import (
    FinishReason,
    ImagePart,
    Message,
    OpaquePart,
    ParsedResponse,
    Problem,
    ReasoningPart,
    TextPart,
    Tier,
    ToolCall,
    ToolResult,
    Usage,
)
from toolwire.agent.codec import dumps, from_data, from_json, loads, to_data, to_json
from toolwire.agent.journal import RecordedAnswer, RecordedOutcome, RecordedStart
from toolwire.agent.run_events import RunEnded
from toolwire.agent.session_record import CALL_TIMES, MOMENTARY, SessionRecord
from toolwire.errors import JournalError
from toolwire.execution.outcomes import Issue, Outcome
from toolwire.messages import REPAIRS
from toolwire.policy.policy import REMEMBERED
from toolwire.policy.session import Session

# Any code point, lone surrogates and NUL included: models and tools write what they like.
texts = st.text(st.characters(), max_size=12)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(["is", "at", "call", "text"]) | texts, values, max_size=3)
opaque = st.builds(OpaquePart, objects, texts)
extras = st.none() | opaque
image_data = texts.filter(lambda data: ":" not in data)
"""Data of images: with a colon it would be an address, which an image refuses."""
images = st.one_of(
    st.builds(ImagePart, image_data, texts, st.sampled_from(["data:image/png;base64,AAAA", "a"]), extra=extras),
    st.builds(ImagePart, image_data.filter(bool), texts, extra=extras),
)
calls = st.builds(
    ToolCall,
    texts,
    objects,
    texts,
    texts,
    texts,
    texts,
    st.lists(st.sampled_from(REPAIRS), max_size=2).map(tuple),
    st.floats(0, 1),
    st.booleans(),
    extras,
    st.booleans(),
)
results = st.builds(
    ToolResult, texts, texts, values, st.none() | texts, st.lists(images, max_size=2).map(tuple), extra=extras
)
reasoning = st.builds(ReasoningPart, texts, texts, texts, st.none() | objects)
parts = st.lists(st.builds(TextPart, texts, extras) | reasoning | images | calls | results | opaque, max_size=4)
problems = st.builds(
    Problem, st.sampled_from(["malformed", "truncated"]), st.integers(0, 9), texts, texts, st.none() | st.integers(0, 9)
)
counts = st.integers(0, 10**9)
usages = st.builds(Usage, counts, counts, counts, counts)
messages = st.builds(Message, st.sampled_from(["system", "user", "assistant", "tool"]), parts.map(tuple))


@st.composite
def responses(draw: st.DrawFn) -> ParsedResponse:
    """A response whose parts are, here and there, its own calls."""
    made = draw(st.lists(calls, max_size=3))
    mixed = [*made, *draw(parts)]
    return ParsedResponse(
        draw(texts),
        draw(texts),
        tuple(made),
        tuple(draw(st.lists(calls, max_size=1))),
        tuple(draw(st.lists(problems, max_size=1))),
        draw(st.sampled_from(FinishReason)),
        parts=tuple(draw(st.permutations(mixed))),
        usage=draw(st.none() | usages),
    )


outcomes = st.builds(
    Outcome, calls, results, st.none() | st.builds(Issue, st.sampled_from(["denied", "unknown_tool"]), texts)
)
ends = st.builds(
    RunEnded,
    st.sampled_from(["answered", "error"]),
    texts,
    texts,
    st.lists(messages, max_size=2).map(tuple),
    counts,
    counts,
    usages,
    st.floats(0, 1e9),
    st.floats(0, 1e9),
)
recorded = (
    responses()
    | messages
    | usages
    | ends
    | st.builds(RecordedAnswer, responses(), texts)
    | st.builds(RecordedStart, calls, texts, st.booleans())
    | st.builds(RecordedOutcome, outcomes, st.floats(0, 1e9))
)


def whole(value: Any) -> Any:
    """All that a value is, fields that take no part in comparing included."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), [(one.name, whole(getattr(value, one.name))) for one in dataclasses.fields(value)]
    if isinstance(value, list | tuple):
        return type(value), [whole(one) for one in value]
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    return type(value), repr(value)


@given(recorded)
def test_recorded_value_is_read_back_exactly(value: Any) -> None:
    text = to_json(value)
    assert text.isascii()
    assert json.loads(text) == loads(text)
    assert whole(from_json(type(value), text)) == whole(value)


@given(responses())
def test_calls_among_the_parts_are_the_same_objects_after_reading(response: ParsedResponse) -> None:
    back = from_json(ParsedResponse, to_json(response))
    places = [[call is part for part in response.parts] for call in response.tool_calls]
    assert [[call is part for part in back.parts] for call in back.tool_calls] == places


def test_raw_data_of_the_provider_is_not_recorded() -> None:
    assert from_json(ParsedResponse, to_json(ParsedResponse("a", raw={"b": 1}))).raw is None


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object(), {"a": b"b"}])
def test_value_that_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(JournalError, match="cannot be recorded"):
        to_json(ToolResult("1", "a", value))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"call": 1}', '{"outcome": {"call": {"name": "a"}}}'])
def test_record_of_another_class_is_refused(text: str) -> None:
    with pytest.raises(JournalError, match=r"record"):
        from_json(RecordedOutcome, text)
    with pytest.raises(JournalError, match=r"record"):
        from_data(Message, {"role": "user", "parts": [{"is": "Popen", "args": ["true"]}]})


def test_record_contains_only_fields_that_differ_from_their_defaults() -> None:
    assert to_data(RecordedOutcome(Outcome(ToolCall("a"), ToolResult("1", "a", 3)), 0.5)) == {
        "outcome": {"call": {"name": "a"}, "result": {"call_id": "1", "tool_name": "a", "result": 3}},
        "seconds": 0.5,
    }


# -- sessions


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def filled(session: Session) -> None:
    """Give every field a value that is not its usual one."""
    for one in dataclasses.fields(session):
        value = getattr(session, one.name)
        match value:
            case bool():
                made: Any = True
            case Tier():
                made = Tier.WALK
            case dict() if one.name == CALL_TIMES:
                made = {"a": [7.0, 8.0], "b": [9.0]}
            case set():
                made = {"a", "b"}
            case Counter():
                made = Counter(a=2)
            case dict():
                made = {"a": 1.5}
            case tuple():
                made = ("Do it.",)
            case _:
                raise AssertionError(f"a session's {one.name} is of a kind that nothing here knows")
        assert made != value
        setattr(session, one.name, made)


def plain(session: Session, ago: float) -> dict[str, Any]:
    return {
        one.name: {name: [at - ago for at in times] for name, times in value.items()}
        if one.name == CALL_TIMES
        else value
        for one in dataclasses.fields(session)
        if one.name not in MOMENTARY
        for value in [getattr(session, one.name)]
    }


def test_every_field_of_a_session_is_restored_on_another_clock() -> None:
    session, later = Session(), Session()
    record = SessionRecord(session, Clock(10.0), Clock(5000.0))
    empty = record.changes()
    assert record.changes() == {}
    filled(session)
    session.delegated = False  # such a one records no times of calls
    changes = loads(dumps(record.changes()))
    assert set(changes) == {one.name for one in dataclasses.fields(session)} - MOMENTARY - {"delegated"}
    SessionRecord(later, Clock(1010.0), Clock(5100.0)).restore([empty, changes])
    assert plain(later, 900.0) == plain(session, 0.0), "a hundred seconds later"
    assert [type(getattr(later, one.name)) for one in dataclasses.fields(later)] == [
        type(getattr(session, one.name)) for one in dataclasses.fields(session)
    ]


def test_record_of_a_session_contains_only_changes() -> None:
    session, clock = Session(), Clock(1.0)
    record = SessionRecord(session, clock)
    record.changes()
    session.record_call("a", 1.0)
    session.record_call("b", 1.0)
    assert record.changes()["_call_times"].keys() == {"a", "b"}
    session.record_call("b", 1.0)
    session.untrusted = True
    changes = record.changes()
    assert [(name, len(times)) for name, times in changes["_call_times"].items()] == [("b", 1)]
    assert changes["untrusted"] is True
    again = Session()
    restored = SessionRecord(again, clock)
    restored.restore([changes])
    assert restored.changes() == {}


def test_calls_that_a_session_dropped_are_not_recorded_again() -> None:
    session, clock = Session(), Clock(1.0)
    record = SessionRecord(session, clock)
    for at in range(2 * REMEMBERED - 1):
        session.record_call("a", float(at))
    assert len(record.changes()[CALL_TIMES]["a"]) == 2 * REMEMBERED - 1
    session.record_call("a", 7.0)
    assert len(session._call_times["a"]) == REMEMBERED
    assert len(record.changes()[CALL_TIMES]["a"]) == 1


@pytest.mark.parametrize("changes", [{"elsewhere": 1}, {"_call_times": [["a"]]}, {"tier": 9}, {"_approved": 3}])
def test_malformed_record_of_a_session_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(JournalError, match="session"):
        SessionRecord(Session(), Clock(0.0)).restore([changes])
