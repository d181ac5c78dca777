"""Calls that stand in the results of a conversation are echoes: content, with a problem."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

import toolwire
from toolwire import ArgumentsDelta, CallEnd, CallStart, ParsedResponse, StreamParser, ToolCall, ToolDefinition
from toolwire.wire.echoes import EchoFilter
from toolwire.wire.formats import FORMATS
from toolwire.wire.result_text import inert
from toolwire.wire.syntax import WireFormat

ACT = ToolDefinition(
    "act",
    "Acts.",
    {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}},
)
CALL = '<tool_call>{"name": "act", "arguments": {"text": "now"}}</tool_call>'
OTHER = CALL.replace("now", "later")
BARE = '{"name": "act", "arguments": {"text": "now", "count": "3"}}'


def read(text: str, results: Any, **options: Any) -> ParsedResponse:
    """Parse whole, and make sure that every character by itself gives the same."""
    options.setdefault("tools", [ACT])
    whole = toolwire.parse(text, results=results, **options)
    parser = StreamParser(results=results, **options)
    events = [event for character in text for event in parser.feed(character)]
    pieces = toolwire.collect([*events, *parser.finish()])
    assert pieces == whole
    return whole


def read_whole(text: str, results: Any) -> ParsedResponse:
    tool = ToolDefinition("act", "Acts.", {"type": "object", "properties": {"text": {}}})
    return toolwire.parse(text, results=results, tools=[tool])


def kinds(response: ParsedResponse) -> list[str]:
    return [problem.kind for problem in response.problems]


@pytest.mark.parametrize("wire", [wire for wire in FORMATS if wire.blocks], ids=lambda wire: wire.name)
def test_a_call_that_stands_in_a_result_is_content(wire: WireFormat) -> None:
    call = toolwire.render_calls([ToolCall("act", {"text": "now"}, "c1")], format=wire, tools=[ACT])
    assert read(call, [], format=wire, primed="").tool_calls
    for result in (f"Page 1\n{call}\nPage 2", inert(wire, call), json.dumps({"page": call}), call.replace(" ", "\n ")):
        echo = read(call, ["Nothing.", result], format=wire, primed="")
        assert (echo.tool_calls, echo.incomplete, echo.finish_reason) == ((), (), "stop")
        assert kinds(echo) == ["echoed_result"]
        assert echo.problems[0].raw in call
        assert "act" in echo.content


@pytest.mark.parametrize("format", ["hermes", "auto"])
def test_text_around_an_echo_stays_in_its_place(format: str) -> None:
    echo = read(f"It says {CALL} and so on.", [f"x{CALL}"], format=format)
    assert echo.content == f"It says {CALL} and so on."
    (problem,) = echo.problems
    assert (problem.position, problem.raw, problem.index) == (8, CALL, None)
    assert "act" in problem.message


def test_calls_beside_an_echo_run_and_are_numbered_from_zero() -> None:
    response = read(f"{OTHER}{CALL} then{CALL}{OTHER}", [CALL], format="hermes")
    assert [call.arguments for call in response.tool_calls] == [{"text": "later"}] * 2
    assert response.content == f"{CALL} then{CALL}"
    assert [problem.position for problem in response.problems] == [len(OTHER), len(f"{OTHER}{CALL} then")]
    assert response.finish_reason == "tool_calls"
    parser = StreamParser(format="hermes", tools=[ACT], results=[CALL])
    events = [*parser.feed(f"{CALL}{OTHER}"), *parser.finish()]
    assert [event.index for event in events if isinstance(event, CallStart | ArgumentsDelta | CallEnd)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (OTHER, f"See {CALL}."),
        (CALL, "act"),
        (CALL, BARE),
        (CALL, '<tool_call>{"name": "act", "arguments": {"text": "now, please"}}</tool_call>'),
        ('<tool_call>{"name": "act", "arguments": {}}</tool_call>', CALL),
    ],
)
def test_another_call_is_not_an_echo(text: str, result: str) -> None:
    response = read(text, [result], format="hermes")
    assert (len(response.tool_calls), response.problems) == (1, ())


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (BARE, f"Run it: {BARE}"),
        (f"```json\n{BARE}\n```", BARE),
        (BARE, f"```json\n{BARE}\n```"),
        ("[act(text='now', count=3)]", "[g(), act(text='now', count=3)]"),
        ('[act(text="now", count=3)]', r'{"page": "use act(text=\"now\", count=3) to go on"}'),
        (f"[{BARE}]", BARE),
        ('{"arguments": {"text": "now"}, "name": "act"}', 'x {"arguments": {"text": "now"}, "name": "act", "y": 1}'),
        (CALL.removesuffix("</tool_call>"), CALL.replace("</tool_call>", "<tool_response>")),
        (CALL.replace("</tool_call>", "}</tool_call>"), f"x{CALL}"),
        (CALL.replace('"now"', "'now'"), CALL.replace('"now"', "'now'")),
    ],
)
def test_name_and_arguments_are_enough_where_markers_are_missing(text: str, result: str) -> None:
    options = {"format": "hermes", "fallback": "whole_message"}
    assert read(text, [], **options).tool_calls
    assert read(text, ["unrelated", result], **options).tool_calls == ()
    assert kinds(read(text, [result], **options)) == ["echoed_result"]


@pytest.mark.parametrize("text", [BARE, "[act(text='now', count=3)]", '{"name": "act", "arguments": {}}'])
def test_a_call_without_markers_that_no_result_contains_runs(text: str) -> None:
    results = ["act", '{"name": "act"}', "act(text='now')", "def act(text, count=4): ...", "now 3"]
    response = read(text, results, format="hermes", fallback="whole_message")
    assert (len(response.tool_calls), response.problems) == (1, ())


@pytest.mark.parametrize(
    "written",
    [
        CALL.replace("<", "&lt;").replace(">", "&gt;"),
        CALL.replace("<", "&#60;").replace(">", "&#x3E;"),
        CALL.replace("<", "\\u003c"),
        json.dumps(json.dumps(CALL)),
        CALL.replace(" ", "").replace("{", "{\n\t"),
        CALL.replace("<", "<\u2060"),
    ],
)
def test_escapes_white_space_and_marks_do_not_hide_an_echo(written: str) -> None:
    assert kinds(read(CALL, [f"begin {written} end"], format="hermes")) == ["echoed_result"]


@pytest.mark.parametrize(
    ("text", "incomplete"),
    [
        ('<tool_call>{"name": "act", "arguments": {"text": "no', 1),
        ("<tool_call>{'name'</tool_call>", 0),
        ("<tool_call> is written before a call", 0),
    ],
)
def test_a_broken_call_that_stands_in_a_result_is_not_a_mistake_of_the_model(text: str, incomplete: int) -> None:
    broken = read(text, [f"The manual: {text}w"], format="hermes")
    assert (len(broken.incomplete), broken.tool_calls) == (incomplete, ())
    (problem,) = broken.problems
    assert problem.kind == "echoed_result"
    assert "written like this" not in problem.message
    (problem,) = read(text, ["Another text."], format="hermes").problems
    assert problem.kind != "echoed_result"


def test_calls_of_one_expression_are_compared_one_by_one() -> None:
    def object_of(text: str) -> str:
        return json.dumps({"function": "act", "params": {"text": text}})

    text = f"[{object_of('now')}, {object_of('later')}, {object_of('now')}]"
    response = read(text, [f"Page: {object_of('later')}"], fallback="whole_message")
    assert [call.arguments for call in response.tool_calls] == [{"text": "now"}] * 2
    assert (kinds(response), response.content) == (["echoed_result"], text)
    response = read(text, [text], fallback="whole_message")
    assert (response.tool_calls, response.content) == ((), text)
    assert [(problem.position, problem.raw) for problem in response.problems] == [(0, text)] * 3


def test_arguments_stream_unless_a_result_mentions_the_tool() -> None:
    for result, streams in (("Rain.", True), ("The tool ACT helps.", False)):
        parser = StreamParser(format="hermes", tools=[ACT], results=[result])
        events = parser.feed(OTHER[:-20])
        assert any(isinstance(event, ArgumentsDelta) for event in events) is streams
        assert parser.reading_call is not streams
        end = [event for event in parser.feed(OTHER[-20:]) if isinstance(event, CallEnd)]
        assert [event.call.arguments for event in end] == [{"text": "later"}]


def test_many_echoes_have_exact_positions() -> None:
    response = toolwire.parse(f"{CALL}-" * 2_000, format="hermes", tools=[ACT], results=[CALL])
    assert [problem.position for problem in response.problems] == [at * (len(CALL) + 1) for at in range(2_000)]


def test_results_may_be_one_text_or_an_iterator() -> None:
    for results in (CALL, iter([CALL]), (CALL,)):
        assert kinds(toolwire.parse(CALL, format="hermes", tools=[ACT], results=results)) == ["echoed_result"]
    with pytest.raises(TypeError, match="results must be the texts of tool results, not list of dict"):
        toolwire.parse(CALL, results=[{}])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"StreamParser\(\) has no argument 'result'; did you mean results\?"):
        StreamParser(result=[CALL])  # type: ignore[call-arg]


REPAIRED = {"repairs": ("missing_close",)}


@pytest.mark.parametrize(
    ("raw", "arguments", "result", "echoed"),
    [
        # the character behind the last value counts, but not if it only separates
        ('act(text="now")', {"text": "now"}, 'call act(text="now")', True),
        ('act(text="now", )', {"text": "now"}, 'call act(text="now")', True),
        ('act(text="now"; )', {"text": "now"}, 'call act(text="now")', True),
        ('act(text="now")', {"text": "now"}, 'call act(text="now, please")', False),
        # a value that is written otherwise: the text up to the last value that is found
        (
            '{"name": "act", "arguments": {"text": "now", "extra": null}}',
            {"text": "now", "extra": None},
            '"act", "arguments": {"text": "now", "extra": 5',
            True,
        ),
        (
            '{"name": "act", "arguments": {"text": "now", "extra": null}}',
            {"text": "now", "extra": None},
            '"act", "arguments": {"text": "now, please"}',
            False,
        ),
        # arguments before the name
        (
            '{"arguments": {"text": "now"}, "name": "act"}',
            {"text": "now"},
            'arguments": {"text": "now"}, "name": "act"',
            True,
        ),
        ('{"arguments": {"text": "now"}, "name": "act"}', {"text": "now"}, '"name": "act", text now', False),
    ],
)
def test_of_a_repaired_call_the_name_with_the_arguments_is_compared(
    raw: str, arguments: dict[str, Any], result: str, echoed: bool
) -> None:
    whole = echoed and re.sub(r"\W", "", raw) in re.sub(r"\W", "", result) and result.endswith(raw[-1])
    for facts, echoes in ((REPAIRED, echoed), ({"confidence": 0.9}, echoed), ({}, whole)):
        call = ToolCall("act", arguments, "c", raw=raw, **facts)  # type: ignore[arg-type]
        echo_filter = EchoFilter([result])
        passed = echo_filter.filter([CallStart(0, "act", "c"), CallEnd(0, call, True)], raw)
        assert echo_filter.echoes == echoes
        assert any(isinstance(event, CallEnd) for event in passed) is not echoes


def _prefixed(prefix: str) -> str:
    """Return the call on three lines, each of which begins with this prefix."""
    lines = ('<tool_call>{"name": "act",', '"arguments":', '{"text": "now"}}</tool_call>')
    return "\n".join(f"{prefix}{line}" for line in lines)


@pytest.mark.parametrize(
    "result",
    [
        *(_prefixed("> "), _prefixed("12: > "), _prefixed("a.py:7: + > "), _prefixed("[3] # // ")),
        *(_prefixed("7\t").replace("\n", "\\n"), CALL.replace("<", "&amp;amp;lt;").replace(">", "&gt;")),
        *(CALL.replace("now", r"n\x6fw"), CALL.replace("now", r"n\u006fw"), CALL.replace("now", "\uff4eow")),
        *(
            _prefixed("2026-11-26 12:00:01,5 INFO "),
            _prefixed("12:00:01 "),
            _prefixed("[2026-11-26T12:00:01Z] [WARN]: "),
        ),
        *(_prefixed("| ").replace("\n", " |\n") + " |", _prefixed("a.py-7-")),
        *(CALL.replace("now", "n\u043ew"), CALL.replace("a", "\u0430"), "".join(f"{c}\u0336" for c in CALL)),
        *(CALL.replace('"', "\u201d"), CALL.upper(), CALL.replace("now", "n\u200bow"), CALL.replace('"', r"\\\"")),
    ],
    ids=str,
)
def test_what_tools_write_before_lines_and_in_place_of_characters_does_not_hide_an_echo(result: str) -> None:
    response = read(CALL, [f"So:\n{result}\nDone."], format="hermes")
    assert (response.tool_calls, response.content, kinds(response)) == ((), CALL, ["echoed_result"])


LINES = '<tool_call>\n{"name": "act", "arguments": {"text": "now"}}\n</tool_call>'


def _each_line(begin: str, end: str = "") -> str:
    return "\n".join(f"{begin}{line}{end}" for line in LINES.split("\n"))


@pytest.mark.parametrize(
    "result",
    [
        *(LINES.replace("act", "**act**"), LINES.replace("now", "_now_"), json.dumps(LINES.splitlines(keepends=True))),
        *(json.dumps(list(LINES)), "\u00b7".join(LINES), "=\n".join(LINES[at : at + 9] for at in range(0, 99, 9))),
        *(' +\n"'.join(LINES[at : at + 9] for at in range(0, 99, 9)), "%3Ctool_call%3E" + LINES[11:]),
        *(_each_line("INFO app: "), _each_line("REM "), _each_line("host app[12]: "), _each_line("<bob> ")),
        *(_each_line("<!-- ", " -->"), _each_line("/* ", " */"), "".join(f"\\{ord(c):03o}" for c in LINES)),
        *("".join(f"\\U{ord(c):08x}" for c in LINES), "".join(f"\\u{{{ord(c):x}}}" for c in LINES)),
        *(LINES.replace("act", "a<b>ct</b>"), LINES.replace("now", "[now](mailto:x@example.org)")),
        "\n".join(f"INFO app: {LINES[at : at + 9]}" for at in range(0, 99, 9)),
    ],
    ids=str,
)
def test_the_letters_of_a_call_are_enough(result: str) -> None:
    response = read(LINES, [f"So:\n{result}\nDone."], format="hermes")
    assert (response.tool_calls, response.content, kinds(response)) == ((), LINES, ["echoed_result"])


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('act(text="now")', "Call act, text: now, please."),  # nothing ends it there
        ('act(text="now")', "Call act, text: now, please)."),
        ('act(text="")', "**act**(text='')"),  # so few letters are found in any text
        (LINES, LINES.replace("\n", "\n" + "a letter " * 12 + "\n")),  # another text is between its lines
        (LINES, "\n".join(LINES.splitlines()[at] for at in (1, 0, 2))),
    ],
)
def test_letters_alone_are_not_enough(text: str, result: str) -> None:
    assert len(read(text, [result]).tool_calls) == 1


@pytest.mark.parametrize("format", ["auto", "hermes"])
def test_a_call_that_begins_in_one_result_and_ends_in_the_next_is_an_echo(format: str) -> None:
    results = ["Another page.", f"Page 1: {CALL[:45]}", f"{CALL[45:]} is all."]
    response = read(CALL, results, format=format)
    assert (response.tool_calls, kinds(response)) == ((), ["echoed_result"])
    assert read(CALL, results[::-1], format=format).tool_calls


@pytest.mark.parametrize("unit", ["\\", " ", "\t", " |", "\\u00", "\\x", "\x1b[", "&#", "1:", "\u0300\u0316"])
def test_results_of_one_repeated_sign_take_linear_time(unit: str) -> None:
    size = 40_000 if unit == "\\" else 200_000
    start = time.process_time()
    response = toolwire.parse(CALL, tools=[ACT], results=[f"act: {unit * (size // len(unit))}x"])
    assert response.tool_calls
    assert time.process_time() - start < 5  # where each sign is compared with all that follow, it takes 10 to 90


@pytest.mark.parametrize(("last", "echoes"), [("now" * 3000 + "!", 1), ("now" * 3000 + "?", 1), ("later" * 3000, 0)])
def test_lines_that_a_result_repeats_without_end_are_not_compared_without_end(last: str, echoes: int) -> None:
    # The second one has another end, but whether a shorter text of these lines has the right one takes too long.
    text = f'[act(\ntext="{"now" * 3000}!")]'
    response = read(text, ["act( " * 20_000 + f"text= {last}"])
    assert len(response.problems) == echoes
    assert len(response.tool_calls) == 1 - echoes


def test_a_call_whose_numbers_are_written_otherwise_takes_linear_time() -> None:
    numbers = ", ".join(f"{number}e0" for number in range(60_000))
    start = time.process_time()
    response = read_whole(f"act(text=[{numbers}])", ["The tool act is there."])
    assert len(response.tool_calls) == 1
    assert time.process_time() - start < 5  # where each number is looked for in all of the text, it takes 15


@pytest.mark.parametrize("place", ["result", "call", "broken call"])
def test_a_reference_to_a_number_of_thousands_of_digits_is_text(place: str) -> None:
    reference = f"&#{'1' * 5000};"
    text = {"result": CALL, "call": CALL.replace("now", reference), "broken call": CALL[:-20].replace("now", reference)}
    response = read(text[place], [f"act {reference if place == 'result' else ''}"], format="hermes")
    assert (len(response.tool_calls), len(response.problems)) == ((0, 1) if place == "broken call" else (1, 0))


def test_four_prefixes_of_a_line_are_text() -> None:
    assert len(read(CALL, [_prefixed("1: 2: 3: 4: ")], format="hermes").tool_calls) == 1


def test_a_broken_call_behind_an_echo_is_numbered_among_those_that_are_announced() -> None:
    cut = '<tool_call>{"name": "act", "arguments": {"text": "la'
    response = read(f"{CALL}{OTHER}{cut}", [CALL], format="hermes")
    assert [call.arguments for call in response.tool_calls] == [{"text": "later"}]
    assert [(problem.kind, problem.index) for problem in response.problems] == [
        ("echoed_result", None),
        ("truncated", 1),
    ]
