"""Calls in tags, as the founding documents ask for them: JSON in a tag, elements, CDATA, escaping."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

import toolwire
from toolwire import CallEnd, CallStart, ContentDelta, ParsedResponse, StreamParser, ToolCall
from toolwire.messages import MESSAGE_LIMIT
from toolwire.text.tokens import count_tokens


def in_json(**fields: Any) -> str:
    return f"<tool>{json.dumps(fields)}</tool>"


def in_elements(arguments: str, name: str = "f", server: str = "local") -> str:
    return (
        f"<tool>\n<server_name>{server}</server_name>\n<tool_name>{name}</tool_name>\n"
        f"<arguments>{arguments}</arguments>\n</tool>"
    )


def read(text: str, **options: Any) -> ParsedResponse:
    """Read whole; every character by itself has to give the same."""
    options.setdefault("format", "forge_xml")
    whole = toolwire.parse(text, **options)
    parser = StreamParser(**options)
    events = [event for character in text for event in parser.feed(character)]
    pieces = toolwire.collect([*events, *parser.finish()])
    assert (pieces.tool_calls, pieces.content, pieces.problems) == (whole.tool_calls, whole.content, whole.problems)
    return whole


def value(written: str, **options: Any) -> Any:
    """The one argument `v`."""
    (call,) = read(in_elements(f"<v>{written}</v>"), **options).tool_calls
    return call.arguments["v"]


def tool(name: str = "f", **properties: Any) -> dict[str, Any]:
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}


# -- JSON in a tag ---------------------------------------------------------------------------------------------------


@pytest.mark.mission("A1", "A2", "A3", "A5")
@pytest.mark.parametrize("between", ["", "\n", "  \n\t\r\n"])
def test_json_in_a_tag_is_a_call(between: str) -> None:
    arguments = {"path": "a.py", "edits": [{"line": 1, "to": {"text": 'say "}" </tool>', "keep": None}}]}
    body = json.dumps({"server_name": "files", "tool_name": "edit", "arguments": arguments})
    (call,) = read(f"<tool>{between}{body}{between}</tool>", format="forge_json").tool_calls
    assert (call.server, call.name, call.arguments) == ("files", "edit", arguments)


@pytest.mark.mission("A3")
def test_a_call_without_a_server_runs_the_tool_of_this_program() -> None:
    registry = toolwire.ToolRegistry()
    registry.register(lambda: "ours", name="look")
    registry.register(lambda: "theirs", name="look", server="files")
    for server, expected in (("local", "ours"), ("files", "theirs")):
        (call,) = read(in_json(server_name=server, tool_name="look", arguments={}), format="forge_json").tool_calls
        assert registry.lookup(call.name, call.server).run() == expected
    (call,) = read(in_json(tool_name="look", arguments={}), format="forge_json").tool_calls
    assert call.server == ""


@pytest.mark.mission("A4", "C23")
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("forge_json", in_json(server_name="local", arguments={})),
        ("forge_xml", "<tool><server_name>local</server_name><arguments><a>1</a></arguments></tool>"),
    ],
)
def test_a_call_without_a_name_is_told_to_the_model(format: str, text: str) -> None:
    response = read(text, format=format)
    assert response.tool_calls == ()
    (problem,) = response.problems
    assert problem.kind == "missing_name"
    assert "the name of the tool is missing" in problem.message


@pytest.mark.mission("A7", "A17")
def test_json_in_prose_is_no_call() -> None:
    known = [tool("look")]
    text = 'To look, one sends {"tool_name": "look", "arguments": {}}:\n{"server_name": "local", "tool_name": "look"}\n'
    for format in ("forge_json", "forge_xml"):
        response = read(text, format=format, tools=known)
        assert (response.tool_calls, response.problems, response.content) == ((), (), text)
    assert toolwire.parse(text, tools=known).tool_calls == ()


@pytest.mark.mission("A8", "C14")
def test_what_stands_around_a_call_is_left_over() -> None:
    call = in_elements("<v>1</v>")
    response = read(f"<thinking>Which one?</thinking>I look. {call} Done.", format="forge_xml")
    assert response.reasoning == "Which one?"
    assert response.content.split() == ["I", "look.", "Done."]
    assert [one.arguments for one in response.tool_calls] == [{"v": 1}]


@pytest.mark.mission("A9", "A10", "C17")
@pytest.mark.parametrize("format", ["forge_json", "forge_xml"])
def test_every_call_of_a_message_is_read_in_order(format: str) -> None:
    calls = [ToolCall("f", {"v": number}) for number in range(3)]
    texts = [toolwire.render_calls([call], format=format) for call in calls]
    text = f"First {texts[0]}{texts[1]} then {texts[2]}."
    response = read(text, format=format)
    assert [call.arguments for call in response.tool_calls] == [{"v": 0}, {"v": 1}, {"v": 2}]
    assert response.content.split() == ["First", "then", "."]
    parser = StreamParser(format=format)
    shown = [type(event) for event in parser.feed(text) if isinstance(event, (ContentDelta, CallEnd))]
    assert shown.index(ContentDelta) == 0
    assert shown[-1] is ContentDelta
    assert ContentDelta in shown[shown.index(CallEnd) + 1 : -1], "the text between keeps its place"


@pytest.mark.mission("A12", "B43")
def test_arguments_are_checked_before_anything_runs() -> None:
    done = list[int]()

    @toolwire.tool
    def f(v: int) -> str:
        """Does it."""
        done.append(v)
        return "ok"

    call = read(in_elements("<v>many</v>"), tools=[f]).tool_calls[0]
    issues = toolwire.ToolExecutor(toolwire.ToolRegistry([f])).preflight_check(call, toolwire.Session())
    assert [issue.kind for issue in issues] == ["invalid_arguments"]
    assert '/v: is the string "many"' in issues[0].message
    assert done == []


@pytest.mark.mission("A6", "A13", "A16", "A20")
def test_one_call_in_fields_in_json_in_tags_in_elements_and_bare() -> None:
    known = [tool(v={"type": "integer"})]
    native = {
        "choices": [
            {
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"v": 1}'}}],
                },
            }
        ]
    }
    assert [(one.name, one.arguments) for one in toolwire.parse(native).tool_calls] == [("f", {"v": 1})]
    for format in ("forge_json", "forge_xml", "bare_json"):
        written = toolwire.render_calls([ToolCall("f", {"v": 1})], format=format, tools=known)
        (call,) = toolwire.parse(written, tools=known).tool_calls
        assert (call.name, call.arguments, call.format) == ("f", {"v": 1}, format)


@pytest.mark.mission("A14")
def test_a_program_may_change_the_form_and_still_read_the_older_one() -> None:
    older = in_json(server_name="local", tool_name="f", arguments={"v": 1})
    newer = in_elements("<v>1</v>")
    for text, format in ((older, "forge_json"), (newer, "forge_xml")):
        (call,) = toolwire.parse(text, format="auto").tool_calls
        assert (call.arguments, call.format) == ({"v": 1}, format)


EXAMPLES = [
    ToolCall("task_completion", {"result": "The function is fixed, and its test passes."}),
    ToolCall("read_file", {"path": "src/app.py", "start": 1, "end": 40}),
    ToolCall("execute_command", {"command": "pytest -q tests", "directory": "."}),
    ToolCall("search_files", {"pattern": "TODO", "exclude": ["build", "dist", "node_modules"]}),
    ToolCall("apply_diff", {"path": "a.py", "edits": [{"old": "x = 1", "new": "x = 2"}, {"old": "y", "new": "z"}]}),
]


@pytest.mark.mission("A21", "B42")
def test_what_each_form_costs() -> None:
    """In estimated tokens; the figures stand in the rows."""

    def cost(format: str) -> int:
        return sum(count_tokens(toolwire.render_calls([call], format=format)).tokens for call in EXAMPLES)

    bare = sum(count_tokens(json.dumps({"name": call.name, "arguments": call.arguments})).tokens for call in EXAMPLES)
    assert (bare, cost("forge_json"), cost("forge_xml")) == (126, 181, 259)


# -- elements and CDATA ----------------------------------------------------------------------------------------------


@pytest.mark.mission("B2", "B3", "B4", "B28")
def test_name_server_and_arguments_are_elements() -> None:
    (call,) = read(in_elements("\n  <path>a.py</path>\n  <n>3</n>\n", "read_file", "files")).tool_calls
    assert (call.server, call.name, call.arguments) == ("files", "read_file", {"path": "a.py", "n": 3})


PAGE = """
\tconst Button = () => <button onClick={() => go("a\\n", 'b')}>Hi & bye</button>;
</content></arguments></tool>
"""


@pytest.mark.mission("B1", "B5", "B6", "B10", "B11", "B23", "B26", "B30")
def test_cdata_is_opaque_and_kept_byte_for_byte() -> None:
    assert value(f"<![CDATA[{PAGE}]]>") == PAGE
    for text in ("5", "true", "null", " 007 ", "<item>a</item>"):
        assert value(f"<![CDATA[{text}]]>") == text
    assert value("src/app.py") == "src/app.py"
    assert value("a &lt;b&gt; &amp; c") == "a <b> & c", "escaped text is read beside it"


@pytest.mark.mission("B12", "C4")
@pytest.mark.parametrize("text", ["a ]]> b", "]]>", "]]]]>>", "<a>]]></a><b>&</b>]]>" * 300])
def test_the_end_of_cdata_can_be_written(text: str) -> None:
    assert value("<![CDATA[" + text.replace("]]>", "]]]]><![CDATA[>") + "]]>") == text
    written = toolwire.render_calls([ToolCall("f", {"v": text})], format="forge_xml")
    assert "CDATA" not in written, "what we write ourselves is escaped"
    assert read(written).tool_calls[0].arguments == {"v": text}


@pytest.mark.mission("B13", "B14", "B34")
@pytest.mark.parametrize(
    ("format", "told"), [("forge_xml", True), ("autobyteus_xml", True), ("minimax_m3", False), ("hermes", False)]
)
def test_a_manifest_says_how_to_write_what_would_be_markup(format: str, told: bool) -> None:
    guidelines = toolwire.render_manifest([tool(v={"type": "string"})], format=format).text.partition("\n\n")[0]
    assert ("]]]]><![CDATA[>" in guidelines) is told
    assert ("Paths, numbers and short text need no CDATA" in guidelines) is told
    assert ("&amp;" in guidelines) is told


@pytest.mark.mission("B7", "B8", "B27")
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("<exclude>a</exclude><exclude>b</exclude><exclude>c</exclude>", {"exclude": ["a", "b", "c"]}),
        (
            "<edits><edit><old>x</old><new>1</new></edit><edit><old>y</old><new>2</new></edit></edits>",
            {"edits": {"edit": [{"old": "x", "new": 1}, {"old": "y", "new": 2}]}},
        ),
        ("<o><a>1</a><b><c>x</c></b></o>", {"o": {"a": 1, "b": {"c": "x"}}}),
    ],
)
def test_lists_are_repeated_elements_and_objects_are_nested(written: str, expected: Any) -> None:
    assert read(in_elements(written)).tool_calls[0].arguments == expected


@dataclass
class Edit:
    """A place to change."""

    search: str
    replace: str


@pytest.mark.mission("B7", "B33", "B9")
def test_a_signature_says_what_the_elements_are() -> None:
    def apply_diff(path: str, edits: list[Edit]) -> None:
        """Changes a file."""

    text = in_elements(
        "<path>7</path><edits><edit><search>a</search><replace>1</replace></edit>"
        "<edit><search><![CDATA[<b>]]></search><replace></replace></edit></edits>",
        "apply_diff",
    )
    (call,) = read(text, tools=[apply_diff]).tool_calls
    edits = [{"search": "a", "replace": "1"}, {"search": "<b>", "replace": ""}]
    assert call.arguments == {"path": "7", "edits": edits}
    written = toolwire.render_calls([call], format="forge_xml", tools=[apply_diff])
    assert read(written, tools=[apply_diff]).tool_calls[0].arguments == call.arguments


@pytest.mark.mission("B9", "B41")
@pytest.mark.parametrize("call", EXAMPLES, ids=lambda call: call.name)
def test_the_examples_of_the_documents(call: ToolCall) -> None:
    written = toolwire.render_calls([call], format="forge_xml")
    (again,) = read(written).tool_calls
    assert (again.name, again.arguments, again.repairs) == (call.name, call.arguments, ())


@pytest.mark.mission("B9")
def test_a_pattern_and_a_page_in_cdata() -> None:
    written = f"<pattern><![CDATA[<(\\w+)>[^<]*</\\1>]]></pattern><content><![CDATA[{PAGE}]]></content>"
    assert read(in_elements(written)).tool_calls[0].arguments == {"pattern": r"<(\w+)>[^<]*</\1>", "content": PAGE}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("true", True, marks=pytest.mark.mission("B15")),
        pytest.param("FALSE", False, marks=pytest.mark.mission("B15")),
        pytest.param("null", None, marks=pytest.mark.mission("B16")),
        pytest.param("NULL", None, marks=pytest.mark.mission("B16")),
        pytest.param("-42", -42, marks=pytest.mark.mission("B17")),
        pytest.param("9223372036854775807", 2**63 - 1, marks=pytest.mark.mission("B17")),
        pytest.param("92233720368547758070", 92233720368547758070, marks=pytest.mark.mission("B17")),
        pytest.param("3.25", 3.25, marks=pytest.mark.mission("B18")),
        pytest.param("42.", 42.0, marks=pytest.mark.mission("B18")),
        pytest.param("-1.5E-3", -0.0015, marks=pytest.mark.mission("B18")),
        pytest.param("src/a.py", "src/a.py", marks=pytest.mark.mission("B19")),
        pytest.param("0x10", "0x10", marks=pytest.mark.mission("B19")),
        pytest.param("1_000", "1_000", marks=pytest.mark.mission("B19")),
        pytest.param("007", 7, marks=pytest.mark.mission("B20")),
        pytest.param('"true"', '"true"', marks=pytest.mark.mission("B21", "B26")),
        pytest.param('"5"', '"5"', marks=pytest.mark.mission("B21", "B26")),
        pytest.param("NaN", "NaN", marks=pytest.mark.mission("B22")),
        pytest.param("+Inf", "+Inf", marks=pytest.mark.mission("B22")),
        pytest.param("-Inf", "-Inf", marks=pytest.mark.mission("B22")),
        pytest.param("\n  5 \t", 5, marks=pytest.mark.mission("B24")),
        pytest.param(" yes and no ", " yes and no ", marks=pytest.mark.mission("B24")),
        pytest.param("-0", 0, marks=pytest.mark.mission("B25")),
        pytest.param("", "", marks=pytest.mark.mission("B25")),
        pytest.param("123abc", "123abc", marks=pytest.mark.mission("B25")),
    ],
)
def test_what_is_inferred_where_no_schema_says_it(written: str, expected: Any) -> None:
    got = value(written)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.mission("B15", "B16", "B20")
def test_where_a_schema_says_string_it_stays_one() -> None:
    for text in ("true", "null", "007", "5"):
        assert value(text, tools=[tool(v={"type": "string"})]) == text


@pytest.mark.mission("A11", "B29", "B31", "B32", "C16", "C20")
def test_a_call_begins_grows_and_ends_while_it_is_written() -> None:
    text = "Wait." + in_elements("<v><![CDATA[a</tool>b]]></v>")
    parser = StreamParser(format="forge_xml")
    seen: list[tuple[str, int]] = []
    for at, character in enumerate(text, 1):
        for event in parser.feed(character):
            if isinstance(event, (CallStart, CallEnd)):
                seen.append((type(event).__name__, at))
            if isinstance(event, ContentDelta):
                assert "<" not in event.text, "no part of a tag is ever shown as text"
    started = text.index("</tool_name>") + len("</tool_name>")
    assert seen == [("CallStart", seen[0][1]), ("CallEnd", len(text))]
    assert started <= seen[0][1] < text.index("<![CDATA["), "the name is told before the arguments have begun"


@pytest.mark.mission("B36")
@pytest.mark.parametrize("text", ["", " ", "\n", "é \U0001f600 \u2028", "&amp;", "<![CDATA[", "</v>", "]]", "\\", "\t"])
def test_special_characters_come_back(text: str) -> None:
    call = ToolCall("f", {"v": text, "w": [text, {"x": text}]})
    known = [
        tool(
            v={"type": "string"},
            w={
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "string"}}}]},
            },
        )
    ]
    written = toolwire.render_calls([call], format="forge_xml", tools=known)
    assert read(written, tools=known).tool_calls[0].arguments == call.arguments


# -- escaping first ----------------------------------------------------------------------------------------------------


@pytest.mark.mission("C1", "C2", "C3")
def test_text_is_escaped_and_long_or_busy_text_is_cdata() -> None:
    def written(text: str) -> str:
        return toolwire.render_calls([ToolCall("f", {"v": text, "path": "a & b"})], format="forge_xml")

    for text, cdata in (
        ("a < b & \"c\" 'd'", False),
        ("<a><b/></a>", True),
        ("x" * 999 + "&", True),
        ("x" * 2000, False),
    ):
        shown = written(text)
        assert ("<![CDATA[" in shown) is cdata
        assert "a &amp; b" in shown, "each field by itself"
        field = shown.partition("<v>")[2].partition("</v>")[0]
        assert not ("<![CDATA[" in field and "&amp;" in field), "never both in one"
        assert read(shown).tool_calls[0].arguments == {"v": text, "path": "a & b"}


@pytest.mark.mission("C3")
def test_both_ways_in_one_field_are_read_all_the_same() -> None:
    assert value("a &lt; <![CDATA[b &lt; c]]> &amp; d") == "a < b &lt; c & d"


@pytest.mark.mission("C5")
def test_structure_is_never_in_cdata() -> None:
    call = ToolCall("f", {"edits": [{"old": "<a><b></b></a>", "new": ""}], "o": {"k": ["<x></x><y></y>"]}})
    written = toolwire.render_calls([call], format="forge_xml")
    outside = written.replace("<![CDATA[<a><b></b></a>]]>", "").replace("<![CDATA[<x></x><y></y>]]>", "")
    assert "CDATA" not in outside
    assert outside.count("<item>") == 2


@pytest.mark.mission("C6", "C7", "C9")
@pytest.mark.parametrize(
    ("written", "expected", "repairs"),
    [
        ("a & b &amp; c &#65;", "a & b & c A", ("bare_ampersand",)),
        ("a &amp; b", "a & b", ()),
        ("if x < 5", "if x < 5", ("bare_markup",)),
        ("if x > 5", "if x > 5", ()),
        ("a & <![CDATA[b && c &amp; d]]>", "a & b && c &amp; d", ("bare_ampersand",)),
    ],
)
def test_bare_characters_are_repaired_outside_cdata_and_noted(
    written: str, expected: str, repairs: tuple[str, ...]
) -> None:
    (call,) = read(in_elements(f"<v>{written}</v><w><![CDATA[x && y]]></w>")).tool_calls
    assert (call.arguments, call.repairs) == ({"v": expected, "w": "x && y"}, repairs)
    refused = toolwire.parse(in_elements(f"<v>{written}</v>"), format="forge_xml", repair="none")
    assert bool(refused.tool_calls) is not bool(repairs)


@pytest.mark.mission("C8")
def test_entities_of_html_stay_as_they_are_written() -> None:
    assert value("&nbsp;&copy; &lt;") == "&nbsp;&copy; <"


@pytest.mark.mission("C12", "C25")
def test_a_problem_quotes_a_little_and_shows_a_right_call() -> None:
    text = "<tool><tool_name>f</tool_name><wrong>" + "x" * 5_000 + "</wrong></tool>"
    (problem,) = read(text, tools=[tool(v={"type": "string"})]).problems
    assert (problem.kind, problem.position) == ("malformed", 0)
    quoted, _, example = problem.message.partition("A call of f is written like this:\n")
    assert len(quoted) < MESSAGE_LIMIT + 200
    assert read(example).tool_calls[0].arguments == {"v": "the v"}


@pytest.mark.mission("C13")
def test_ids_are_the_same_for_the_same_text() -> None:
    text = in_elements("<v>1</v>")
    first, again, later = (toolwire.parse(text, format="forge_xml", id_seed=seed) for seed in ("1", "1", "2"))
    assert first.tool_calls[0].id == again.tool_calls[0].id != later.tool_calls[0].id


@pytest.mark.mission("C15")
def test_events_carry_all_of_the_arguments() -> None:
    text = in_elements("<a></a><o><k>1</k></o><l>1</l><l>2</l>")
    parser = StreamParser(format="forge_xml")
    (end,) = [event for event in [*parser.feed(text), *parser.finish()] if isinstance(event, CallEnd)]
    assert end.call.arguments == {"a": "", "o": {"k": 1}, "l": [1, 2]}


@pytest.mark.mission("C18", "C22")
def test_every_call_that_begins_ends_wherever_the_text_is_cut() -> None:
    text = f"a {in_elements('<v>1</v>')} b {in_json(tool_name='g', arguments={'v': 1})}"
    for cut in range(len(text)):
        parser = StreamParser(format="auto")
        events = [*parser.feed(text[:cut]), *parser.finish()]
        begun = [event.index for event in events if isinstance(event, CallStart)]
        ended = [event.index for event in events if isinstance(event, CallEnd)]
        assert begun == ended
        assert all(call.arguments == {"v": 1} for call in toolwire.collect(events).tool_calls)


@pytest.mark.mission("C19")
def test_tags_of_other_names_and_shapes() -> None:
    for text in ("<toolbox><tool_name>f</tool_name></toolbox>", "<tools><tool_name>f</tool_name></tools>"):
        assert read(text).content == text
    (call,) = read("<TOOL>\n<tool_name>f</tool_name><arguments></arguments></TOOL>").tool_calls
    assert call.name == "f"
    (call,) = toolwire.parse('<tool name="f"><arguments></arguments></tool>').tool_calls
    assert (call.name, call.format) == ("f", "autobyteus_xml")


@pytest.mark.mission("C21")
@pytest.mark.parametrize("size", [1, 2, 5])
def test_thinking_in_pieces_is_kept_apart(size: int) -> None:
    hidden = f"a < b <{in_elements('<v>1</v>')}"
    text = f"<thinking>{hidden}</thinking>Then x < y."
    parser = StreamParser(format="forge_xml")
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    response = toolwire.collect([*events, *parser.finish()])
    assert (response.reasoning, response.content, response.tool_calls) == (hidden, "Then x < y.", ())


@pytest.mark.mission("C38", "B34")
def test_examples_are_made_from_the_schema() -> None:
    definition = tool(
        s={"type": "string"},
        e={"type": "string", "enum": ["slow", "fast"]},
        i={"type": "integer"},
        x={"type": "number"},
        b={"type": "boolean"},
        names={"type": "array", "items": {"type": "string"}},
        o={"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
    )
    definition["parameters"]["properties"]["rare"] = {"type": "string"}
    text = toolwire.prompt([definition], format="forge_xml")
    example = read(text[text.index("To call a tool, write:") :], tools=[definition]).tool_calls[0].arguments
    assert "rare" not in example
    assert example["e"] == "slow"
    assert [type(example[key]) for key in ("s", "i", "b", "names", "o")] == [str, int, bool, list, dict]
    assert toolwire.read_arguments(json.dumps(example), definition).problem is None
