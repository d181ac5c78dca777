"""Calls in lines without brackets, in attributes of any tag, and with misspelled keys: reported, and never read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.property.laws import check_chunking

from toolwire import parse
from toolwire.text.expressions import ExpressionScanner
from toolwire.wire import line_calls

TOOLS: list[dict[str, Any]] = [
    {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}},
    {"name": "now", "parameters": {"properties": {}}},
]
MAPPINGS = [
    *("name: get_weather\narguments:\n  city: Paris", "tool: get_weather\nparameters:\n  city: Paris\n  days: 3"),
    *("function_name: 'get_weather'\nargs:\n    'city': Paris", "Tool Name: get_weather\nAction Input:\n  city: a"),
    *(
        "- name: get_weather\n  arguments:\n    city: Paris",
        "tool: get_weather\ncity: Paris",
        "action: `get_weather`\ncity: a",
    ),
    *(
        '* tool: "get_weather"\n\t"city": a',
        "name: get_weather\r\narguments:\r\n  city: Paris",
        "tool: get_weather\ncity:\n  a",
    ),
    *("name: get_weather\nid: 1\nthought: I look.\nargs:\n  days: 1\n  city: a", "tool: get_weather\ninput: Paris"),
    *("Function: get_weather\nParameters:\n- city: a\n- days: 1", "**Tool:** get_weather\n**Args:**\n- `city`: a"),
    "tool: functions.Get-Weather\nparams:\n  city: a\n   b\n  days: 1",
]
COMMANDS = [
    *(
        "/get_weather city=Paris",
        '/get_weather city="Paris" days=3',
        "get_weather city=Paris",
        "get_weather: city=Paris",
    ),
    *("$ get_weather --city Paris", "get_weather --days=3", "> /get-weather city=a", "/Get_Weather city=a"),
    *("`get_weather city=Paris`", "- get_weather\tcity=Paris", "  * get_weather  city=Paris\r"),
]
TAGS = [
    *('<tool_call name="get_weather" city="a"/>', "<use id='1' name='get_weather' city='a'>"),
    *(
        '<x name="get_weather" days="1"/>',
        '<call tool="get_weather" city="a">',
        '<a\nfunction="get_weather"\ndays="1">',
    ),
]
MISSPELLED = [
    *(f'{{"name": "get_weather", "{key}": {{"city": "a"}}}}' for key in ("argumentz", "argument", "paramters")),
    *("{'argumnets': {'city': 'a'}, 'tool': 'get_weather'}", '{"name": "get_weather", "argumentz": "a"}'),
    '{"name": "get_weather", "id": 1, "input_": {"city": "a"}, "why": {"a": [1]}}'.replace("input_", "toolInputs"),
]
UNREADABLE = [
    *("{'tool': 'get_weather', 'city': 'a', 'args': {'city': 'b'}}", '{"name": "get_weather", "arguments": [1]}'),
    "{'tool': 'get_weather', 'args': {'city': 'a'}, 'parameters': {'city': 'b'}}",
]
"""Objects in which no dialect finds the arguments with certainty."""
NOT_CALLS = [
    *(
        "name: get_time\narguments:\n  city: Paris",
        "title: get_weather\narguments:\n  city: Paris",
        "name: now\ncity: a",
    ),
    *(
        "name: get_weather\nsummary:\n  city: Paris",
        "name: get_weather\ndescription: The weather.",
        "city: Paris\nname: a",
    ),
    *("name: get_weather\narguments:\n  town: Paris", "name: get_weather\n\ncity: Paris", "name: get_weather\nid: 1"),
    *("tool: get_weather\ninput:", "name: get_weather", "name: get_weather city\ncity: a", "name:get_weather\ncity: a"),
    *("tool: get_weather\ncity:a", "tool: get_weather\nthe city: a"),
    *(
        "get_time city=Paris",
        "get_weather town=Paris",
        "get_weather city==Paris",
        "now city=a",
        "The get_weather city=a",
    ),
    *("get_weather --town Paris", "get_weather -city Paris", "get_weather city", "city=a", "--city a", "=", "--", ":"),
    "get_weather city a=b",
    *('<input name="city" value="a"/>', '<use name="get_time" city="a">', '<x name="get_weather" town="a"/>'),
    *('<x title="get_weather" city="a"/>', "<x name=get_weather city=a>"),
    *('{"name": "get_weather", "result": {"city": "a"}}', '{"name": "get_time", "argumentz": {"city": "a"}}'),
    *('{"name": "get_weather", "argumentz": {}}', '{"title": "get_weather", "argumentz": {"city": "a"}}'),
    '{"name": "get_weather", "parameter": {"type": "object", "properties": {"city": {"type": "string"}}}}',
    *("Observation: It rains.\n/get_weather city=Paris", "observation: \n\ntool: get_weather\ncity: a"),
    *("For example:\n/get_weather city=Paris", "I cannot do that.\nname: get_weather\ncity: Paris"),
]


@pytest.mark.parametrize("text", [*MAPPINGS, *COMMANDS, *TAGS, *MISSPELLED, *UNREADABLE])
@pytest.mark.parametrize("around", ["{}", "I look it up:\n{}\n\nOne moment."])
@pytest.mark.parametrize("options", [{"format": "auto"}, {"format": "hermes", "fallback": "whole_message"}])
def test_a_call_in_no_format_is_reported(text: str, around: str, options: dict[str, Any]) -> None:
    message = around.format(text)
    response = check_chunking(message, tools=TOOLS, **options).response
    assert (response.tool_calls, response.content) == ((), message)
    (problem,) = response.problems
    assert (problem.kind, problem.raw, problem.position) == ("call_in_prose", text, around.index("{"))


@pytest.mark.parametrize("text", NOT_CALLS)
def test_other_lines_tags_and_members_are_not_reported(text: str) -> None:
    response = check_chunking(text, format="auto", tools=TOOLS).response
    assert (response.tool_calls, response.problems, response.content) == ((), (), text)


def test_a_mapping_is_reported_with_all_of_its_lines() -> None:
    text = f"{MAPPINGS[1]}\n\nThen:\n{COMMANDS[1]}\n{MAPPINGS[1]}\nDone.\n{MAPPINGS[0]}\n  and so on\nDone: yes"
    expected = [MAPPINGS[1], COMMANDS[1], MAPPINGS[1], MAPPINGS[0]]
    assert [problem.raw for problem in parse(text, tools=TOOLS).problems] == expected


@pytest.mark.parametrize("behind", ["Done: yes", "      ", "  and so on", "      \n  days: 1"])
def test_a_mapping_ends_at_a_line_of_another_or_of_none(behind: str) -> None:
    (problem,) = parse(f"{MAPPINGS[0]}\n{behind}\n", tools=TOOLS).problems
    assert problem.raw == MAPPINGS[0]


@pytest.mark.parametrize(
    "call", ['/get_weather {"city": "Paris"}', '- `/get_weather {"city": "Paris"}`', '/get_weather\n{"city": "Paris"}']
)
def test_a_command_may_have_an_object(call: str) -> None:
    (problem,) = parse(call, tools=TOOLS).problems
    assert problem.raw == call[call.index("get") : call.index("}") + 1]
    assert not parse(call.replace("/get", "/bin/get"), tools=TOOLS).problems


@pytest.mark.parametrize(
    "unit", ["name: get_weather\n", "tool: get_weather\nid: 1\n", "id: 1\n", "tool: get_weather\ncity: a\n"]
)
def test_lines_are_read_in_linear_time(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    read_member = line_calls._member

    def counted(line: str) -> tuple[str, str]:
        nonlocal reads
        reads += 1
        return read_member(line)

    monkeypatch.setattr(line_calls, "_member", counted)
    counts = []
    for number in (1000, 2000):
        reads = 0
        parse("So:\n" + unit * number, tools=TOOLS)
        counts.append(reads)
    assert 1900 <= counts[1] <= 2.1 * counts[0]
    assert counts[1] <= 8 * 2000 * unit.count("\n")


@pytest.mark.parametrize("unit", ['{"name": ', '{"argumentz": {"city": "a"}, "x": '])
def test_objects_without_an_end_are_read_in_linear_time(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned = 0
    scan = ExpressionScanner.scan

    def counted(self: ExpressionScanner, text: str, pos: int, final: bool) -> int:
        nonlocal scanned
        stop = scan(self, text, pos, final)
        scanned += stop - pos
        return stop

    monkeypatch.setattr(ExpressionScanner, "scan", counted)
    text = "So: " + unit * 2000
    parse(text, tools=TOOLS)
    assert scanned < 20 * len(text)


# -- a tool's name and words -------------------------------------------------------------------------------------------

WORDS = [
    {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}},
    {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}, "required": ["city"]}},
    {"name": "stop", "parameters": {"type": "object", "properties": {}}},
]


@pytest.mark.parametrize(
    "line",
    [
        *("/search tea", "/search green tea from Japan", '/search "tea"', "!search tea", "/get_weather Paris", "/stop"),
        *(
            "$ /search tea",
            "`/search tea`",
            "> /search tea",
            "Run: /search tea",
            "Action 1: Search[tea]",
            "/Search tea",
        ),
        *(
            "search[green tea]",
            "Search[tea]",
            "search 'tea'",
            'search "green tea"',
            "[search: tea]",
            '[[search "tea"]]',
        ),
        *("Action: search[tea]", "**/search tea**"),
    ],
)
def test_a_line_of_a_name_and_words_is_reported(line: str) -> None:
    for text, at in ((line, 0), (f"I look it up.\n{line}\nOne moment.", 14)):
        response = check_chunking(text, format="auto", tools=WORDS).response
        assert (response.tool_calls, response.content) == ((), text)
        assert [(problem.kind, problem.position, problem.raw) for problem in response.problems] == [
            ("call_in_prose", at, line)
        ]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "/search/tea",
            "/search?q=tea",
            "/find tea",
            "/get_weather",
            "/stop now",
            "GET /search tea",
            "See /search tea",
        ),
        *("/search <query>", "/search [query]", "/search - finds pages", "/search: finds pages", "/search | find"),
        *("search[0]", "search[]", "[search results]", "[search: tea](http://a.b)", "search tea", "search: tea"),
        *("search 'n' replace", "[stop: now]", "stop 'now'", "/usr/bin search", "and search [tea]"),
    ],
)
def test_other_lines_with_its_name_are_not(line: str) -> None:
    assert parse(f"So:\n{line}\n", format="auto", tools=WORDS).problems == ()


@pytest.mark.parametrize(
    "text", ["search:\n  query: tea", "search\nquery: tea\n", "```yaml\nSearch:\n  Query: tea\n```"]
)
def test_a_mapping_below_the_name_of_its_tool_is_reported_where_the_message_begins_with_it(text: str) -> None:
    assert [problem.kind for problem in check_chunking(text, format="auto", tools=WORDS).response.problems] == [
        "call_in_prose"
    ]
    assert parse(f"These are the tools:\n{text}", format="auto", tools=WORDS).problems == ()
    assert parse(text.replace("uery", "uestion"), format="auto", tools=WORDS).problems == ()


def test_a_label_may_have_another_case_than_the_parameter() -> None:
    assert len(parse("Tool: search\nQuery: tea", format="auto", tools=WORDS).problems) == 1
