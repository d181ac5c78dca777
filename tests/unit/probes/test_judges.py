"""Judges of probes: answers that show nothing about the server are not blamed on it."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from toolwire.messages import FinishReason, ParsedResponse, ToolCall, ToolResult, Usage
from toolwire.probes.all_probes import PROBES
from toolwire.probes.judging import calls_in, check_finish_word
from toolwire.probes.probe import FaultSuspected, Probe, ProbeFailed, RuleNotShown
from toolwire.probes.probe_exchange import Piece, ProbeExchange, ProbeRequest
from toolwire.probes.probe_requests import (
    CALL,
    CALL_STREAM,
    CODE,
    COUNTED_LONG_WORDS,
    COUNTED_LONGEST_RESULT,
    COUNTED_RESULT,
    CUT_BY_OTHER_NAME,
    PARIS,
    PLAIN,
    REQUIRED,
    RESULT,
    RESULT_CONTROL,
)
from toolwire.providers.api_registry import get_api


def probe(id: str) -> Probe:
    (named,) = [probe for probe in PROBES if probe.id == id]
    return named


def stream_of(*events: str, numbers: Iterable[int] = range(9)) -> ProbeExchange:
    """Return a stream of Responses with these types of events, and one item of the output at most."""
    objects = [
        {"type": event, "sequence_number": number, "output_index": 0}
        for event, number in zip(events, numbers, strict=False)
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in objects)
    return ProbeExchange(CALL_STREAM, get_api("openai_responses"), pieces=(Piece(0.1, body.encode()),))


CUT = ("response.created", "response.output_item.added", "response.incomplete")


def test_stream_that_was_cut_shows_nothing_about_its_end() -> None:
    judge = probe("items").judge
    judge([stream_of("response.created", "response.completed")])
    with pytest.raises(ProbeFailed, match="ends with"):
        judge([stream_of("response.created", "response.output_text.done")])
    with pytest.raises(ProbeFailed, match="does not end"):
        judge([stream_of("response.created", "response.output_item.added", "response.completed")])
    with pytest.raises(RuleNotShown, match="was cut off"):
        judge([stream_of(*CUT)])


def test_streams_beside_one_that_was_cut_and_its_own_beginning_are_judged() -> None:
    judge = probe("items").judge
    with pytest.raises(ProbeFailed, match="ends with"):
        judge([stream_of(*CUT), stream_of("response.created")])
    with pytest.raises(ProbeFailed, match="do not rise"):
        judge([stream_of(*CUT, numbers=(1, 1, 2))])
    with pytest.raises(ProbeFailed, match="begins with"):
        judge([stream_of(*CUT[1:])])


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_short_answer_shows_nothing_about_the_other_name_of_the_maximum(name: str) -> None:
    def answered(text: str, reason: FinishReason) -> list[ProbeExchange]:
        response = ParsedResponse(text, finish_reason=reason)
        sent = json.dumps({name: 16}).encode()
        return [ProbeExchange(CUT_BY_OTHER_NAME, get_api("openai_chat"), sent=sent, status=200, response=response)]

    judge = probe("both-maximums").judge
    judge(answered("one two", FinishReason.LENGTH))
    with pytest.raises(RuleNotShown, match="stopped before the maximum length"):
        judge(answered("one two", FinishReason.STOP))
    with pytest.raises(ProbeFailed, match=f"^{name} is ignored: the answer has 9000 characters"):
        judge(answered(9000 * "a", FinishReason.STOP))


@pytest.mark.parametrize("text", ["Here is a table of stone and paper:", "I like music, a horse, a river, an apple."])
def test_common_words_of_a_model_are_not_those_of_another_stream(text: str) -> None:
    streams = probe("streams-at-once")
    exchanges = [
        ProbeExchange(request, get_api("openai_chat"), response=ParsedResponse(text))
        for request in streams.requests
        if isinstance(request, ProbeRequest)
    ]
    assert len(exchanges) == 4
    with pytest.raises(RuleNotShown, match="did not repeat the words"):
        streams.judge(exchanges)


def test_text_that_looks_like_a_call_is_none_without_tools() -> None:
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}</tool_call>'
    answers = [ProbeExchange(request, get_api("openai_chat")) for request in (PLAIN, CALL)]
    assert [[call.name for call in calls_in(text, answer)] for answer in answers] == [[], ["get_weather"]]


def test_answer_with_a_call_has_no_hidden_call() -> None:
    text = 'Or <tool_call>{"name": "get_weather", "arguments": {"city": "Rome", "days": 5}}</tool_call>'
    response = ParsedResponse(text, tool_calls=(ToolCall("get_weather", PARIS),))
    judge = probe("required-choice").judge
    judge([ProbeExchange(REQUIRED, get_api("openai_chat"), response=response)])
    with pytest.raises(ProbeFailed, match="the call is in the text"):
        judge([ProbeExchange(REQUIRED, get_api("openai_chat"), response=ParsedResponse(text))])


def test_answer_that_was_cut_shows_nothing_about_a_result() -> None:
    def answered(request: ProbeRequest, text: str, reason: FinishReason = FinishReason.STOP) -> ProbeExchange:
        return ProbeExchange(request, get_api("openai_chat"), response=ParsedResponse(text, finish_reason=reason))

    judge = probe("result-returned").judge
    control = answered(RESULT_CONTROL, CODE)
    judge([answered(RESULT, f"It is {CODE}.")])
    with pytest.raises(RuleNotShown, match="did not answer the question"):
        judge([answered(RESULT, "The result contains", FinishReason.LENGTH), control])
    with pytest.raises(FaultSuspected, match="does not know the code"):
        judge([answered(RESULT, "There is no result."), control])


def exchanges_of(*input_tokens: int) -> list[ProbeExchange]:
    """Return an exchange of the probe of long results for each number of tokens."""
    requests = (COUNTED_RESULT, COUNTED_LONG_WORDS, COUNTED_LONGEST_RESULT)
    return [
        ProbeExchange(request, get_api("openai_chat"), response=ParsedResponse("blue", usage=Usage(tokens, 1)))
        for request, tokens in zip(requests, input_tokens, strict=True)
    ]


def test_tokens_of_a_long_result_are_as_many_as_its_length_says() -> None:
    (result,) = [part for part in COUNTED_LONGEST_RESULT.chat.messages[-2].parts if isinstance(part, ToolResult)]
    assert 10_000 <= len(result.text) < 10_100
    judge = probe("long-result").judge
    judge(exchanges_of(100, 180, 702))  # nine tenths of 780
    with pytest.raises(ProbeFailed, match="has 701 input tokens, not about 780"):
        judge(exchanges_of(100, 180, 701))
    judge(exchanges_of(100, 136, 406))
    with pytest.raises(RuleNotShown, match="shorter results do not reach the model"):
        judge(exchanges_of(100, 135, 135))
    with pytest.raises(RuleNotShown, match="no tokens are reported"):
        judge(exchanges_of(100, 0, 780))


@pytest.mark.parametrize(("reasoning", "reasoning_tokens"), [("", 250), ("A summary.", 0)])
def test_counted_reasoning_may_be_longer_than_what_is_shown_of_it(reasoning: str, reasoning_tokens: int) -> None:
    def answered(text: str, reasoning: str, usage: Usage) -> list[ProbeExchange]:
        response = ParsedResponse(text, reasoning=reasoning, usage=usage)
        return [ProbeExchange(PLAIN, get_api("openai_chat"), response=response)]

    judge, text = probe("usage-output").judge, 100 * "a"
    judge(answered(text, "", Usage(10, 150)))
    with pytest.raises(ProbeFailed, match="but 400 tokens are reported"):
        judge(answered(text, "", Usage(10, 400)))
    judge(answered(text, reasoning, Usage(10, 400, reasoning_tokens=reasoning_tokens)))
    with pytest.raises(ProbeFailed, match="but 1 tokens are reported"):
        judge(answered(text, reasoning, Usage(10, 1, reasoning_tokens=reasoning_tokens)))


@pytest.mark.parametrize(
    ("api", "reasons", "wrong"),
    [
        ("openai_chat", ["stop"], ""),
        ("openai_chat", ["", "", "stop"], ""),
        ("openai_chat", ["", "eos_token"], "eos_token"),
        ("mistral", ["model_length"], ""),
    ],
    ids=["this API's", "empty before the end", "an engine's", "another API's"],
)
def test_finish_reasons_are_those_of_the_api(api: str, reasons: list[str], wrong: str) -> None:
    chunks = [{"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]} for reason in reasons]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    stream = ProbeExchange(CALL_STREAM, get_api(api), pieces=(Piece(0.1, body.encode()),))
    if not wrong:
        check_finish_word(stream)
        return
    with pytest.raises(ProbeFailed, match=f"is '{wrong}', which is none of this API"):
        check_finish_word(stream)


@pytest.mark.parametrize("content", [None, "", "I look it up.", "None", "null"])
def test_words_for_null_are_no_content_beside_a_call(content: str | None) -> None:
    function = {"name": "get_weather", "arguments": json.dumps(PARIS)}
    message = {"content": content, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
    response = ParsedResponse(content or "", tool_calls=(ToolCall("get_weather", PARIS),))
    exchanges = [ProbeExchange(CALL, get_api("openai_chat"), pieces=(Piece(0.1, body),), response=response)]
    judge = probe("content-beside-call").judge
    if content not in ("None", "null"):
        judge(exchanges)
        return
    with pytest.raises(ProbeFailed, match=f"is the text '{content}'"):
        judge(exchanges)
