"""Tags named after tools: a call only where the tool is known and the tag is not quoted or mentioned."""

from __future__ import annotations

from typing import Any

import pytest
from tests.property.laws import check_chunking

import toolwire
from toolwire.wire import syntax
from toolwire.wire.format_registry import get_format
from toolwire.wire.lookahead import known_tags


def _tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    properties = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in properties.items()}
    schema: dict[str, Any] = {"type": "object", "required": list(required)}
    if properties:
        schema["properties"] = properties
    return {"name": name, "parameters": schema}


NUMBERS = {"type": "array", "items": {"type": "number"}}
TOOLS = [
    _tool("read_file", ("path",), path="string", limit="integer", lines=NUMBERS),
    _tool("write_file", ("path", "content"), path="string", content="string"),
    _tool("send", message="string", card="object"),
    _tool("run_command", ("command",), command="string"),
    _tool("save", any={}),
    {"name": "ping"},
]
READ_A = "<read_file><path>a</path></read_file>"


def calls(text: str, **options: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a text, which every chunking gives, also where the format is detected."""
    for format in ("tool_tags", "auto"):
        response = check_chunking(text, format=format, tools=TOOLS, **options).response
    return [(call.name, call.arguments) for call in response.tool_calls]


ONE_CALL: list[tuple[str, str, dict[str, Any]]] = [
    (READ_A, "read_file", {"path": "a"}),
    ("<read_file>\n<path>a &amp; b</path>\n<limit> 3 </limit>\n</read_file>", "read_file", {"path": "a & b",
     "limit": 3}),
    ("<write_file><path>a</path><content>\n<p>1 < 2</p>\n\n</p>\n </content></write_file>", "write_file",
     {"path": "a", "content": "\n<p>1 < 2</p>\n\n</p>\n "}),
    ("<write_file><path>\na b\n</path><content>  x\n y </content></write_file>", "write_file",
     {"path": "a b", "content": "  x\n y "}),
    ("<write_file><path> \n</path><content><![CDATA[]]> x </content></write_file>", "write_file",
     {"path": "", "content": " x "}),
    ("<send><card><a> b </a><c>\n d\n e</c></card></send>", "send", {"card": {"a": "b", "c": "\n d\n e"}}),
    ("<read_file><path>a</path><limit><item>4</item></limit></read_file>", "read_file", {"path": "a", "limit": 4}),
    ("<read_file\npath: a\nlimit: 4\n/>", "read_file", {"path": "a", "limit": 4}),
    ("<read_file\nlimit: 4\n>\n<path>a</path></read_file>", "read_file", {"path": "a", "limit": 4}),
    ("<write_file><path>a</path><content>x <path>y</path> z</content></write_file>", "write_file",
     {"path": "a", "content": "x <path>y</path> z"}),
    ("<write_file><path>a</path><content>x <content> y\nz</content></write_file>", "write_file",
     {"path": "a", "content": "x <content> y\nz"}),
    (f"<write_file><path>a</path><content>{READ_A}</content></write_file>", "write_file",
     {"path": "a", "content": READ_A}),
    ("<write_file><path>a</path><content><write_file><path>b</path><content>c</content></write_file></content></write_file>",
     "write_file", {"path": "a", "content": "<write_file><path>b</path><content>c</content></write_file>"}),
    ("<write_file><path>a</path><content/></write_file>", "write_file", {"path": "a", "content": ""}),
    ("<write_file><path>a</path><content><![CDATA[</content></write_file>]]></content></write_file>", "write_file",
     {"path": "a", "content": "</content></write_file>"}),
    ("<read_file><path>a</path><lines>1</lines><lines>2</lines></read_file>", "read_file",
     {"path": "a", "lines": [1, 2]}),
    ("<read_file><path>a</path><lines><0>1</0><1>2</1></lines></read_file>", "read_file",
     {"path": "a", "lines": [1, 2]}),
    ("<read_file><lines>1</lines></lines><path>a</path></read_file>", "read_file", {"lines": [1], "path": "a"}),
    ("<read_file><more>1</more><path>a</path></read_file>", "read_file", {"path": "a", "more": 1}),
    ("<ping><a>1</a><b>true</b></ping>", "ping", {"a": 1, "b": True}),
    ("<ping/>", "ping", {}),
    ("<ping \n/>", "ping", {}),
    ("<ping></ping>", "ping", {}),
    ("<send>\n</send>", "send", {}),
    ('<read_file path="a" limit="3"/>', "read_file", {"path": "a", "limit": 3}),
    ('<read_file limit="3"><path>a</path></read_file>', "read_file", {"limit": 3, "path": "a"}),
    ('<read_file>{"path": "</read_file>", "limit": "3"}</read_file>', "read_file",
     {"path": "</read_file>", "limit": 3}),
    ("<read_file>\npath: a\nlimit: 3\nlines:\n  - 1\n  - 2\n</read_file>", "read_file",
     {"path": "a", "limit": 3, "lines": [1, 2]}),
    ("<read_file>path: a\nlines: 1</read_file>", "read_file", {"path": "a", "lines": [1]}),
    ("<write_file>\npath: a\ncontent: |\n  <b>\n    x\n</write_file>", "write_file",
     {"path": "a", "content": "<b>\n  x\n"}),
    ("<send>The <b>plan</b> is <![CDATA[</send>]]> 1 &lt; 2.</send>", "send",
     {"message": "The <b>plan</b> is </send> 1 < 2."}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "arguments"), ONE_CALL)
def test_an_element_named_after_a_tool_is_a_call(text: str, name: str, arguments: dict[str, Any]) -> None:
    assert calls(text) == [(name, arguments)]
    assert calls(f"Let me see <b>.\n{text} Done.") == [(name, arguments)]


NO_CALL = [
    "Use <read_file> to read a file, and <ping> for nothing. <b>Never</b> <p>.",
    "Use `<ping/>` or `<read_file><path>a</path></read_file>`.",
    f"Like this:\n```xml\n{READ_A}\n```",
    f"<think>{READ_A}</think>",
    "<read_file></read_file> <read_file/> <read_file>\n</read_file>",
    "<read_files><path>a</path></read_files> <read><path>a</path></read> </read_file> <read_file",
    "<read_file><other>a</other></read_file>",
    '<read_file class="x">a</read_file>',
    '<read_file PATH="a"/>',
    "<run_command>I will look around.</run_command>",
    "<write_file>a text</write_file>",
    '<read_file>["a"]</read_file>',
    "<send>Use the tag <send> to send.",
    "Use <send> to send, and end with </send>. Or <send>, and </send>.",
]


@pytest.mark.parametrize("text", NO_CALL)
def test_a_mention_is_content(text: str) -> None:
    response = check_chunking(text, format="tool_tags", tools=TOOLS).response
    assert (response.tool_calls, response.problems) == ((), ())
    assert (response.content or response.reasoning).replace(" ", "") == text.replace("<think>", "").replace(
        "</think>", ""
    ).replace(" ", "")
    assert calls(text) == []


def test_tags_are_read_only_for_known_tools() -> None:
    for format in ("tool_tags", "auto"):
        response = toolwire.parse(READ_A, format=format)
        assert (response.content, response.tool_calls) == (READ_A, ())


@pytest.mark.parametrize("form", [READ_A, "<read_file>\npath: a\n</read_file>", '<read_file>{"path": "a"}</read_file>'])
def test_a_call_that_is_cut_never_completes(form: str) -> None:
    for size in range(len(form)):
        for format in ("tool_tags", "auto"):
            response = toolwire.parse(form[:size], format=format, tools=TOOLS)
            assert response.tool_calls == ()
            assert all(call.name == "read_file" for call in response.incomplete)
    assert toolwire.parse("<read_file><path>a</path>", format="tool_tags", tools=TOOLS).incomplete


def test_a_missing_closing_tag_is_supplied_by_the_call_alone() -> None:
    (call,) = toolwire.parse("<read_file><path>a\n</read_file>\n", format="tool_tags", tools=TOOLS).tool_calls
    assert (call.arguments, call.repairs) == ({"path": "a"}, ("missing_close",))
    assert calls("<read_file><path>a</read_file>\n<read_file><path>b</path></read_file>") == [
        ("read_file", {"path": "a"}),
        ("read_file", {"path": "b"}),
    ]
    assert calls("<read_file><path>a</read_file>", repair="none") == []


@pytest.mark.parametrize(
    "text",
    [
        "<write_file><path>a\n<content>b</content></write_file>",
        "<write_file><path>a</path><content>b</write_file> or not",
        "<write_file><path>a</path><content>b\n<write_file><path>c</path><content>d</content></write_file>",
        "<ping><a>1<b>2</b></ping>",
        "<ping><a>1</a>\n",
    ],
)
def test_no_call_is_completed_by_the_tags_of_another_one(text: str) -> None:
    assert calls(text) == []
    assert toolwire.parse(text, format="tool_tags", tools=TOOLS).incomplete


def test_a_call_without_its_closing_tag_takes_nothing_from_the_next_one() -> None:
    for first in ("<read_file><path>b</path>\n", "<read_file>\npath: b\n", '<read_file>{"path": "b"}\n'):
        assert calls(first + READ_A) == [("read_file", {"path": "a"})]


def test_strings_are_streamed_and_text_without_tags_is_a_repair() -> None:
    parser = toolwire.StreamParser(format="auto", tools=TOOLS)
    events = [*parser.feed("<write_file><path>a</path><content>one"), *parser.feed(" two")]
    deltas = [event.text for event in events if isinstance(event, toolwire.ArgumentsDelta)]
    assert "".join(deltas) == '{"path": "a", "content": "one two'
    (call,) = toolwire.parse("<send>hello</send>", format="tool_tags", tools=TOOLS).tool_calls
    assert (call.repairs, call.confidence) == (("bare_value",), 0.9)


@pytest.mark.parametrize(
    "key",
    [
        *("answer", "content", "message", "prompt", "query", "question", "reasoning", "response", "result", "summary"),
        *("text", "thought"),
    ],
)
def test_text_without_tags_is_the_only_parameter_that_is_read(key: str) -> None:
    for required, counts in (((), 1), ((key,), 1), (("other",), 0), ((key, "other"), 0)):
        tools = [_tool("tell", required, **{key: "string", "other": "string"})]
        for text in ("hello", "5", "[1]", "true"):
            response = check_chunking(f"<tell>{text}</tell>", format="tool_tags", tools=tools).response
            assert [call.arguments for call in response.tool_calls] == [{key: text}] * counts


def test_markup_in_text_without_tags_is_text_at_any_depth() -> None:
    text = f"x {'<b>' * 200} y </i> z"
    assert calls(f"<send>{text}</send>") == [("send", {"message": text})]


def test_a_closing_tag_that_is_repeated_is_a_repair() -> None:
    text = "<read_file><path>a</path></path><limit>1</limit></limit></read_file>"
    (call,) = check_chunking(text, format="tool_tags", tools=TOOLS).response.tool_calls
    assert (call.arguments, call.repairs) == ({"path": "a", "limit": 1}, ("extra_close",))
    assert calls(text, repair="none") == []


def test_a_parameter_that_is_given_twice_makes_no_call() -> None:
    for repeated in ("<path>a</path><path>b</path>", "<path>a</path><limit>1</limit><path>a</path>"):
        response = check_chunking(f"<read_file>{repeated}</read_file>", format="tool_tags", tools=TOOLS).response
        assert (response.tool_calls, [call.arguments["path"] for call in response.incomplete]) == ((), ["a"])
        assert "the parameter 'path' is given twice" in response.problems[0].message


@pytest.mark.parametrize("end", [">", " x=1>", "\n>", "\t>", "\r>"])
def test_a_missing_closing_tag_is_not_supplied_behind_the_tag_of_another_parameter(end: str) -> None:
    assert calls(f"<write_file><path>a</path><content>x <path{end} y</write_file>") == []
    assert calls(f"<write_file><path>a</path><content>x <other{end} y</write_file>") != []


@pytest.mark.parametrize("key", ["command", "code", "path"])
def test_text_without_tags_is_never_what_a_tool_runs(key: str) -> None:
    tools = [_tool("tell", **{key: "string"})]
    response = check_chunking("<tell>hello</tell>", format="tool_tags", tools=tools).response
    assert (response.tool_calls, response.content) == ((), "<tell>hello</tell>")


def test_names_that_are_no_names_of_elements_are_neither_read_nor_written() -> None:
    tools = [{"name": "weather.v2"}, {"name": "2nd"}, {"name": "a/b"}]
    response = toolwire.parse("<weather.v2/><2nd/><a/b/>", format="tool_tags", tools=tools)
    assert ([call.name for call in response.tool_calls], response.content) == (["weather.v2"], "<2nd/><a/b/>")
    for name in ("2nd", "a/b"):
        with pytest.raises(toolwire.RenderError, match="name of an element"):
            toolwire.render_calls([toolwire.ToolCall(name)], format="tool_tags", tools=tools)


def test_calls_are_written_with_one_element_per_parameter() -> None:
    call = toolwire.ToolCall("write_file", {"path": "a", "content": "1 < 2"})
    text = toolwire.render_calls([call], format="cline", tools=TOOLS)
    assert text == "<write_file>\n<path>a</path>\n<content>1 &lt; 2</content>\n</write_file>"


def test_the_fallback_of_another_format_reads_a_message_of_nothing_but_tags() -> None:
    options: dict[str, Any] = {"format": "hermes", "fallback": "whole_message", "tools": TOOLS}
    response = check_chunking(f" {READ_A}\n<ping/>\n", **options).response
    assert [call.name for call in response.tool_calls] == ["read_file", "ping"]
    assert all(call.repairs == ("fallback",) and call.format == "tool_tags" for call in response.tool_calls)
    for text in (f"Like this: {READ_A}", f"{READ_A} for example", READ_A[:-1], "<b>bold</b>"):
        response = check_chunking(text, **options).response
        assert (response.tool_calls, response.content) == ((), text)


def test_a_format_may_have_tags_of_tools_inside_a_wrapper_or_beside_its_own_markers() -> None:
    tag = syntax.Call((syntax.ToolTag(), syntax.ToolBody()))
    wrapper = (syntax.Lit("<tools>"), syntax.Many((tag,)), syntax.Lit("</tools>"))
    wrapped = syntax.WireFormat("wrapped", blocks=(wrapper,))
    beside = syntax.WireFormat("beside", blocks=((tag,), *get_format("hermes").blocks))
    call = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    for format, text in ((wrapped, f"<b> <tools>{READ_A}<ping/></tools>"), (beside, f"<b> {READ_A}{call}")):
        response = check_chunking(text, format=format, tools=TOOLS).response
        assert [call.name for call in response.tool_calls] == ["read_file", "ping"]
        assert (response.content, response.problems) == ("<b> ", ())


def test_a_thousand_tools_are_looked_up_without_a_scan_per_name() -> None:
    names = tuple(f"tool_{number}" for number in range(1000))
    tags = known_tags(names)
    assert known_tags(names) is tags
    assert tags.opens("<tool_999>", 0, 1, final=False, blank=False, before="") is True
    assert tags.opens("<tool_1000>", 0, 1, final=False, blank=False, before="") is False
    assert tags.opens("<tool_99", 0, 1, final=False, blank=False, before="") is None
    assert (tags.is_prefix("<tool_99"), tags.is_prefix("<tool_x")) == (True, False)


@pytest.mark.parametrize("length", [1_200, 20_000])
@pytest.mark.parametrize("format", ["tool_tags", "hermes"])
def test_parameter_names_of_any_length_leave_the_other_calls_readable(format: str, length: int) -> None:
    """A server chooses the names of its parameters."""
    tools = [_tool("read_file", path="string", **{"x" * length: "string"})]
    (call,) = toolwire.parse(READ_A, format=format, tools=tools, fallback="whole_message").tool_calls
    assert call.arguments == {"path": "a"}


@pytest.mark.parametrize(
    ("tag", "reads"),
    [("<path>", False), ("<path x>", False), ("<path\n>", False), ("<path\r\n>", False), ("<pathology>", True)],
)
def test_a_tag_of_another_parameter_is_one_whatever_ends_its_name(tag: str, reads: bool) -> None:
    text = f"<write_file><path>a</path><content>x {tag} y</write_file>"
    expected = [("write_file", {"path": "a", "content": f"x {tag} y"})] if reads else []
    assert calls(text, fallback="none") == expected


def test_a_long_first_word_does_not_wait_for_its_end() -> None:
    parser = toolwire.StreamParser(format="tool_tags", tools=TOOLS)
    parser.feed("<ping>")
    events = [event for letter in "x" * 300 for event in parser.feed(letter)]
    assert "".join(event.text for event in events if isinstance(event, toolwire.ContentDelta)).startswith("<ping>x")


def test_an_element_that_is_no_parameter_emits_nothing_of_a_call_that_does_not_begin() -> None:
    text = "<read_file><unknown>a</unknown>"
    response = check_chunking(text, format="auto", tools=TOOLS).response
    assert (response.tool_calls, response.incomplete, response.content) == ((), (), text)


def test_attributes_of_a_parameter_are_reported() -> None:
    tool = {"name": "f", "parameters": {"properties": {"s": {"type": "string"}}}}
    response = check_chunking('<f><s kind="text">a</s></f>', format="tool_tags", tools=[tool]).response
    assert [call.arguments for call in response.tool_calls] == [{"s": "a"}]
    assert ["'kind'" in problem.message for problem in response.problems] == [True]
