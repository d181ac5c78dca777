"""A call to a known tool is read or reported, in whatever format, fence or company it is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.property.laws import check_chunking

import toolwire
from toolwire.messages import ParsedResponse, ToolCall
from toolwire.wire import FORMATS
from toolwire.wire.dialects import CallScanner

TOOLS: list[dict[str, Any]] = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
    {
        "name": "find_hotel",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "stars": {"type": "integer"}},
            "required": ["place"],
        },
    },
]
WEATHER = ToolCall("get_weather", {"city": "Paris", "days": 3})
HOTEL = ToolCall("find_hotel", {"place": "Rome", "stars": 4})
HERMES = '<tool_call>{"name": "find_hotel", "arguments": {"place": "Oslo"}}</tool_call>'
OBJECT = '{"name": "find_hotel", "arguments": {"place": "Oslo"}}'
ELEMENT = "<find_hotel><place>Oslo</place></find_hotel>"

WRITTEN = {
    wire.name: tuple(toolwire.render_calls([call], format=wire.name, tools=TOOLS) for call in (WEATHER, HOTEL))
    for wire in FORMATS
    if wire.blocks
} | {
    "python_calls": ('get_weather(city="Paris", days=3)', 'find_hotel(place="Rome", stars=4)'),
    "call_strings": ("""['get_weather(city="Paris", days=3)']""", """['find_hotel(place="Rome", stars=4)']"""),
    "call_objects": ('{"tool": "get_weather", "args": {"city": "Paris"}}', '{"tool": "find_hotel", "place": "Rome"}'),
    "name_as_key": ('{"get_weather": {"city": "Paris"}}', '{"find_hotel": {"place": "Rome"}}'),
    "name_then_json": ('get_weather\n{"city": "Paris"}', 'find_hotel\n{"place": "Rome"}'),
    "named_elements": (
        "get_weather\n<city>Paris</city>\n<days>3</days>",
        "find_hotel\n<place>Rome</place>\n<stars>4</stars>",
    ),
    "json_in_tag": ('<get_weather>{"city": "Paris"}</get_weather>', '<find_hotel>{"place": "Rome"}</find_hotel>'),
    "yaml_in_tag": ("<get_weather>\ncity: Paris\n</get_weather>", "<find_hotel>\nplace: Rome\n</find_hotel>"),
    "attributes": ('<get_weather city="Paris"/>', '<find_hotel place="Rome"/>'),
}


def read(text: str, **options: Any) -> ParsedResponse:
    return toolwire.parse(text, tools=TOOLS, **options)


def kinds(text: str, **options: Any) -> list[str]:
    return [problem.kind for problem in read(text, **options).problems]


def _texts(first: str, second: str) -> Iterator[tuple[str, int]]:
    """Yield texts with calls in them, and how many."""
    yield first, 1
    yield f"```\n{first}\n```", 1
    yield f"Let me look that up now.\n\n{first}", 1
    yield f"Let me look that up now.\n\n```\n{first}\n```\n", 1
    yield f"Let me look that up now.\n\n```json\n{first}\n```\nDone.", 1
    yield f"{first}\n\nand now the other one:\n\n{second}", 2
    yield f"```json\n{first}\n```\nAnd then the hotel.\n```json\n{second}\n```\n", 2
    for other in (HERMES, OBJECT, f"[{OBJECT}]", '[find_hotel(place="Oslo")]', ELEMENT):
        yield f"{first}\n{other}", 2
        yield f"{other}\n{first}", 2


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("format", ["auto", "hermes", "pythonic"])
def test_each_call_is_read_or_reported(form: str, format: str) -> None:
    for text, count in _texts(*WRITTEN[form]):
        response = read(text, format=format, fallback="whole_message")
        # An unclosed fence hides what is behind it, and one problem reports all of that.
        hidden = any(problem.kind == "hidden_by_fence" for problem in response.problems)
        assert hidden or len(response.tool_calls) + len(response.problems) >= count, (text, response)


@pytest.mark.parametrize("form", WRITTEN)
def test_a_problem_is_at_the_place_of_its_call(form: str) -> None:
    first, second = WRITTEN[form]
    for text in (
        f"{HERMES}\n{first}",
        f"<think>{first}</think>\n{HERMES} Now the rest.\n```\n{first}\n```\n{HERMES}\nAnd:\n```\n{second}\n```\nDone.",
    ):
        response = check_chunking(text, format="auto", tools=TOOLS).response
        assert response.problems or len(response.tool_calls) == 2  # formats with the same wrapper read each other's
        for problem in response.problems:
            assert text[problem.position : problem.position + len(problem.raw)] == problem.raw
        assert {problem.position for problem in response.problems}.isdisjoint(range(text.find("</think>")))


@pytest.mark.parametrize(
    "inside",
    [
        "I will look at the weather.",
        "<town>Paris</town>",
        '["Paris"]',
        "\n<debug/>\n",
        "\n- city Paris\n",
    ],
)
def test_an_element_of_a_tool_that_is_no_call_is_malformed(inside: str) -> None:
    text = f"<get_weather>{inside}</get_weather>"
    response = check_chunking(text, format="auto", tools=TOOLS).response
    (problem,) = response.problems
    assert (response.content, response.tool_calls) == (text, ())
    assert (problem.kind, problem.position, problem.raw) == ("malformed", 0, text)
    assert "<get_weather> is named after a tool" in problem.message
    assert "<city>" in problem.message.partition("is written like this")[2]  # the example
    assert kinds(f"{text}\n{text}\n") == ["malformed"] * 2


def test_amid_prose_such_an_element_is_only_shown() -> None:
    text = "<get_weather>I look.</get_weather>"
    assert kinds(f"So: {text} now.") == ["call_in_prose"]
    assert kinds(f"{text}\n{HERMES}\nso.") == ["call_in_prose"]
    assert kinds(f"{text}\n{HERMES}\n{text}") == ["malformed"] * 2
    assert kinds("Now `<get_weather city='Paris'/>` then.") == ["call_in_prose"]
    assert kinds(f"{text}\n{HERMES}\n{HERMES}") == ["malformed"]  # white space between calls is no prose


@pytest.mark.parametrize(
    "text",
    [
        "Write <get_weather> and end with </get_weather>, please.",
        "Use `<get_weather/>` for that.",
        "<get_weathers>Paris</get_weathers>",
        "<city>Paris</city>",
        "</get_weather> <get_weather>",
        "get_weather\n<b>Paris</b>",
        "The action:\nAction: look it up\nAction Input: none",
        f"For example, this would be the call:\n```\n{HERMES}\n```\n",
        f"I cannot call a tool. It would be\n```\n{HERMES}\n```\n",
        "For example:\n<get_weather>Paris</get_weather>",
        f"<tool_response>\n```\n{HERMES}\n```\n</tool_response>",
        '```\n<tool_call>{"name": "unknown", "arguments": {}}</tool_call>\n```',
    ],
)
def test_a_mention_is_not_reported(text: str) -> None:
    response = check_chunking(text, format="auto", tools=TOOLS).response
    assert (response.content, response.tool_calls, response.problems) == (text, (), ())


def test_a_call_is_reported_once() -> None:
    assert kinds(f"Now:\n```\n{HERMES}") == ["hidden_by_fence"]
    assert kinds('<tool_call>{"name": "find_hotel", "arguments": {"place": 1, "place": 2}}</tool_call>') == [
        "malformed"
    ]
    assert kinds(f"Now:\n```\n{HERMES}\n{HERMES}\n```\nDone.") == ["call_in_prose"] * 2
    nested = "<get_weather>\n<find_hotel>a</find_hotel>\n</get_weather>"
    assert kinds(nested) == ["malformed"]


def test_a_call_in_an_argument_of_a_call_is_not_reported() -> None:
    text = f"Now: `get_weather(city='{HERMES}')` then."
    (problem,) = read(text).problems
    assert problem.raw == f"get_weather(city='{HERMES}')"


def test_without_a_fallback_nothing_more_is_searched_for() -> None:
    assert kinds(f"Now:\n```\n{HERMES}\n```\nDone.", format="hermes") == []
    assert kinds(f"Now:\n```\n{HERMES}\n```\nDone.", fallback="none") == []


def test_the_level_embedded_reads_formats_in_fences_too() -> None:
    text = "Now:\n```xml\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n```\nDone."
    response = check_chunking(text, format="auto", tools=TOOLS, fallback="embedded").response
    (call,) = response.tool_calls
    assert (call.name, call.arguments, call.format) == ("get_weather", {"city": "Paris"}, "qwen3_coder")
    assert (call.confidence, call.repairs) == (0.4, ("fallback",))
    assert (response.content, response.problems) == ("Now:\nDone.", ())
    assert kinds(text) == ["call_in_prose"]


def test_many_formats_beside_each_other_are_reported() -> None:
    forms = ("hermes", "qwen3_coder", "forge_xml", "mistral_args", "anthropic_xml", "deepseek_v3_1", "kimi_k2")
    response = read("\n".join(WRITTEN[form][0] for form in forms))
    assert [call.format for call in response.tool_calls] == ["hermes"] * 2
    assert [problem.kind for problem in response.problems] == ["call_in_prose"] * 5


@pytest.mark.parametrize(
    "text", [f"```\n{HERMES}\n```\nso\n", "<get_weather>a</get_weather>\n", f"{HERMES}\nget_weather()\n"]
)
def test_only_so_many_calls_of_a_message_are_reported(text: str) -> None:
    assert 90 < len(kinds("Now:\n" + text * 400)) < 210


_ARGUMENTS = ('{"city": "Paris"}', "<city>Paris</city>")
_IN_A_LINE = ["Now: {}", "`{}`", "I do `{}` now.", "So I choose {}", "I look (with {})"]


@pytest.mark.parametrize("arguments", _ARGUMENTS)
@pytest.mark.parametrize("between", [" ", "\n", ": ", ":\n", "`\n"])
@pytest.mark.parametrize("around", _IN_A_LINE)
def test_arguments_right_behind_a_name_anywhere_in_a_line_are_reported(
    arguments: str, between: str, around: str
) -> None:
    text = around.format(f"get_weather{between}{arguments}")
    if calls := read(text).tool_calls:  # the whole message is the call
        assert [call.arguments for call in calls] == [{"city": "Paris"}]
        return
    (problem,) = check_chunking(text, format="auto", tools=TOOLS).response.problems
    assert (problem.kind, problem.position) == ("call_in_prose", text.index("get_weather"))
    assert problem.raw == f"get_weather{between}{arguments}"


@pytest.mark.parametrize(
    "text",
    [
        'I call get_weather with {"city": "Paris"}',
        'name: get_weather\narguments: {"city": "Paris"}',
        'commentary to=functions.get_weather json{"city": "Paris"}',
        'function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}\n```',
        '<use_tool><tool_name>get_weather</tool_name>\n<arguments>\n{"city": "Paris"}\n</arguments></use_tool>',
        "<__function=get_weather>\n<__parameter=city>Paris</__parameter>\n</__function>",
    ],
)
def test_what_is_between_a_name_and_its_arguments_may_be_markup_of_no_format(text: str) -> None:
    response = check_chunking(text, format="auto", tools=TOOLS).response
    assert (response.tool_calls, response.content) == ((), text)
    assert [problem.kind for problem in response.problems] == ["call_in_prose"]
    assert kinds(text.replace("get_weather", "get_time").replace("city", "zone")) == []


@pytest.mark.parametrize("action", ["Action: get_weather Action Input: {}", "Action: get_weather,\nAction Input: {}"])
@pytest.mark.parametrize("value", ["Paris", '{"city": "Paris"}'])
@pytest.mark.parametrize("before", ["I look: ", "Yes, ", "`"])
def test_an_action_anywhere_in_a_line_is_reported(action: str, value: str, before: str) -> None:
    text = before + action.format(value)
    if calls := read(text).tool_calls:  # the whole message is the call
        assert [call.arguments for call in calls] == [{"city": "Paris"}]
    else:
        assert kinds(text) == ["call_in_prose"]


@pytest.mark.parametrize(
    "text",
    [
        'The answer of get_weather was not {"city": "Paris"}.',
        'For example, get_weather {"city": "Paris"} would do.',
        'The tool get_weather: {"place": "Paris"}',
        'It is called get_weathers {"city": "Paris"}',
        'A page has <city>Paris</city> and {"city": "Paris"}.',
        "In get_weather <city> is a tag.",
        'See get_weather {"city": "Pa',
        'The tool get_weather {"city": "a", "type": "object"}',
        "Action: sleep Action Input: long",
    ],
)
def test_values_that_are_not_the_arguments_of_a_tool_are_not_reported(text: str) -> None:
    assert (read(text).tool_calls, kinds(text)) == ((), [])


@pytest.mark.parametrize("unit", ['get_weather {"city": "', "get_weather <city> ", 'get_weather {"city": [{'])
def test_names_before_arguments_without_an_end_are_searched_in_linear_time(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = 0
    scan = CallScanner.scan

    def counted(self: CallScanner, text: str, pos: int, final: bool) -> int:
        nonlocal scanned
        stop = scan(self, text, pos, final)
        scanned += stop - pos
        return stop

    monkeypatch.setattr(CallScanner, "scan", counted)
    text = "I say " + unit * 2000
    kinds(text)
    assert scanned < 20 * len(text)


@pytest.mark.parametrize("marker", ["</think>", "<think>hm</think>"])
def test_a_problem_is_not_in_the_marker_before_its_call(marker: str) -> None:
    text = (
        marker + "<tool_call>\n<function=find_hotel>\n<parameter=place>\nOslo\n</parameter>\n</function>\n</tool_call>"
    )
    for pieces in ([text], list(text), [text[:-1], text[-1]]):
        parser = toolwire.StreamParser(format="deepseek_v3", tools=TOOLS, fallback="whole_message")
        events = [event for piece in pieces for event in parser.feed(piece)]
        response = toolwire.collect([*events, *parser.finish()])
        assert [(problem.kind, problem.position) for problem in response.problems] == [("call_in_prose", len(marker))]


@pytest.mark.parametrize("call", [HERMES, 'find_hotel(place="Oslo")', OBJECT])
@pytest.mark.parametrize("end", ["", "</think>", "</think>\n"])
def test_a_call_in_reasoning_that_is_all_of_a_message_is_reported(call: str, end: str) -> None:
    text = f"<think>I look it up.\n{call}{end}"
    response = check_chunking(text, format="hermes", tools=TOOLS, fallback="whole_message").response
    assert (response.tool_calls, response.content.strip()) == ((), "")
    assert [(problem.kind, problem.position) for problem in response.problems] == [("call_in_prose", text.index(call))]
    assert response.problems[0].raw == call


@pytest.mark.parametrize("rest", ["It is done.", ELEMENT])
def test_a_call_in_reasoning_before_an_answer_is_not_reported(rest: str) -> None:
    text = f"<think>I look it up: {HERMES}</think>{rest}"
    assert read(text, format="tool_tags", fallback="whole_message").problems == ()


@pytest.mark.parametrize("template", ["get_weather(city='{}'", "get_weather('{}'"])
def test_a_call_of_the_format_that_is_an_argument_does_not_run(template: str) -> None:
    quoting = template.format(HERMES)
    assert [call.arguments for call in read(f"{quoting})").tool_calls] == [{"city": HERMES}]
    for text in (f"{quoting}) and so on", f"{quoting}, days="):
        assert (read(text).tool_calls, read(text).content) == ((), text)
    two = read(f"get_weather(city='a')\n{quoting}, days=")
    assert [call.arguments for call in two.tool_calls] == [{"city": "a"}]


def test_a_name_before_a_list_of_calls_is_a_word_of_the_sentence() -> None:
    calls = read("I use find_hotel:\n[get_weather(city='a')]", fallback="embedded").tool_calls
    assert [call.name for call in calls] == ["get_weather"]


def test_a_name_in_place_of_the_language_of_a_fence_is_that_of_the_call() -> None:
    (call,) = read('```get_weather\n{"city": "a"}\n```').tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "a"})


@pytest.mark.parametrize(("blanks", "is_near"), [(80, True), (81, False)])
def test_a_name_begins_within_400_characters_before_its_arguments(blanks: int, is_near: bool) -> None:
    between = f"{' ' * 99}arguments{' ' * 99}:{' ' * 99}```a{' ' * (blanks - 2)}"
    assert len("get_weather" + between) == 400 + (blanks - 80)
    assert kinds(f'I say: get_weather{between}{{"city": "Paris"}} now.') == ["call_in_prose"] * is_near


def test_a_call_before_a_broken_one_is_reported_too() -> None:
    text = "I look it up: get_weather(city='a') and <tool_call>{\"name\": get_weather}</tool_call>"
    assert sorted(kinds(text, format="hermes", fallback="whole_message")) == ["call_in_prose", "malformed"]
