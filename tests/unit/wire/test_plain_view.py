"""Calls whose markup is disguised are reported, at their place in the text, and never run."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest
from tests.property.laws import check_chunking

from toolwire import ParsedResponse, ToolCall, formats, get_format, render_calls
from toolwire.wire.plain_view import may_be_disguised, plain_view

SEARCH = {
    "name": "search",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
JSON = '<tool_call>{"name": "search", "arguments": {"query": "tea"}}</tool_call>'
CODER = "<tool_call>\n<function=search>\n<parameter=query>\ntea\n</parameter>\n</function>\n</tool_call>"
TAGS = "<search><query>tea</query></search>"
INVOKE = '<invoke name="search"><parameter name="query">tea</parameter></invoke>'
PYTHON = 'search(query="tea")'
WIDE = {at: at + 0xFEE0 for at in map(ord, '<>{}()[]"=:,')}


def read(text: str, format: str = "auto") -> ParsedResponse:
    return check_chunking(text, format=format, tools=[SEARCH], fallback="whole_message").response


def escaped(text: str) -> str:
    return html.escape(text, quote=False)


DISGUISES: list[Callable[[str], str]] = [
    html.escape,
    escaped,
    lambda text: html.escape(html.escape(text)),
    lambda text: text.replace("<", "&#60;").replace(">", "&#x3E;"),
    lambda text: text.replace("<", "\\u003c").replace(">", "\\u003E"),
    lambda text: text.replace("<", "\\\\u003c").replace(">", "\\\\u003e"),
    lambda text: text.replace("<", "\\<").replace(">", "\\>"),
    lambda text: text.translate(WIDE),
    lambda text: text.replace("<", "\ufe64").replace(">", "\ufe65"),
    lambda text: text.replace("<", "\u2039").replace(">", "\u203a"),
    lambda text: text.replace("</", "</ ").replace("<", "< "),
    lambda text: text.replace("</", "< / ").replace(">", " >"),
    lambda text: text.replace("<", "<\u200b"),
]


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("call", [JSON, CODER, TAGS, INVOKE])
@pytest.mark.parametrize("before", ["", "I look it up.\n", "茶 & more:\n\n"])
def test_a_disguised_call_is_reported_and_does_not_run(call: str, disguise: Callable[[str], str], before: str) -> None:
    written = disguise(call)
    response = read(before + written)
    assert response.tool_calls == ()
    assert response.problems
    for problem in response.problems:
        assert problem.kind in ("call_in_prose", "malformed", "truncated")
        assert (before + written)[problem.position :].startswith(problem.raw)


@pytest.mark.parametrize("disguise", DISGUISES[:10])
def test_the_problem_quotes_the_whole_call_as_it_is_written(disguise: Callable[[str], str]) -> None:
    for call in (TAGS,) if "\\<" in disguise("<") else (TAGS, INVOKE):
        for behind in ("", "\nDone. x &lt; y"):
            (problem,) = read(f"So.\n{disguise(call)}{behind}").problems
            assert (problem.kind, problem.raw, problem.position) == ("call_in_prose", disguise(call), 4)


@pytest.mark.parametrize("format", [name for name in formats() if name not in ("auto", "plain")])
def test_a_call_of_each_format_is_reported_if_its_markup_is_escaped(format: str) -> None:
    call = render_calls([ToolCall("search", {"query": "tea"})], format=format, tools=[SEARCH])
    written = f"So:\n{html.escape(call)}\n"
    if get_format(format).detected and written != f"So:\n{call}\n":
        assert (read(written).tool_calls, bool(read(written).problems)) == ((), True)


@pytest.mark.parametrize(
    "text",
    [
        "{“name”: “search”, “arguments”: {“query”: “tea”}} is it.",
        "So ｛＂name＂： ＂search＂， ＂arguments＂： ｛＂query＂： ＂tea＂｝｝",
        "So search（query＝“tea”）",
        "So Ｓｅａｒｃｈ（query=“tea”）",
        "So search(query=‘tea’)",
        r"So:\nname: search\narguments:\n  query: tea\n",
        'So search(query\u200b="tea")',
        '{\\"name\\": \\"search\\", \\"arguments\\": {\\"query\\": \\"tea\\"}}',
        "<Function=search>\n<Parameter=query>\ntea\n</Parameter>\n</Function>",
        "So:\n> <tool_call>\n> <function=search>\n>  <parameter=query>\n> tea\n> </parameter>\n> </function>\n",
        "So:\n> > name: search\n> > arguments:\n> >   query: tea\n",
    ],
)
def test_other_disguises(text: str) -> None:
    response = read(text)
    assert (response.tool_calls, response.content) == ((), text)
    assert [problem.kind for problem in response.problems] in (["call_in_prose"], ["malformed"])


@pytest.mark.parametrize(
    "text",
    [
        "A &amp; B &lt; C, and search &gt; find.",
        "Use List<String> and <Br > with search, a < b > c.",
        "> search: finds pages\n> stop: ends it\n",
        "我会使用 search（搜索）工具。",
        "「search：茶」",
        "&lt;search&gt; is the tag.",
        "For example: &lt;search&gt;&lt;query&gt;tea&lt;/query&gt;&lt;/search&gt;",
        "&lt;tool_result&gt;\n&lt;search&gt;&lt;query&gt;tea&lt;/query&gt;&lt;/search&gt;&lt;/tool_result&gt;",
        "I cannot do that: &lt;search&gt;&lt;query&gt;tea&lt;/query&gt;&lt;/search&gt;",
    ],
)
def test_prose_with_such_signs_is_not_reported(text: str) -> None:
    assert (read(text).tool_calls, read(text).problems) == ((), ())


def test_a_call_that_is_not_disguised_is_reported_once() -> None:
    text = f"A &amp; B:\n```\n{JSON}\n```\nSo: {escaped(TAGS)}\nDone."
    assert [problem.raw for problem in read(text).problems] == [f"```\n{JSON}\n```\n", escaped(TAGS)]


def test_places_in_the_view_are_places_in_the_text() -> None:
    text = "> a &lt;b&gt; < c >\u200b（d"
    view = plain_view(text)
    assert view is not None
    assert view.text == "\na <b> <c>(d"
    for part, written in (("a", "a"), ("<b>", "&lt;b&gt;"), ("b", "b"), ("<c>", "< c >"), ("(d", "（d")):
        at = view.text.index(part)
        assert text[view.start(at) : view.end(at + len(part))] == written
    assert view.start(0) == 0


def test_text_without_disguises_has_no_view() -> None:
    assert plain_view("a <b> c\n- d") is plain_view("abc") is plain_view("Größe, 茶") is None
    assert [may_be_disguised(text) for text in ("abc", "a>", "a&b", "ä", "\\")] == [False, True, True, True, True]
