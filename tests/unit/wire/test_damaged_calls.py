"""A call whose markup has a mistake is reported amid other text, and a text that only names its tool is not."""

from __future__ import annotations

import pytest
from tests.property.laws import check_chunking

from toolwire import ParsedResponse
from toolwire.wire import damaged_calls
from toolwire.wire.damaged_calls import misspelled_in
from toolwire.wire.prepared_tools import prepared_tools

TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
    {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}},
    {"name": "cut", "parameters": {"type": "object", "properties": {"line": {"type": "integer"}}}},
]
AROUND = ("I look it up.\n{}\nOne moment.", "I look it up: {}", "{}\n\nOne moment.")

DAMAGED = (
    # a quote, a bracket or a sign is missing, or there is one too many
    """{"name": "search",x"arguments": {"query": "tea"}}""",
    """{"name": "get_weather", "arguments": {"city": "Paris", "days":)3}}""",
    """{"name: "get_weather", "arguments": {"city": "Paris", "days" 3}}""",
    """[{"name": "search", "arguments": {"query" "tea"}}]""",
    """[{"name": "search", "arguments": {"query": :"tea"}}]""",
    """{"name": "search", "arguments": {"query": tea"}}""",
    """{"name": "search", "arguments": {"query":  tea"}}""",
    """{"name": "search", "arguments": {"query": ("tea"}}""",
    """{"search": {"query: "tea"}}""",
    """get_weather(city='Paris, days=3)""",
    """get_weather(city"="Paris", days=3)""",
    """search(=query'tea')""",
    """<code>\nsearch((query="tea")\n</code>""",
    """get_weather\n{"c]ity": "Paris", "days": 3}""",
    """>>>search\n{"query": "tea"{}""",
    """[TOOL_CLLS]get_weather[ARGS]{"city": "Paris"}""",
    # a word of the markup is misspelled
    """{"name": "get_weather", "argumentz": {"city": "a"}""",
    """[{"name": ["get_weather"], "argumentz": {"city": "a"}}]""",
    """Action: search\nActin Input: {"query": "tea"}""",
    """{"tool": "search", "parameterss": {"query": "tea"}""",
    """<|channl|>commentary to=functions.search <|constrain|>json<|message|>{"query": "tea"}<|call|>""",
    """<tol_call>search\n<arg_key>query</arg_key>\n<arg_value>tea</arg_value>\n</tool_call>""",
    """<funcion=search>\n<parameter=query>\ntea\n</parameter>\n</function>""",
    """<|tool_call:s}tart|>search\n<|tool_arg:start|>query<|tool_arg:value|>tea<|tool_arg:end|>\n<|tool_call:end|>""",
    """<|start|>assistant |to=search<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="query">tea</""",
    """<|start|>assistant to=search<|chanel|>commentary<|constrain|>json<|message|>{"query": "tea"}<|call|>""",
    # the name of the tool is misspelled
    """{"name": "get_wetaher", "arguments": {"city": "Paris"}}""",
    """{"name": "get_weath/r", "arguments": {"city": "Paris"}}""",
    """{"name": "get_weathe", "arguments": {"city": "Paris"}}""",
    """{"name": "gget_weather", "arguments": {"city": "Paris"}}""",
    """{"name": "get,_weather", "arguments": {"city": "Paris"}}""",
    """{"name": "et_weather", "arguments": {"city": "Paris"}}""",
    """get_weatherr(days=-3)""",
    """{"name": "cut-", "arguments": {"line": 3}}""",
    """sea\nrch\n{"query": ["tea"]}""",
    """<get_weahter>\n<city>Paris</city>\n</get_weather>""",
)


def read(text: str) -> ParsedResponse:
    return check_chunking(text, format="auto", tools=TOOLS).response


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_damaged_call_amid_other_text_is_reported(damaged: str, around: str) -> None:
    response = read(around.format(damaged))
    assert response.tool_calls == ()
    assert {problem.kind for problem in response.problems} <= {"call_in_prose", "malformed", "truncated"}
    assert response.problems


def test_the_problem_is_at_the_name_and_quotes_the_rest_of_the_line() -> None:
    text = "I look it up.\nget_weather(city='Paris, days=3) now\nOne moment."
    (problem,) = read(text).problems
    assert (problem.kind, problem.position) == ("call_in_prose", text.index("get_weather"))
    assert problem.raw == "get_weather(city='Paris, days=3) now"
    (problem,) = read(f"So: get_weather(city='Paris, days=3{'x' * 1000}").problems
    assert len(problem.raw) == len("get_weather(city='") + 400


