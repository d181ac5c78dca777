"""Complaints of people who use tool calling elsewhere, each tried here."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import toolwire
from toolwire import FinishReason, ParsedResponse, Problem, ToolCall
from toolwire.agent import Agent
from toolwire.agent.run_events import RunEnded
from toolwire.events import ArgumentsDelta, CallEnd
from toolwire.testing import ScriptedBackend
from toolwire.wire.formats import FORMATS

LOOK = {
    "name": "look",
    "description": "Looks something up.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
        "required": ["path"],
    },
}
CALL = ToolCall("look", {"path": "a.txt", "lines": 3})
WITH_MARKERS = [wire.name for wire in FORMATS if wire.blocks and wire.markers]


@pytest.mark.need(1)
@pytest.mark.parametrize("name", [wire.name for wire in FORMATS if wire.blocks and wire.markers and wire.detected])
def test_a_call_is_found_without_saying_which_format_it_is_in(name: str) -> None:
    text = toolwire.render_calls([CALL], format=name, tools=[LOOK])
    (call,) = toolwire.parse(text, tools=[LOOK]).tool_calls
    assert (call.name, call.arguments) == (CALL.name, CALL.arguments)


@pytest.mark.need(2)
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", '<tools>{"name": "look", "arguments": {"path": "a.txt"}}</tools>'),
        ("hermes", '<tool_call>{"name": "look", "arguments": {"path": "a.txt"}}'),
        ("qwen3_coder", "<function=look>\n<parameter=path>\na.txt\n</parameter>\n</function>"),
        ("qwen3_coder", "<function=look>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>"),
        ("auto", '<tool_calls>{"name": "look", "arguments": {"path": "a.txt"}}</tool_calls>'),
    ],
)
def test_wrappers_that_are_missing_or_called_otherwise(format: str, text: str) -> None:
    response = toolwire.parse(text, format=format, tools=[LOOK])
    assert [(call.name, call.arguments) for call in response.tool_calls] == [("look", {"path": "a.txt"})]
    assert response.content == ""


@pytest.mark.need(2)
@pytest.mark.parametrize("end", ["</tool_call>", "\n</tool_call>\n", "</tools>"])
@pytest.mark.parametrize("size", [1, 1000])
def test_a_closing_tag_alone_behind_a_bare_call(end: str, size: int) -> None:
    text = '{"name": "look", "arguments": {"path": "a.txt"}}' + end
    parser = toolwire.StreamParser(format="hermes", tools=[LOOK], fallback="whole_message")
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    response = toolwire.collect([*events, *parser.finish()])
    assert [(call.arguments, call.repairs) for call in response.tool_calls] == [({"path": "a.txt"}, ("fallback",))]
    assert (response.content, response.problems) == ("", ())
    other = text.replace("look", "nobody")
    assert toolwire.parse(other, format="hermes", tools=[LOOK], fallback="whole_message").content == other
    other = text.partition("}}")[0] + end
    assert toolwire.parse(other, format="hermes", tools=[LOOK], fallback="whole_message").tool_calls == ()


@pytest.mark.need(3, 16)
@pytest.mark.parametrize("name", WITH_MARKERS)
@pytest.mark.parametrize("size", [1, 4])
def test_no_marker_of_a_call_is_shown_as_text(name: str, size: int) -> None:
    text = toolwire.render_calls([CALL], format=name, tools=[LOOK]) + "<|im_end|>"
    parser = toolwire.StreamParser(format=name, tools=[LOOK])
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    response = toolwire.collect([*events, *parser.finish()])
    assert (response.content.strip(), len(response.tool_calls)) == ("", 1)


@pytest.mark.need(4)
@pytest.mark.parametrize(
    ("text", "arguments", "repair"),
    [
        ("{'path': 'a.txt'}", {"path": "a.txt"}, "single_quotes"),
        ('{"path": "a\nb"}', {"path": "a\nb"}, "raw_control"),
        ('{"path": "say "hi" now"}', {"path": 'say "hi" now'}, "inner_quote"),
        (r'{"path": "C:\dir"}', {"path": r"C:\dir"}, "invalid_escape"),
        ('{"path": "a.txt",}', {"path": "a.txt"}, "trailing_comma"),
        ('{"path": "a.txt"}}', {"path": "a.txt"}, "extra_close"),
        ('{"path": "a.t', None, ""),
        ('{"path": "a", "path": "b"}', None, ""),
    ],
)
def test_json_is_repaired_where_one_reading_is_left_and_never_made_empty(
    text: str, arguments: dict[str, Any] | None, repair: str
) -> None:
    read = toolwire.read_arguments(text, LOOK)
    assert read.value == arguments
    assert (repair in read.repairs) if repair else read.problem is not None


BETWEEN_TOKENS = {
    "beam",
    "functiongemma",
    "gemma4",
    "glimmer",
    "k2_horizon",
    "kimi_k3",
    "minimax_m3",
    "step3",
    "telechat4",
}
"""Values stand between tokens as they are: text that holds these very tokens in their order cannot be written."""


@pytest.mark.need(6)
@pytest.mark.parametrize("name", WITH_MARKERS)
def test_a_value_may_speak_of_the_tags_it_stands_in(name: str) -> None:
    """What a format can write comes back; where it has no way to write a value, that is said."""
    written = toolwire.render_calls([CALL], format=name, tools=[LOOK])
    for piece in {written.split("\n")[-1], written.split("\n")[0], "</parameter>", "</tool_call>"}:
        call = ToolCall("look", {"path": f"before {piece} after"})
        try:
            text = toolwire.render_calls([call], format=name, tools=[LOOK])
        except toolwire.RenderError:
            assert name in BETWEEN_TOKENS
            continue
        assert [one.arguments for one in toolwire.parse(text, format=name, tools=[LOOK]).tool_calls] == [call.arguments]


@pytest.mark.need(11)
def test_no_text_is_no_arguments_only_where_none_are_needed() -> None:
    free = {"name": "now", "parameters": {"type": "object", "properties": {}}}
    assert toolwire.read_arguments("", free).value == {}
    read = toolwire.read_arguments("", LOOK)
    assert read.value is None
    assert "path" in (read.problem.message if read.problem else "")


@pytest.mark.need(13)
def test_arguments_come_while_they_are_written() -> None:
    text = toolwire.render_calls([ToolCall("look", {"path": "x" * 1000})], format="hermes", tools=[LOOK])
    parser = toolwire.StreamParser(format="hermes", tools=[LOOK])
    half = [event for at in range(len(text) // 2) for event in parser.feed(text[at])]
    shown = "".join(event.text for event in half if isinstance(event, ArgumentsDelta))
    assert len(shown) > 400
    assert not any(isinstance(event, CallEnd) for event in half)


@pytest.mark.need(19)
@pytest.mark.parametrize("api", ["openai_chat", "anthropic_messages", "gemini", "ollama"])
@pytest.mark.parametrize("stored", ['{"path": "a.t', "not json", "", '{"path": "a"}'])
def test_one_bad_call_in_a_history_does_not_spoil_the_next_request(api: str, stored: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": stored}}
    request = toolwire.get_api("openai_chat").decode_request(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "Look."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "found"},
            ],
        }
    )
    body = toolwire.get_api(api).encode_request(request, tools=[LOOK], model="m")
    for made in json.loads(json.dumps(body)).get("messages", []):
        for one in made.get("tool_calls", []):
            arguments = one["function"]["arguments"]
            assert isinstance(json.loads(arguments) if isinstance(arguments, str) else arguments, dict)
    assert "found" in json.dumps(body)


@pytest.mark.need(24, 34)
def test_a_call_that_the_provider_refused_is_asked_for_again() -> None:
    gemini = toolwire.get_api("gemini")
    refused = gemini.decode_response(
        {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "look(path="}]}
    )
    assert [problem.kind for problem in refused.problems] == ["malformed"]
    backend = ScriptedBackend([refused, ParsedResponse("It is there.")])

    async def run() -> list[Any]:
        return [event async for event in Agent(backend, [toolwire.tool(lambda path: path, name="look")]).run("Look.")]

    events = asyncio.run(run())
    assert len(backend.requests) == 2
    assert isinstance(events[-1], RunEnded)
    assert events[-1].answer == "It is there."


@pytest.mark.need(25)
@pytest.mark.parametrize("api", toolwire.apis())
@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH], ids=lambda reason: reason.value)
def test_why_an_answer_ended_survives_every_api(api: str, reason: FinishReason) -> None:
    known = toolwire.get_api(api)
    assert (
        known.decode_response(known.encode_response(ParsedResponse("half", finish_reason=reason))).finish_reason
        is reason
    )


@pytest.mark.need(38)
def test_what_could_not_be_read_is_kept_with_its_place() -> None:
    text = 'First. <tool_call>{"name": "look", "arguments": {"path": "a", "path": "b"}}</tool_call>'
    response = toolwire.parse(text, format="hermes", tools=[LOOK])
    (problem,) = response.problems
    assert isinstance(problem, Problem)
    assert text[problem.position :].startswith(problem.raw)
    assert problem.raw.startswith("<tool_call>")
