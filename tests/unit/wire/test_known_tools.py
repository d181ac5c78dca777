"""Calls to known tools without the markers of a format: dialects, what stands around calls, and what is no call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests import streams

from toolwire import StreamParser, collect, parse
from toolwire.messages import ParsedResponse, ToolCall
from toolwire.tools import definitions
from toolwire.wire.known_tools import KnownToolsReader
from toolwire.wire.prepared_tools import KnownTools

STRING = {"type": "string"}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "search",
        "parameters": {
            "type": "object",
            "properties": {"query": STRING, "limit": {"type": "integer"}, "tags": {"type": "array"}},
            "required": ["query"],
        },
    },
    {"name": "files.read_file", "parameters": {"type": "object", "properties": {"path": STRING}, "required": ["path"]}},
    {"name": "get_time", "parameters": {"type": "object", "properties": {}}},
    {
        "name": "move",
        "parameters": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
    },
]
A = ("search", {"query": "a"})
B = ("search", {"query": "b", "limit": 2})


def read(text: str, size: int = 0, **options: Any) -> ParsedResponse:
    parser = StreamParser(format="auto", tools=TOOLS, **options)
    size = size or max(1, len(text))
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    return collect([*events, *parser.finish()])


def calls(response: ParsedResponse) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in response.tool_calls]


def as_hermes(text: str, size: int = 0) -> ParsedResponse:
    """Read a message in a format that has other ways to write calls."""
    return streams.parsed(text, size, format="hermes", tools=TOOLS, fallback="whole_message")


def known_tools_reader() -> KnownToolsReader:
    return KnownToolsReader(KnownTools(definitions(TOOLS)))


READ = [
    ('search(query="a")', [A]),
    ('json\n{"tool": "search", "args": {"query": "a"}}', [A]),
    ("tool_code\nprint(search(query='a'))", [A]),
    ("assistant\n\nsearch(query='a')", [A]),
    ("py\nsearch(query='a')", [A]),
    ("javascript\nsearch({query: 'a'})", [A]),
    ('tool_call\n{"tool": "search", "args": {"query": "a"}}', [A]),
    ("'''\nsearch(query='a')\n'''", [A]),
    ('"""\nsearch(query="a")\n"""', [A]),
    ("<|start_header_id|>assistant<|end_header_id|>\n\nsearch(query='a')<|eot_id|>", [A]),
    ("**Tool call:** `search(query='a')`", [A]),
    ("**Tool:** search\n**Arguments:** {'query': 'a'}", [A]),
    ('```search\n{"query": "a"}\n```', [A]),
    ("```\nsearch(query='a')\n```Action:\nsearch(query='b', limit=2)", [A, B]),
    ("<execute>\nsearch(query='a')\n</execute>", [A]),
    ("<code>\nsearch(query='a')\n</code>", [A]),
    ("const found = await search({query: 'a'});", [A]),
    ("search(query='a'), search(query='b', limit=2)", [A, B]),
    ("search(query='a'); search(query='b', limit=2);", [A, B]),
    ("search(query='a')\nsearch(query='b', limit=2)", [A, B]),
    ("print(search(query='a'))", [A]),
    ("return search(query='a')", [A]),
    ("let found = search(query='a')", [A]),
    ("var found = search(query='a');", [A]),
    ("result = search(query='a')", [A]),
    ("tool_code = search(query='a')", [A]),
    ("await search(query='a')", [A]),
    ("default_api.search(query='a')", [A]),
    ("functions.search(query='a')", [A]),
    ("Search(query='a')", [A]),
    ("'search'(query='a')", None),
    ("['search'(query='a')]", [A]),
    ("read_file(path='x')", [("files.read_file", {"path": "x"})]),
    ("files_read_file(path='x')", [("files.read_file", {"path": "x"})]),
    ("files.read\\_file(path='x')", [("files.read_file", {"path": "x"})]),
    ("get_time()", [("get_time", {})]),
    ("```python\n[search(query='a')]\n```", [A]),
    ("```\nsearch(query='a')\n```", [A]),
    ("~~~\nsearch(query='a')\n~~~", [A]),
    ("```python\n        search(query='a')\n        ```", [A]),
    ("```json\n[{'name': 'search', 'arguments': {'query': 'a'}}]\n```", [A]),
    ("`search(query='a')`", [A]),
    ("- search(query='a')\n- search(query='b', limit=2)", [A, B]),
    ("1. search(query='a')\n2. search(query='b', limit=2)", [A, B]),
    ("Tool call: search(query='a')", [A]),
    ("**Actions:** search(query='a')", [A]),
    ("<|im_start|>search(query='a')<|im_end|>", [A]),
    ("['search(query=\"a\")', 'search(query=\"b\", limit=2)']", [A, B]),
    ('["search(query=\\"a\\")"]', [A]),
    ('["search(query="a")"]', [A]),
    ("['search(query=a)']", [A]),
    ("[{'name': 'search', 'arguments': {'query': 'a', 'tags': (1, 2)}}]", [("search", {"query": "a", "tags": [1, 2]})]),
    ('{"search": {"query": "a"}}', [A]),
    ('[{"search": {"query": "a"}}, {"get_time": {}}]', [A, ("get_time", {})]),
    ('{"function": "search", "params": {"query": "a"}}', [A]),
    ('{"action": "search", "action_input": {"query": "a"}}', [A]),
    ('{"action": "search", "action_input": "a"}', [A]),
    ('{"tool_name": "search", "kwargs": {"query": "a"}}', [A]),
    ('{"type": "function", "function": {"name": "search", "arguments": "{\\"query\\": \\"a\\"}"}}', [A]),
    ('{"name": "search", "query": "a"}', [A]),
    ('search\n{"query": "a"}', [A]),
    ('search {"query": "a"}', [A]),
    ('search\n```json\n{"query": "a"}\n```', [A]),
    ('Action: search\nAction Input: {"query": "a"}', [A]),
    ('search({"query": "a"})', [A]),
    ("search(**{'query': 'a'})", [A]),
    ("search('a')", [A]),
    (r"search(r'\d\n')", [("search", {"query": r"\d\n"})]),
    ("move(1, 2)", [("move", {"x": 1, "y": 2})]),
    ("search(query=get_time())", [("search", {"query": "get_time()"})]),
    ("search(query=x + 'b', limit=2)", [("search", {"query": "x + 'b'", "limit": 2})]),
    ("search(query=New York, limit=2)", [("search", {"query": "New York", "limit": 2})]),
    ("search(query=a == b, limit=2)", [("search", {"query": "a == b", "limit": 2})]),
    ("search(query='a', # why\n limit='2')", [("search", {"query": "a", "limit": 2})]),
]
NOT_READ = [
    "I would call search(query='a').",
    "Here it is: search(query='a')",
    "Do this:\n```python\nsearch(query='a')\n```",
    "search(query='a') is what I would call.",
    "search is a good tool",
    "search",
    "search(query=",
    "search(query='a', query='b')",
    "find(query='a')",
    "[find(query='a')]",
    "search(limit=1, 'a')",
    "move(1)",
    "search {x}",
    "search\n{1, 2}",
    "search(query='a' limit=2)",
    "search(query=a limit=2)",
    "search(query=a; limit=2)",
    "search(query=\ud83d)",
    "search(query=fr'x')",
    "search(query='x' 'y')",
    "search(query=" + "[" * 100 + "]" * 100 + ")",
    "move(x, y)",
    "search(query)",
    "search(query=query)",
    '{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}',
    "{'function': 'get_time', 'params': {'type': 'object'}}",
    "search(*x)",
    "search(query=f'a')",
    "print(search)",
    "print(print(search(query='a')))",
    '{"temperature": 21}',
    '["a", "b"]',
    "[1, 2, 3]",
    '{"search": {"query": "a"}, "mood": {}}',
    "search(query=[1, 2)",
    "search(query={'a': 1, 2})",
    "```python\nprint(1)\n```",
    "search(query='a')\n\nSorry, I cannot run that.",
    "search(query='a')\n\nNone of the given functions fits.",
    "<div>search(query='a')</div>",
    "x == search(query='a')",
]


@pytest.mark.parametrize(("text", "expected"), [(text, expected) for text, expected in READ if expected])
def test_a_message_of_calls_is_read_in_any_pieces(text: str, expected: list[Any]) -> None:
    whole = read(text)
    assert calls(whole) == expected
    assert (whole.content.strip(), whole.problems, whole.finish_reason) == ("", (), "tool_calls")
    for size in (1, 2, 3, 7):
        again = read(text, size)
        assert (again.tool_calls, again.content) == (whole.tool_calls, whole.content)


AMID_PROSE = [
    ("I search now: search(query='a')", [A], "I search now: "),
    ("Let me do this:\n```python\nsearch(query='a')\n```\nOne moment.", [A], "Let me do this:\nOne moment."),
    ("Now {'name': 'search', 'arguments': {'query': 'a'}} and\nget_time()!", [A, ("get_time", {})], "Now  and\n!"),
    ("First the search.\n\nsearch\n{'query': 'a'}", [A], "First the search.\n\n"),
    ("On it! <b>['search(query=\"a\")']</b>", [A], "On it! <b></b>"),
]


def test_equal_calls_amid_prose_have_their_own_positions() -> None:
    text = "<think>search(query='a')</think>So search(query='a') and search(query='a') now."
    shown = read(text).problems
    assert [problem.position for problem in shown] == [text.index("search", 30), text.rindex("search")]


ONLY_SHOWN = [
    "For example, search(query='a') finds it.",
    "To call it, write search(query='a').",
    "I cannot do that. It would have been search(query='a').",
    "search(query='a') it is.\n\n" + "Well. " * 200 + "Sorry, none of the tools fits.",
]


@pytest.mark.parametrize(("text", "expected", "content"), AMID_PROSE)
def test_a_call_amid_prose_is_read_only_if_asked(text: str, expected: list[Any], content: str) -> None:
    for size in (0, 1, 3):
        response = read(text, size, fallback="embedded")
        assert (calls(response), response.content, response.problems) == (expected, content, ())
        assert {call.confidence for call in response.tool_calls} == {0.4}
        shown = read(text, size)
        assert (calls(shown), shown.content) == ([], text)
        assert {problem.kind for problem in shown.problems} == {"call_in_prose"}
        assert all(text[p.position :].startswith(p.raw) for p in shown.problems)


@pytest.mark.parametrize("text", ONLY_SHOWN)
def test_a_call_that_the_text_declines_or_explains_is_neither_read_nor_a_problem(text: str) -> None:
    for level in ("whole_message", "embedded"):
        response = read(text, fallback=level)
        assert (calls(response), response.content, response.problems) == ([], text, ())


@pytest.mark.parametrize("text", NOT_READ)
def test_any_other_message_is_content_in_any_pieces(text: str) -> None:
    for size in (0, 1, 2, 3, 7):
        response = read(text, size)
        assert (calls(response), response.content) == ([], text)


@pytest.mark.parametrize(("text", "expected"), [(text, expected) for text, expected in READ if expected])
def test_no_beginning_of_a_message_has_other_calls(text: str, expected: list[Any]) -> None:
    for cut in range(len(text)):
        response = read(text[:cut])
        assert all(call in expected for call in calls(response)), text[:cut]


def test_the_dialect_and_the_repairs_are_recorded() -> None:
    (call,) = read("functions.search('a')").tool_calls
    assert (call.format, call.confidence, call.raw) == ("python_calls", 0.9, "functions.search('a')")
    assert call.repairs == ("name_resolved", "positional", "fallback")


def test_text_behind_calls_lowers_the_confidence() -> None:
    for text in ("search(query='a')\n\nThis finds it.", "```\nsearch(query='a')\n```\nThis finds it."):
        response = read(text)
        assert calls(response) == [A]
        assert (response.tool_calls[0].confidence, response.content) == (0.6, "This finds it.")


@pytest.mark.parametrize(
    "label",
    [
        *("Tool:", "Tools:", "tool:", "Function:", "functions:", "Call:", "calls:", "Action:", "actions:", "Answer:"),
        *("Output:", "Code:", "Tool call:", "tool_call:", "tool_calls:", "Function call:", "function_call:"),
        *("function-calls:", "tool_code:", "API call:", "Python code:", "Next action:", "Final answer:", "The answer:"),
        *("the function to call:", "The tools to call:", "The final output:", "The next tool:", "Action**:", "Call` :"),
        *("Action** :", "tool-call:", "TOOL_CALL :"),
    ],
)
def test_a_label_may_be_before_calls(label: str) -> None:
    for size in (0, 1, 2, 3):
        response = as_hermes(f"{label} search(query='a')", size)
        assert (calls(response), response.content) == ([A], "")


@pytest.mark.parametrize(
    "token",
    [
        *("<|im_start|>", "<|python_tag|>", "<｜end of sentence｜>", f"<|{'x' * 76}|>", "<s>", "</s>", "<S>"),
        *("<begin_of_text>", "</end_of_turn>", "<start_of_turn>", "<end_of_turn>", '<?xml version="1.0"?>'),
        *("<tool_code>", "</tool_call>", "<functions>", "<my-function-call>", "<actions>", "<request>", "</response>"),
        *("<answer>", "<output>", "<ns:tool>"),
    ],
)
def test_a_token_that_announces_calls_may_be_around_them(token: str) -> None:
    for size in (0, 1, 2, 3):
        response = streams.parsed(
            f"{token}search(query='a'){token}\n", size, format="mistral", tools=TOOLS, fallback="whole_message"
        )
        assert (calls(response), response.content) == ([A], "")


READ_AROUND = [
    *("- {}", "* {}", "• {}", "1. {}", "12) {}", "123. {}", "-\t{}"),
    *("x={}", "x ={}", "x    =  {}", "search = {}", "return {}", "return\n{}", "await {}", "return await {}"),
    *('"""\n{}\n"""', "'''\n{}\n'''", "``{}``", "```{}```", "```python {}```", "```python\n```\n{}", ",;{},,;"),
    *("~~~\n{}\n~~~", "```c++\n{}\n```", "```\n{}\n```\n```\n", "````\n{}\n````", "({})", "print({})"),
    *('"""{}"""', "'''{}'''", '"{}"', "python\r\n{}", "python    \n{}", f"Tool call{' ' * 70}:{{}}"),
]
NOT_READ_AROUND = [
    *("-{}", "1.{}", "1234. {}", "1 {}", "x     ={}", "x == {}", "return({})", "returns {}", "x {}", "x: {}", "<"),
    *("<b>{}", "<|x\n|>{}", f"<|{'x' * 77}|>{{}}", "< tool>{}", "{}<", "The: {}", "api: {}", "call {}", "::{}", "'''"),
    *("Next tool to call it: {}", "tool call is: {}", "{} and", "{}; and", "{}.", "{} <b>", "'''{}", "'' {}"),
    *("Tool call\n: {}", "The\ntool: {}", "Hello: {}", f"Tool call{' ' * 71}:{{}}", f"**Tool call{' ' * 69}:**{{}}"),
    *("python     \n{}", '<?xml version="1.0"\n?>{}'),
]


@pytest.mark.parametrize("around", READ_AROUND)
def test_this_may_be_around_calls(around: str) -> None:
    for size in (0, 1, 2, 3):
        response = as_hermes(around.replace("{}", "search(query='a')"), size)
        assert (calls(response), response.content, response.tool_calls[0].confidence) == ([A], "", 0.9)


@pytest.mark.parametrize("around", NOT_READ_AROUND)
def test_this_around_calls_makes_them_content(around: str) -> None:
    text = around.replace("{}", "search(query='a')")
    for size in (0, 1, 2, 3):
        response = as_hermes(text, size)
        assert (calls(response), response.content) == ([], text)


@pytest.mark.parametrize(
    "between",
    [
        *(" ", "\n", "\n\n", ": ", ":\n", ", ", "` ", "`:\n", "**\n", "'''\n", '": ', "\nArguments: ", "\nInput: "),
        *("\nAction Input: ", "\naction_inputs: ", "\nparameters = ", "\nparams**: ", "\nargs:\n", "\n```json\n"),
        *("\n```\n", ":\n```\n", "\nArguments:\n```json\n", " " * 79, "\r\n", "\r\n\r\n", " ```json\n", ":3 ```\n"),
        *(" Arguments: ", " **Action Input:** ", " action_params=", ", parameters*` : ", "\n**args**: ", "\n*input:"),
    ],
)
def test_an_object_may_follow_a_name(between: str) -> None:
    for size in (0, 1, 2, 3):
        text = f"search{between}{{'query': 'a'}}"
        response = as_hermes(text, size)
        assert (calls(response), response.content) == ([A], "")
        assert response.tool_calls[0].raw == text


def test_the_text_of_a_call_begins_at_its_name_even_if_the_object_repeats_it() -> None:
    text = "search {'query': 'search search'}"
    for size in (0, 1, 3):
        assert [call.raw for call in as_hermes(f"Tool: {text}\n{text}", size).tool_calls] == [text, text]


@pytest.mark.parametrize("between", [" " * 80, " finds ", ". ", " (", "\nSearch: ", ": so ", "::", "\n[", "() ", " = "])
def test_an_object_behind_something_else_does_not_belong_to_the_name(between: str) -> None:
    text = f"search{between}{{'query': 'a'}}"
    for size in (0, 1, 2, 3):
        response = as_hermes(text, size)
        assert (calls(response), response.content) == ([], text)


@pytest.mark.parametrize(
    ("text", "behind"),
    [
        ("{}\nThis finds it.", "This finds it."),
        ("{};\n\nThis finds it.", "This finds it."),
        ("```\n{}\n``` This finds it.", "This finds it."),
        ("{}```\nThis finds it.", "This finds it."),
        ("{}\nfind(query='a')", "find(query='a')"),
        ("{}\nsearch", "search"),
        ("{}\nsearch {", "search {"),
        ("{}\n[1, 2", "[1, 2"),
        ("{}\n<b>", "<b>"),
        ("{}\n```\nprint(1)\n```", "print(1)\n```"),
        ("{}\n" + "." * 396 + "Sorry.", "." * 396 + "Sorry."),
    ],
)
def test_text_on_a_line_of_its_own_may_follow_calls(text: str, behind: str) -> None:
    for size in (0, 1, 2, 3):
        response = as_hermes(text.replace("{}", "search(query='a')"), size)
        assert (calls(response), response.content) == ([A], behind)
        assert response.tool_calls[0].confidence == 0.6


@pytest.mark.parametrize("refusal", ["Sorry, I cannot run that.", "None of the functions fits.", "." * 394 + " Sorry."])
def test_calls_before_a_refusal_are_content(refusal: str) -> None:
    for text in (f"search(query='a')\n{refusal}", f"```\nsearch(query='a')\n```\n{refusal}"):
        for size in (0, 1, 2, 3):
            response = as_hermes(text, size)
            assert (calls(response), response.content, response.problems) == ([], text, ())


@pytest.mark.parametrize(
    "behind",
    ["1.", "12)", "*", "**", "**Tool", '"', "''", "'''x", "Tool cal", "x", "return", "json", "<tool", "[TOOL", "-",
     "search", "search:", "[1, 2", "{", '"a'],
)  # fmt: skip
def test_text_that_never_becomes_a_call_stays_in_the_content(behind: str) -> None:
    for size in (0, 1):
        response = as_hermes(f"search(query='a')\n{behind}", size)
        assert (calls(response), response.content) == ([A], behind)
        text = f"search(query='a') {behind}"
        if behind not in "**-":  # bullets may be anywhere
            assert (calls(as_hermes(text, size)), as_hermes(text, size).content) == ([], text)


def test_prose_is_passed_on_at_its_first_word() -> None:
    parser = StreamParser(format="auto", tools=TOOLS)
    assert [len(parser.feed(piece)) > 0 for piece in ("This", " ", "is")] == [False, False, True]
    for text in ("The weather is fine", "Searching for", "**Bold**", "1) One thing"):
        parser = StreamParser(format="auto", tools=TOOLS)
        assert sum(len(event.text) for event in parser.feed(text)) >= len(text) - 6, text  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["a" * 400, "<" + "a" * 100, "<a\n", "**bold", "**tool and", "'a", "'''a"])
def test_what_is_too_long_for_a_name_or_a_token_is_passed_on(text: str) -> None:
    reader = known_tools_reader()
    for character in text:
        reader.feed(character)
    assert not reader.alive or text[0] == "'"


def test_a_word_is_passed_on_once_it_cannot_be_assigned_to() -> None:
    for text, passes in (
        ("x", False),
        ("x  ", False),
        ("x    =", False),
        ("x" + " " * 6, False),
        ("x" + " " * 7, True),
        ("x ==", False),
        ("x ==x", True),
        ("x y", True),
    ):
        reader = known_tools_reader()
        for character in text:
            reader.feed(character)
        assert reader.alive != passes, text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("find(query='a')", "'find' is not a known tool"),
        ("{}", "an expression is not a call to a known tool"),
        ("search(query='a' 'b')", "a comma is missing between two strings"),
        ("Hello there", ""),
    ],
)
def test_the_reason_is_that_of_the_expression(text: str, error: str) -> None:
    reader = known_tools_reader()
    reader.feed(text)
    assert (reader.alive, reader.error, reader.finish()) == (False, error, None)


def test_the_reader_is_in_a_call_between_its_brackets() -> None:
    reader = known_tools_reader()
    states = []
    for piece in ("Tool: ", "search", "(query=", "'(a)'", ")", "; ", "[", "get_time()", "]"):
        reader.feed(piece)
        states.append((reader.is_in_call, reader.has_calls))
    assert [in_call for in_call, _ in states] == [False, False, True, True, False, False, True, True, False]
    assert [has_calls for _, has_calls in states] == [False] * 4 + [True] * 5


def test_a_call_in_which_the_message_ends_is_a_problem() -> None:
    response = read("search(query='a')\nsearch(query='b")
    assert calls(response) == [A]
    assert response.content == "search(query='b"
    assert [problem.kind for problem in response.problems] == ["truncated"]


@pytest.mark.parametrize(
    "inner",
    [
        '<tool_call>{"name": "get_time", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "get_time", "arguments": {}}',
        "<tool_call>search(query=1)",
        "<tool_call>get_time</tool_call>",
        "<get_time/>",
        "[get_time()]",
        "<invoke name='get_time'></invoke>",
    ],
)
def test_a_call_inside_an_argument_is_part_of_the_argument(inner: str) -> None:
    text = f"search(query={inner!r}); search(query='b', limit=2)"
    for size in (0, 1, 3):
        response = read(text, size)
        assert calls(response) == [("search", {"query": inner}), B]
        assert (response.content, response.problems) == ("", ())
    for cut in range(len(text) - 1):
        response = read(text[:cut])
        assert all(name == "search" for name, _ in calls(response)), text[:cut]
        assert response.finish_reason == ("tool_calls" if response.tool_calls else "stop")
    response = read(f"search(query={inner!r}) finds it.")
    assert (calls(response), response.content) == ([], f"search(query={inner!r}) finds it.")


def test_a_named_format_reads_them_only_if_asked() -> None:
    assert not parse("search(query='a')", format="hermes", tools=TOOLS).tool_calls
    assert parse("search(query='a')", format="hermes", tools=TOOLS, fallback="whole_message").tool_calls
    assert not read("search(query='a')", fallback="none").tool_calls
    assert not read("search(query='a')", repair="none").tool_calls
    assert not read("search(query='a')", tool_choice="none").tool_calls


def test_a_call_between_markers_wins() -> None:
    text = 'search(query=\'b\')\n<tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call>'
    response = read(text)
    assert (calls(response), response.content) == ([A], "search(query='b')\n")


def test_only_the_calls_of_one_fence_are_read_in_a_format_of_its_own() -> None:
    block = '<function_calls><invoke name="search"><parameter name="query">a</parameter></invoke></function_calls>'
    assert calls(read(f"```xml\n{block}\n```")) == [A]
    assert calls(read(f"```xml\n{block}\nand\n```")) == []
    assert calls(read(f"So:\n```xml\n{block}\n```")) == []


@pytest.mark.parametrize(
    "tag",
    ["tool_response", "tool_result", "function_results", "tool_output", "|tool_response|", "｜tool▁output▁begin｜"],
)
@pytest.mark.parametrize("fallback", ["whole_message", "embedded"])
def test_a_call_in_the_tags_of_a_result_is_not_made(tag: str, fallback: str) -> None:
    for call in ('search(query="a")', '{"name": "search", "arguments": {"query": "a"}}'):
        text = f"<{tag}>\n{call}\n</{tag}>"
        for size in (0, 1, 7):
            parser = StreamParser(format="hermes", tools=TOOLS, fallback=fallback)
            step = size or len(text)
            events = [event for at in range(0, len(text), step) for event in parser.feed(text[at : at + step])]
            result = collect([*events, *parser.finish()])
            assert (result.tool_calls, result.content) == ((), text)


@pytest.mark.parametrize("tag", ["tool_call", "function_call", "response", "output"])
def test_a_call_in_other_tags_is_made(tag: str) -> None:
    assert [(call.name, call.arguments) for call in read(f"<{tag}>search(query='a')</{tag}>").tool_calls] == [A]


def test_a_call_before_the_tags_of_a_result_is_made() -> None:
    text = 'Now search(query="a")\n<tool_response>5</tool_response>'
    calls = parse(text, format="hermes", tools=TOOLS, fallback="embedded").tool_calls
    assert [(call.name, call.arguments) for call in calls] == [A]


@pytest.mark.parametrize("text", ["~~get_time()~~", "~get_time()~", "~~search(query='a')~~\nget_time()"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_what_is_struck_out_is_not_called(text: str, size: int) -> None:
    read = streams.parsed(text, size, tools=TOOLS)
    assert (read.tool_calls, read.content) == ((), text)


@pytest.mark.parametrize(
    ("text", "broken", "why"),
    [
        ('search(query="say "x"")', 'search(query="say "x"', "a comma is missing between two strings"),
        ('search(query="say "is it"")', 'search(query="say "', "a quote inside a string is not escaped"),
        ('search(query="a" limit="3")', 'search(query="a" limit', "a comma is missing before an argument"),
        ('[search(query="a" limit_2 = 3)]', '[search(query="a" limit_2 ', "a comma is missing before an argument"),
        ("search(query=)", "search(query=", "a value is missing"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_call_without_markers_that_cannot_be_read_is_a_problem(text: str, broken: str, why: str, size: int) -> None:
    read = streams.parsed(text, size, tools=TOOLS)
    assert (read.tool_calls, read.content) == ((), text)
    (problem,) = read.problems
    assert (problem.kind, problem.position, problem.raw) == ("malformed", 0, broken)
    assert why in problem.message


@pytest.mark.parametrize(
    "value",
    [
        '"a" "limit": 3',
        '"a"\n"limit": 3',
        '"a"; "limit": 3',
        '"a" // the query\n',
        '"a" /* the query */',
        '"a"\N{FULLWIDTH COMMA}"limit": 3',
        '"a": "b"',
        'a "limit": 3',
        "a; limit: 3",
        "\N{LEFT DOUBLE QUOTATION MARK}a\N{RIGHT DOUBLE QUOTATION MARK}",
        "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}a\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}",
        "`a`",
        "<escape>a<escape>",
        "...",
        "\N{HORIZONTAL ELLIPSIS}",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_what_is_not_an_expression_is_not_the_text_of_an_argument(value: str, size: int) -> None:
    for text in (
        f'{{"tool": "search", "args": {{"query": {value}}}}}',
        f'{{"search": {{"query": {value}}}}}',
        f'search\n{{"query": {value}}}',
    ):
        read = streams.parsed(text, size, tools=TOOLS)
        assert (read.tool_calls, read.content) == ((), text)
    for text in (f"search(query={value})", f"search({{'query': {value}}})"):
        assert "source_text" not in {repair for call in read_calls(text, size) for repair in call.repairs}


def read_calls(text: str, size: int) -> Sequence[ToolCall]:
    return streams.parsed(text, size, tools=TOOLS).tool_calls


@pytest.mark.parametrize(
    ("value", "argument"),
    [("unit", "unit"), ("1 + 2", "1 + 2"), ('x["a"]', 'x["a"]'), ("lambda x: x", "lambda x: x"), ("/tmp/a", "/tmp/a")],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_an_expression_in_an_object_is_the_text_of_an_argument(value: str, argument: str, size: int) -> None:
    (call,) = read_calls(f'{{"tool": "search", "args": {{"query": {value}, "limit": 3}}}}', size)
    assert (call.arguments, "source_text" in call.repairs) == ({"query": argument, "limit": 3}, True)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ('{"tool": "search", // the tool\n"args": {}}', '{"tool": "search'),
        ('{"tool": "search"; "args": {}}', '{"tool": "search'),
        ('{"tool" => "search", "args" => {}}', '{"tool" => "search'),
        ('{"tool"\N{FULLWIDTH COLON}"search"}', '{"tool"\N{FULLWIDTH COLON}"search'),
        ("{\N{LEFT DOUBLE QUOTATION MARK}tool\N{RIGHT DOUBLE QUOTATION MARK}: search}",
         "{\N{LEFT DOUBLE QUOTATION MARK}tool\N{RIGHT DOUBLE QUOTATION MARK}: search"),
        ('```json\n[{"search": {"query": "a" "limit": 3}}]\n```', '[{"search": {'),
        ('{"tool": "search", "args": {"query": "a', '{"tool": "search'),
        ('{"tool": "search", ...}', '{"tool": "search'),
        ('{"tool": "search", "args": {"query": 3 // three\n}}', '{"tool": "search'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 3, 100])
def test_an_object_that_names_a_tool_and_cannot_be_read_is_a_problem(text: str, broken: str, size: int) -> None:
    read = streams.parsed(text, size, tools=TOOLS)
    assert (read.tool_calls, read.content) == ((), text)
    (problem,) = read.problems
    assert (problem.kind, problem.position, problem.raw) == ("malformed", text.index(broken), broken)


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "search", "colour": 3;}',
        '{"name": "Bob", // x\n "friend": "search"}',
        '{"query": "a" "b"; search}',
        '{"tool": "nothing", // x\n "args": {}}',
        "[1, 2, search; x]",
        "{ search }",
        '{"tool": "search"}',
        'I use {"tool": "search", // x\n "args": {}}',
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_other_text_in_brackets_is_no_problem(text: str, size: int) -> None:
    read = streams.parsed(text, size, tools=TOOLS)
    assert (read.tool_calls, read.content, read.problems) == ((), text, ())


@pytest.mark.parametrize("text", ["search(query='a'", "[search(query='a", "```python\nsearch(query='a'\n"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_message_that_ends_in_its_only_call_is_a_problem(text: str, size: int) -> None:
    read = streams.parsed(text, size, tools=TOOLS)
    assert (read.tool_calls, read.content) == ((), text)
    assert [problem.kind for problem in read.problems] == ["truncated"]


def test_call_that_cannot_be_read_behind_others_is_a_problem() -> None:
    read = parse("get_time()\nsearch(query=)", tools=TOOLS)
    assert ([call.name for call in read.tool_calls], read.content) == (["get_time"], "search(query=)")
    assert [(problem.kind, problem.position) for problem in read.problems] == [("malformed", 11)]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'it's'", "it's"),
        ('"it"s"', 'it"s'),
        ('"He said "yes" to me"', 'He said "yes" to me'),
        ("['it's', 'x']", ["it's", "x"]),
        ("{'a': 'it's'}", {"a": "it's"}),
        ("('it's', 'x')", ["it's", "x"]),
        ('"if a "b == c" then"', 'if a "b == c" then'),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_quote_inside_a_string_that_was_not_escaped_is_repaired(written: str, value: Any, size: int) -> None:
    read = streams.parsed(f"search(query={written})", size, tools=TOOLS)
    (call,) = read.tool_calls
    assert (call.arguments, call.repairs) == ({"query": value}, ("inner_quote", "fallback"))


def test_operator_behind_a_string_is_an_expression() -> None:
    (call,) = parse("""search(query="a" if 1 else 'b')""", tools=TOOLS).tool_calls
    assert (call.arguments, call.repairs[0]) == ({"query": """"a" if 1 else 'b'"""}, "source_text")


@pytest.mark.parametrize(
    "text", ["search(query) finds texts.", "search is (like) a tool", "Use search(query=)!", "(a])"]
)
def test_prose_that_begins_like_a_call_is_no_problem(text: str) -> None:
    read = parse(text, tools=TOOLS)
    assert (read.tool_calls, read.problems, read.content) == ((), (), text)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_call_with_its_number_behind_the_name_is_read(size: int) -> None:
    read = streams.parsed('functions.search:0{"query": "a"}\nfunctions.search:12 {"query": "b"}', size, tools=TOOLS)
    assert [(call.name, call.arguments) for call in read.tool_calls] == [
        ("search", {"query": "a"}),
        ("search", {"query": "b"}),
    ]
    assert (read.content.strip(), read.problems) == ("", ())


@pytest.mark.parametrize(
    "text",
    [
        "json search(query='a')",
        "json: {'tool': 'search', 'args': {'query': 'a'}}",
        "search(query='a'), json\nsearch(query='b')",
        "yaml\nsearch(query='a')",
        "**Search** search(query='a')",
        "**Note:** search(query='a')",
        "*Tool call:* search(query='a')",
        "<execute_result>\nsearch(query='a')\n</execute_result>",
        "<codes>search(query='a')</codes>",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_other_words_before_a_call_make_it_content(text: str, size: int) -> None:
    assert read(text, size).tool_calls == ()


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS] search(query='a')",
        "[TOOL_CALLS]search(query='a')[/TOOL_CALLS]",
        '[TOOL_CALLS]\n```json\n[{"name": "search", "arguments": {"query": "a"}}]\n```',
    ],
)
def test_tokens_in_brackets_may_be_around_calls_of_any_dialect(text: str) -> None:
    for size in (1, 7, len(text)):
        parser = StreamParser(tools=TOOLS)
        events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
        result = collect([*events, *parser.finish()])
        assert [(call.name, call.arguments) for call in result.tool_calls] == [A]
        assert (result.content, result.problems) == ("", ())


@pytest.mark.parametrize("text", ["[TOOL_CALLS] is a token of Mistral.", "[TOOL_RESULTS] search(query='a')", "[TOOL"])
def test_other_text_in_or_behind_brackets_is_not_a_call(text: str) -> None:
    assert (read(text).tool_calls, read(text).content) == ((), text)


def test_calls_in_strings_with_escapes_have_the_text_of_all() -> None:
    text = r"""['search(query=\'a\')', "get_time()"]"""
    calls = read_calls(text, 100)
    assert [(call.name, call.raw) for call in calls] == [("search", text), ("get_time", text)]


@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_fence_in_a_longer_one_is_shown(size: int) -> None:
    fenced = "```\nsearch(query='a')\n```"
    for text in (f"````md\n{fenced}\n````", f"~~~md\n{fenced}\n~~~"):
        assert read(text, size).tool_calls == ()
    for text in (fenced, f"{fenced}\n````\nsearch(query='a')\n`````", f"```md\n{fenced}\n```"):
        assert {(call.name, call.arguments["query"]) for call in read(text, size).tool_calls} == {("search", "a")}
