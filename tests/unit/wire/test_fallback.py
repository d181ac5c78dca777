"""What is read beside the calls of a format: in a fence, in tags, before markers; and what becomes of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from tests import streams

from toolwire import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    ContentDelta,
    Event,
    Finish,
    ParsedResponse,
    ProblemFound,
    ReasoningDelta,
    StreamParser,
    ToolCall,
    formats,
    get_format,
    render_calls,
)

TEXT = {"type": "string"}
TOOLS = [
    {
        "name": "search",
        "parameters": {
            "type": "object",
            "properties": {"query": TEXT, "limit": {"type": "integer"}},
            "required": ["query"],
        },
    },
    {"name": "get_time", "parameters": {"type": "object", "properties": {}}},
]
A = ("search", {"query": "a"})
B = ("search", {"query": "b"})
MARKED = "<tool_call>\n<function=search>\n<parameter=query>\na\n</parameter>\n</function>\n</tool_call>"
UNKNOWN = MARKED.replace("search", "find")
_TEXTS = (ContentDelta, ReasoningDelta)
TAGS = "<search><query>a</query></search>"


def read(text: str, level: str = "whole_message", **options: Any) -> ParsedResponse:
    """Read a text whole and in pieces, all with the same outcome."""
    options = {"format": "qwen3_coder", "tools": TOOLS, "fallback": level} | options
    whole = streams.parsed(text, **options)
    for size in (1, 2, 3, 7):
        parts = streams.parsed(text, size, **options)
        for name in ("tool_calls", "content", "reasoning", "problems", "finish_reason"):
            assert getattr(parts, name) == getattr(whole, name), (name, size)
    return whole


# -- a format's calls in one fence ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{MARKED}\n```",
        f"```xml\n{MARKED}\n```",
        f"```xml of {'x' * 73}\n{MARKED}\n```\n\n",
        f"~~~\n{MARKED}\n~~~",
        f"{'`' * 80}\n{MARKED}\n{'`' * 80}",
    ],
)
def test_calls_that_are_all_of_a_fence_are_read(text: str) -> None:
    response = read(text)
    assert (streams.called(response), response.content, response.problems) == ([A], "", ())
    (call,) = response.tool_calls
    assert (call.format, call.repairs, call.raw) == ("qwen3_coder", ("fallback",), MARKED)
    assert (call.confidence < 1, response.finish_reason) == (True, "tool_calls")
    assert streams.called(read(f"<think>I search.</think>{text}")) == [A]
    assert streams.called(read(f"I search.</think>{text}", reasoning_started=True)) == [A]


def test_all_calls_in_fences_are_read() -> None:
    for text in (f"```\n{MARKED}\n{MARKED}\n```", f"```\n{MARKED}\n```\n```\n{MARKED}\n```"):
        assert streams.called(read(text)) == [A, A]
    response = read(f"```\n<think>I search.</think>{MARKED}\n```")
    assert (streams.called(response), response.reasoning) == ([A], "I search.")


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{MARKED}",  # the fence stays open
        f"```\n{MARKED[:-20]}\n```",
        f"```\n{MARKED[:60]}",
        f"```\n{UNKNOWN}\n```",
        f"```\n{MARKED}\n{UNKNOWN}\n```",
        f"```\nSo: {MARKED}\n```",
        f"```\n{MARKED}\n``` It is done.",
        f"See:\n```\n{MARKED}\n```",
        f"```{'x' * 81}\n{MARKED}\n```",
        f"{'`' * 81}\n{MARKED}\n{'`' * 81}",
        "```\n<think>I search.</think>\n```",
        "```\n\n```",
        "```",
    ],
)
def test_any_other_fence_is_content(text: str) -> None:
    response = read(text)
    assert (response.tool_calls, response.content, response.finish_reason) == ((), text, "stop")


# -- tags named after tools -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "calls"), [(TAGS, [A]), (TAGS * 2, [A, A]), ("\n<get_time/>\n", [("get_time", {})])])
def test_a_message_of_tags_named_after_tools_is_read(text: str, calls: list[Any]) -> None:
    response = read(text)
    assert (streams.called(response), response.content.strip()) == (calls, "")
    assert {call.format for call in response.tool_calls} == {"tool_tags"}
    response = read(f"I search.</think>{text}", reasoning_started=True)
    assert (streams.called(response), response.reasoning) == (calls, "I search.")


@pytest.mark.parametrize(
    "text", [f"{TAGS} so", f"So {TAGS}", "<find><query>a</query></find>", f"{TAGS}<find/>", TAGS[:-2], TAGS + TAGS[:-2]]
)
def test_other_tags_are_content(text: str) -> None:
    response = read(text)
    assert (response.tool_calls, response.content, response.finish_reason) == ((), text, "stop")


# -- calls without markers before calls with markers ------------------------------------------------------------------


@pytest.mark.parametrize("closer", ["</tool_call>", "</function>", "<|call_end|>", "<|/call|>", "</call>\n"])
def test_a_closing_tag_shows_that_what_is_before_it_was_a_call(closer: str) -> None:
    response = read(f"search(query='b'){closer}{MARKED}")
    assert (streams.called(response), response.content) == ([B, A], "")


def test_calls_before_those_of_the_format_are_counted_in_their_numbers_and_ids() -> None:
    text = f"search(query='b')\nget_time()</tool_call>{MARKED}{MARKED}"
    response = read(text)
    assert streams.called(response) == [B, ("get_time", {}), A, A]
    assert len({call.id for call in response.tool_calls}) == 4
    parser = StreamParser(format="qwen3_coder", tools=TOOLS, fallback="whole_message")
    events = [*(event for character in text for event in parser.feed(character)), *parser.finish()]
    starts = [event for event in events if isinstance(event, CallStart)]
    ends = [event for event in events if isinstance(event, CallEnd)]
    assert [event.index for event in starts] == [event.index for event in ends] == [0, 1, 2, 3]
    assert [event.id for event in starts] == [event.call.id for event in ends]
    assert {event.index for event in events if isinstance(event, ArgumentsDelta)} == {0, 1, 2, 3}
    # The ids are those that the same calls have wherever they are in a message.
    (_, _, third, fourth) = read(MARKED * 4).tool_calls
    assert (response.tool_calls[2].id, response.tool_calls[3].id) == (third.id, fourth.id)


def test_an_id_that_the_model_wrote_stays() -> None:
    marked = '[TOOL_CALLS][{"name": "search", "arguments": {"query": "a"}, "id": "abcdefghi"}]'
    response = read(f"search(query='b')</call>{marked}", format="mistral_json")
    assert streams.called(response) == [B, A]
    assert response.tool_calls[1].id == "abcdefghi"


def test_a_broken_call_behind_calls_has_its_number_among_all() -> None:
    for before in ("search(query='b')</tool_call>", "search\n<query>b</query>\n"):
        response = read(before + MARKED[:60])
        assert (streams.called(response), response.content, response.finish_reason) == ([B], "", "tool_calls")
        (problem,) = response.problems
        assert (problem.kind, problem.index) == ("truncated", 1)
        assert streams.called(read(before + MARKED)) == [B, A]


@pytest.mark.parametrize(
    "before",
    [
        "search(query='b')",
        "search(query='b')\n",
        "search(query='b')\nI search.</tool_call>",
        "find(query='b')</tool_call>",
    ],
)
def test_without_a_closing_tag_it_is_content(before: str) -> None:
    response = read(before + MARKED)
    assert (streams.called(response), response.content) == ([A], before)


QUOTED = MARKED.replace("\n", "")


def test_a_call_that_content_quotes_is_neither_made_nor_counted() -> None:
    outer = f"search(query='{QUOTED}')"
    text = f"get_time(); {outer} and so on"
    response = read(text)
    assert (response.tool_calls, response.content, response.finish_reason) == ((), text, "stop")
    assert [(p.kind, p.position, p.raw) for p in response.problems] == [
        ("call_in_prose", 0, "get_time()"),
        ("call_in_prose", 12, outer),
    ]


@pytest.mark.parametrize("cut", [1, len("</function></tool_call>'"), 40])
def test_a_cut_call_that_quotes_one_is_content(cut: int) -> None:
    outer = f"search(query='{QUOTED}'"[:-cut]
    response = read(f"get_time(); {outer}")
    assert (streams.called(response), response.content) == ([("get_time", {})], outer)
    assert [(p.kind, p.position, p.raw) for p in response.problems] == [("truncated", 12, outer)]


def test_a_call_behind_one_that_quotes_it_is_made() -> None:
    text = f"search(query='{QUOTED}') and {MARKED}"
    response = read(text)
    assert (streams.called(response), response.content) == ([A], text[: -len(MARKED)])
    assert response.tool_calls[0].id == read(MARKED).tool_calls[0].id
    assert response.finish_reason == "tool_calls"


def test_a_closing_tag_behind_a_call_that_quotes_one_shows_that_it_was_made() -> None:
    response = read(f"search(query='{QUOTED}')</tool_call>{MARKED}")
    assert streams.called(response) == [("search", {"query": QUOTED}), A]
    assert response.tool_calls[1].id == read(MARKED * 2).tool_calls[1].id


# -- content and reasoning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " \n ", "Hello.", "[1, 2]", "{}", "search", "```", "<b>x</b>"])
@pytest.mark.parametrize("level", ["whole_message", "embedded"])
def test_other_messages_are_content(text: str, level: str) -> None:
    response = read(text, level)
    assert (response.tool_calls, response.content, response.problems, response.finish_reason) == ((), text, (), "stop")


def test_content_is_passed_on_once_it_cannot_be_calls() -> None:
    parser = StreamParser(format="qwen3_coder", tools=TOOLS, fallback="whole_message")
    assert list(parser.feed("[1, ")) == []
    assert list(parser.feed("2] x")) == [ContentDelta("[1, "), ContentDelta("2] x")]
    events = parser.feed(" search(query='a')")
    assert "".join(event.text for event in events if isinstance(event, ContentDelta)) == " search(query='a')"
    embedded = StreamParser(format="qwen3_coder", tools=TOOLS, fallback="embedded")
    assert list(embedded.feed("Hello.")) == []
    assert list(embedded.finish()) == [ContentDelta("Hello."), Finish("stop")]


def test_reasoning_between_pieces_of_content_makes_them_no_single_message() -> None:
    text = "search(query='a')<think>Once more.</think>search(query='a')"
    response = read(text)
    assert (response.tool_calls, response.content) == ((), "search(query='a')search(query='a')")
    assert [(p.kind, p.position) for p in response.problems] == [("call_in_prose", 0), ("call_in_prose", 42)]
    assert streams.called(read("\n<think>Now.</think>\nsearch(query='a')")) == [A]


def test_a_problem_is_at_the_content_and_not_at_the_reasoning_that_quotes_it() -> None:
    text = "<think>search(query='a')?</think>Now search(query='a')."
    (problem,) = read(text).problems
    assert (problem.kind, problem.position, problem.raw) == (
        "call_in_prose",
        text.rindex("search"),
        "search(query='a')",
    )
    text = "<think>search(query='a</think>get_time()\nsearch(query='a"
    (problem,) = read(text).problems
    assert (problem.kind, problem.position, problem.raw) == ("truncated", text.rindex("search"), "search(query='a")


def test_calls_amid_prose_have_numbers_ids_and_the_content_around_them() -> None:
    text = "First search(query='a') and then [get_time(), search(query='b')]."
    response = read(text, "embedded")
    assert streams.called(response) == [A, ("get_time", {}), B]
    assert (response.content, response.finish_reason) == ("First  and then .", "tool_calls")
    assert [call.id for call in response.tool_calls] == [
        call.id for call in read("search(query='a'), get_time(), search(query='b')").tool_calls
    ]
    parser = StreamParser(format="qwen3_coder", tools=TOOLS, fallback="embedded")
    events = [*parser.feed("search(query='a') it is"), *parser.finish()]
    assert [event.text for event in events if isinstance(event, ContentDelta)] == [" it is"]


def test_of_calls_amid_prose_only_those_that_the_text_makes_count() -> None:
    far = "Well. " * 100
    text = f"For instance search(query='b'). {far} I run search(query='a')"
    response = read(text, "embedded")
    assert (streams.called(response), response.content) == ([A], text[: text.rindex("search")])
    assert [problem.position for problem in read(text).problems] == [text.rindex("search")]


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("search(query='a')", 0.9),
        ("search(query='a')\nIt finds a.", 0.6),
        ("I run search(query='a')", 0.4),
    ],
)
def test_the_less_a_message_is_its_calls_the_less_they_are_certain(text: str, confidence: float) -> None:
    (call,) = read(text, "embedded").tool_calls
    assert (call.confidence, call.repairs, call.format) == (confidence, ("fallback",), "python_calls")


def test_values_are_fitted_to_the_schema() -> None:
    (call,) = read("search(query='a', limit='2')").tool_calls
    assert (call.arguments, call.repairs) == ({"query": "a", "limit": 2}, ("fallback", "coerced"))
    (call,) = read("I run Search('a', limit='2')", "embedded").tool_calls
    assert call.repairs == ("name_resolved", "positional", "fallback", "coerced")


def test_a_cut_call_is_content_and_a_problem() -> None:
    response = read("get_time()\nsearch(query='a")
    assert (streams.called(response), response.content) == ([("get_time", {})], "search(query='a")
    assert [(p.kind, p.position, p.raw) for p in response.problems] == [("truncated", 11, "search(query='a")]


def test_a_broken_call_before_one_that_is_made_is_no_problem_of_its_own_in_any_chunking() -> None:
    response = read('search(query="a "b") so I call it.\n' + MARKED)
    assert (streams.called(response), response.problems) == ([A], ())


# -- calls that the format's reader has refused -----------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "So:\n"])
@pytest.mark.parametrize("level", ["whole_message", "embedded"])
def test_a_call_that_the_format_refuses_is_not_read_once_more_amid_prose(before: str, level: str) -> None:
    call = '<tool_call>\n{"name": "search", "arguments": {"query": "a", "limit": -Infinity}}\n</tool_call>'
    response = read(before + call, level, format="hermes")
    assert (response.tool_calls, response.content) == ((), before + call)
    assert [problem.kind for problem in response.problems] == ["malformed"]


def test_calls_of_two_formats_amid_prose_are_read() -> None:
    first = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{"query": "a"}\n```<｜tool▁call▁end｜>'
    second = '{"tool_calls": [{"function": {"name": "search", "arguments": {"query": "b"}}}]}'
    text = f"<｜tool▁calls▁begin｜>{first}<｜tool▁calls▁end｜>\n{second}"
    response = read(text, "embedded", format="openai_json")
    assert [(call.name, call.arguments) for call in response.tool_calls] == [A, B]


# -- calls of a format that a call without markers quotes -------------------------------------------------------------

NOTE = {"name": "note", "parameters": {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}}


@pytest.mark.parametrize("format", [name for name in formats() if get_format(name).blocks])
@pytest.mark.parametrize("begin", ["search(query=", "search(query='a'); search(query=", "[search(query="])
def test_no_call_of_a_format_is_made_that_an_argument_quotes(format: str, begin: str) -> None:
    quoted = render_calls([ToolCall("note", {"text": "b"})], format=format, tools=[*TOOLS, NOTE])
    closing = ")]" if begin.startswith("[") else ")"
    for string in (repr(quoted), f"'''{quoted}'''"):
        for end in (f"{closing} finds it.", f"{closing}\nIt is found.", closing, ""):
            text = f"{begin}{string}{end}"
            response = streams.parsed(text, 3, format=format, tools=[*TOOLS, NOTE], fallback="whole_message")
            assert "note" not in {call.name for call in response.tool_calls}, text
            assert response.finish_reason == ("tool_calls" if response.tool_calls else "stop"), text


def _events(text: str, size: int) -> list[Event]:
    parser = StreamParser(format="qwen3_coder", tools=TOOLS, fallback="embedded")
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return [*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()]


@pytest.mark.parametrize("end", ["", ' Then search(query="b").'])
def test_reasoning_amid_prose_stays_in_its_place(end: str) -> None:
    text = f"One. <think>I look.</think>Two: `get_time`.{MARKED.replace('search', 'nobody')} {UNKNOWN}{end}"
    for size in (1, 2, 5, len(text)):
        events = _events(text, size)
        first, thought = (next(i for i, event in enumerate(events) if isinstance(event, kind)) for kind in _TEXTS)
        assert first < thought
        problems = [event.problem for event in events if isinstance(event, ProblemFound)]
        assert [problem.position for problem in problems] == [text.find(problem.raw) for problem in problems]


def test_a_problem_behind_reasoning_amid_prose_is_at_its_place() -> None:
    call = '{"name": "search", "arguments": {"query": "c"}}'
    text = f"<!--<think>name:{MARKED}search(query=(|{MARKED}{call}"
    for size in (1, 2, 5, 20, len(text)):
        problems = [event.problem for event in _events(text, size) if isinstance(event, ProblemFound)]
        assert [problem.position for problem in problems] == [text.find(call)]


@pytest.mark.parametrize("level", ["whole_message", "embedded"])
@pytest.mark.parametrize(
    ("broken", "kind"), [("<tool_call>nonsense</tool_call>", "malformed"), ("<tool_call>\n<fun", "truncated")]
)
def test_a_call_that_cannot_be_read_is_a_problem_behind_calls_without_markers(
    level: str, broken: str, kind: str
) -> None:
    response = read(f'search(query="a")\n{broken}', level)
    assert (streams.called(response), response.content) == ([A], broken)
    assert [(problem.kind, problem.position) for problem in response.problems] == [(kind, 18)]


def test_a_call_that_cannot_be_read_is_a_problem_on_both_sides_of_calls_amid_prose() -> None:
    broken = "<tool_call>nonsense</tool_call>"
    response = read(f'{broken}\nI run search(query="a").\n{broken}', "embedded")
    assert (streams.called(response), response.content) == ([A], f"{broken}\nI run .\n{broken}")
    assert [(problem.kind, problem.position) for problem in response.problems] == [("malformed", 0), ("malformed", 57)]


def test_what_was_read_as_a_call_in_the_end_is_not_a_problem() -> None:
    response = read('<tool_call>\nsearch(query="a")\n</tool_call>', "embedded")
    assert (streams.called(response), response.problems) == ([A], ())


@pytest.mark.parametrize("written", ['search(query="a")', 'search\n{"query": "a"}', TAGS])
def test_reasoning_behind_calls_amid_prose_is_not_lost(written: str) -> None:
    response = read(f"{written}\n<think>I wait.</think>", "embedded")
    assert (streams.called(response), response.reasoning) == ([A], "I wait.")


@pytest.mark.parametrize(
    "text", ['search(<think>I wait.</think>query="a")', 'search\n<think>I wait.</think>{"query": "a"}']
)
def test_no_call_amid_prose_has_reasoning_in_its_middle(text: str) -> None:
    response = read(text, "embedded")
    assert (response.tool_calls, response.reasoning) == ((), "I wait.")
