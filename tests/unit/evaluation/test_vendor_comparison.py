"""The comparison of two endpoints: the measures, the requests, and answers that count for none of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from toolwire import FinishReason, ParsedResponse, ToolCall, parse
from toolwire.errors import ConfigurationError, ProviderError
from toolwire.evaluation.compared_requests import ComparedRequest, own_requests, read_requests
from toolwire.evaluation.vendor_comparison import VendorComparison, compare_vendors, judged
from toolwire.providers.request import ChatRequest
from toolwire.schema.validation import check_schema

TOOL = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
FUNCTION = {"type": "function", "function": {"name": "wait", "parameters": TOOL}}
CHAT = ChatRequest.of("hi", {"tools": [{"name": "wait", "parameters": TOOL}]})


def calling(*arguments: dict[str, Any], name: str = "wait", finish: FinishReason = FinishReason.TOOL_CALLS) -> Any:
    return ParsedResponse(tool_calls=tuple(ToolCall(name, given) for given in arguments), finish_reason=finish)


WORDS = ParsedResponse("No.")


def compared(pairs: list[tuple[Any, Any]], **options: Any) -> VendorComparison:
    """Return the comparison in which the endpoints give these answers; a text is an error."""
    requests = [ComparedRequest(str(number), CHAT) for number in range(len(pairs))]

    def answers_of(side: int) -> Any:
        given = iter([pair[side] for pair in pairs])

        async def ask(_: ChatRequest) -> ParsedResponse:
            answer = next(given)
            if isinstance(answer, str):
                raise ProviderError(answer)
            return answer

        return ask

    return asyncio.run(compare_vendors(answers_of(0), answers_of(1), requests, **options))


def test_the_measures_are_those_of_the_verifier() -> None:
    good, bad = calling({"days": 1}), calling({"days": "one"})
    pairs = [(good, good)] * 5 + [(good, bad)] * 3 + [(good, WORDS)] * 2 + [(WORDS, good)] * 2 + [(WORDS, WORDS)] * 4
    seen: list[str] = []
    result = compared(pairs, each=lambda answers: seen.append(answers.request))
    similarity = result.similarity
    assert (similarity.both, similarity.only_reference, similarity.only_compared, similarity.neither) == (8, 2, 2, 4)
    assert similarity.precision == similarity.recall == similarity.f1 == 0.8
    assert 0 < similarity.low < 0.8 < similarity.high < 1
    assert (result.reference_accuracy.count, result.reference_accuracy.total) == (10, 10)
    assert (result.compared_accuracy.count, result.compared_accuracy.total) == (7, 10)
    assert [answers.request for answers in result.answers] == sorted(seen, key=int)


def test_errors_count_for_no_measure() -> None:
    good = calling({"days": 1})
    result = compared([(good, "HTTP 500"), ("HTTP 503", good), (good, good)])
    similarity = result.similarity
    assert (similarity.both, similarity.only_reference, similarity.only_compared, similarity.neither) == (1, 0, 0, 0)
    assert result.answers[0].compared.error == "HTTP 500"
    assert result.answers[0].compared.is_called is None
    assert (result.reference_accuracy.total, result.compared_accuracy.total) == (2, 2)


def test_no_call_is_no_measure() -> None:
    result = compared([(WORDS, WORDS)])
    assert result.similarity.f1 is result.similarity.precision is result.similarity.recall is None
    assert (result.similarity.low, result.similarity.high) == (0, 1)
    assert result.compared_accuracy.value is None


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (calling({}), "wait: "),
        (calling({"days": 1}, {"days": 1.5}), "wait: "),
        (calling({"days": 1}, name="sleep"), "sleep: no such tool was offered"),
        (ParsedResponse("x", finish_reason=FinishReason.TOOL_CALLS), "ends with calls, and has none"),
        (ParsedResponse(incomplete=(ToolCall("wait"),), finish_reason=FinishReason.TOOL_CALLS), "not complete"),
        (parse('<tool_call>{"name": "wait", "argu', tools=CHAT.tools, format="hermes"), ""),
    ],
)
def test_what_is_wrong_with_calls(answer: ParsedResponse, fault: str) -> None:
    verdict = judged(answer, CHAT)
    assert verdict.is_called is (answer.finish_reason is FinishReason.TOOL_CALLS)
    assert bool(verdict.faults) is verdict.is_called
    assert all(fault in text for text in verdict.faults)


def test_calls_without_the_finish_reason_of_calls_are_not_seen_by_programs() -> None:
    assert judged(calling({"days": 1}, finish=FinishReason.STOP), CHAT).is_called is False


@pytest.mark.parametrize(
    ("arguments", "reason", "faults"),
    [
        ('{"days": 1}', "tool_calls", 0),
        ('{"days": 1', "tool_calls", 1),
        ("one day", "tool_calls", 1),
        (None, "tool_calls", 1),
        ('{"days": 1}', "stop", None),
        ('{"days": 1', "stop", None),
        ('{"days": 1', "length", None),
    ],
)
def test_the_finish_reason_that_counts_is_the_word_of_the_server(
    arguments: str | None, reason: str, faults: int | None
) -> None:
    call = {"id": "call_a1", "type": "function", "function": {"name": "wait", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call] if arguments is not None else []}
    body = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    verdict = judged(parse(body), CHAT)
    assert (verdict.is_called, len(verdict.faults)) == (faults is not None, faults or 0)


def test_own_requests_are_many_and_valid() -> None:
    requests = own_requests()
    assert len({request.id for request in requests}) == len(requests) == 36
    assert len({str(request.chat.messages) for request in requests}) == 36
    for request in requests:
        for tool in request.chat.tools:
            check_schema(tool.parameters, tool.name)


def test_a_file_of_bodies(tmp_path: Path) -> None:
    body = {"model": "kimi", "stream": True, "messages": [{"role": "user", "content": "hi"}], "tools": [FUNCTION]}
    lines = [json.dumps(body), "", "no JSON", json.dumps({**body, "tools": []}), "[" * 100_000, json.dumps(body)]
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    requests, broken = read_requests(tmp_path / "r.jsonl")
    assert [request.id for request in requests] == ["line 1", "line 6"]
    assert [row.place for row in broken] == [f"{tmp_path / 'r.jsonl'}, line {number}" for number in (3, 4, 5)]
    assert "offers no tools" in broken[1].reason
    assert (requests[0].chat.model, requests[0].chat.stream) == ("", False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"messages": []}, "the request has no messages"),
        ({"messages": [{"role": 5, "content": "hi"}]}, "the role of a message must be text, not int"),
        ({"tools": [FUNCTION, FUNCTION]}, "two tools have the name 'wait'"),
        ({"tool_choice": {"type": "function", "function": {"name": "wiat"}}}, "no tool 'wiat'; there are wait"),
        ({"temperature": float("nan")}, "NaN is not a number"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "half of a surrogate pair"),
    ],
)
def test_a_body_that_no_server_would_answer_is_named(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [FUNCTION]}
    (tmp_path / "r.jsonl").write_text(json.dumps(body) + "\n" + json.dumps({**body, **changes}))
    requests, (broken,) = read_requests(tmp_path / "r.jsonl")
    assert [request.id for request in requests] == ["line 1"]
    assert reason in broken.reason


@pytest.mark.parametrize("content", [None, "", "no JSON\n"])
def test_a_file_without_requests(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "r.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"r\.jsonl"):
        read_requests(path)