@pytest.mark.parametrize(
    "text",
    [
        # prose about the tool
        'I need get_weather and a city: "Paris" or "Rome"?',
        'The weather (get_weather) needs the "city" in quotes.',
        "get_weather: city is 'the city'.",
        'So: search, query: "tea" (mine)',
        'get_weather [for one city: "Paris" is the default',
        'A search of mine had (its "query" was "tea").',
        'search, then the list of results: {"query": "tea"}',
        'The search results are: {"query": "tea"}',
        'Search: {"queries": "tea"}',
        # its description
        "get_weather(city: str, days: int = 3)",
        "get_weather(city=city)",
        '{"get_weather": {"city": {"type": "string"}',
        '{"name": "get_weather", "arguments": {"city": "Paris"},\n"description": "Return the',
        '{"get_weather": {"city": { "description": "The city."}',
        # an example, a definition, a refusal
        'get_weather(city="Paris, ...)',
        "get_weather(city='Paris, …",
        "def get_weather(city='Paris, days=3):",
        "I cannot run get_weather(city='Paris, days=3).",
        "For example: get_weather(city='Paris, days=3)",
        # a word of a sentence, a file, another member, a placeholder
        'It is called get_weathers {"city": "Paris"',
        'See get_weather {"city": "Pa',
        "/bin/get_weather {'city': 'Paris'",
        '{"title": "get_weather", "arguments": {"city": "Paris"}',
        "search <query>",
        # two mistakes, and other tools and names
        'get_weathe({"city" "Paris")',
        'find_weather({"city: "Paris")',
        'got_wether({"city: "Paris"}',
        'get_weatherman({"city: "Paris"}',
        'cuts({"line": 3',
        'search(city="Paris',
        'research {"query": tea"}',
        "get_weather in one message, and in another, after a hundred and twenty characters of something else entirely, "
        'with words: {"city": "Paris"',
        '{"city": "Paris", "days": 3}',
        "http://example.org/search?query='tea'",
    ],
)
def test_a_mention_is_not_reported(text: str) -> None:
    response = read(f"So.\n{text}\nOne moment.")
    assert (response.tool_calls, response.problems) == ((), ())


def test_a_damaged_call_of_a_tool_that_is_called_otherwise_is_not_reported() -> None:
    call = """<tool_call>{"name": "%s", "arguments": {}}</tool_call>"""
    damaged = "search(=query'tea')"
    assert read(f"I look: {damaged}\n{call % 'search'}").problems == ()
    assert [problem.raw for problem in read(f"I look: {damaged}\n{call % 'get_weather'}").problems] == [damaged]


def test_the_last_name_before_a_parameter_is_that_of_its_tool() -> None:
    assert [problem.raw for problem in read('So: get_weather, search({"query: "tea"}').problems] == [
        'search({"query: "tea"}'
    ]
    assert read('So: search(get_weather({"query: "tea"}').problems == ()


@pytest.mark.parametrize(
    ("written", "is_near"),
    [
        *((name, True) for name in ("gt_weather", "get_weathe", "get_weatherr", "get_wetaher")),
        *((name, True) for name in ("xet_weather", "et_weather", "get-weather", "xget_weather", "get_weatehr")),
        *((name, True) for name in ("get_ weather", "get_weathre", "egt_weather", "get_weather_", "get_wather")),
        *((name, False) for name in ("gt_weathr", "get_weath", "get_weatherrr", "weather", "get", "teg_weather")),
        *((name, False) for name in ("get_weathers", "at_weather")[1:]),
        ("", False),
    ],
)
def test_a_name_is_near_if_it_has_one_mistake(written: str, is_near: bool) -> None:
    for before, behind in (("", ""), ("{'", "': {"), ("a ", " b")):
        place = misspelled_in(before + written + behind, "get_weather")
        assert (place is not None) == is_near
        if place is not None:
            assert (before + written + behind)[slice(*place)].strip() in (written, written.rstrip("_"))


@pytest.mark.parametrize("text", ["get_weatherx1", "1get_weather2", "aget_weatherb", "get_weathersx"])
def test_a_part_of_a_longer_word_is_not_a_name(text: str) -> None:
    assert misspelled_in(text, "get_weather") is None


def test_only_so_many_parameters_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs a search before it, and a program may have thousands of them."""
    tools = prepared_tools(TOOLS)
    looked: list[str] = []
    search = damaged_calls._name

    def counted(before: str, key: str, known: object, *, misspelled: bool) -> tuple[str, int, int]:
        looked.append(before)
        return search(before, key, tools, misspelled=misspelled)

    monkeypatch.setattr(damaged_calls, "_name", counted)
    assert list(damaged_calls.damaged_calls('{"city": "a", ' * 2000, tools)) == []
    assert len(looked) == 500
    assert max(map(len, looked)) == 120


def test_only_so_many_tools_are_compared_with_a_misspelled_name() -> None:
    many = [{"name": f"tool_number_{at}", "parameters": {"properties": {"city": {}}}} for at in range(1000)]
    tools = prepared_tools([*many, TOOLS[0]])
    assert list(damaged_calls.damaged_calls('get_wetaher({"city": "a"}', tools)) == []
    assert list(damaged_calls.damaged_calls('tool_numbe_7({"city": "a"}', tools)) != []
