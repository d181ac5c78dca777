"""Shapes that formats read because another format writes them in the same wrapper."""

from __future__ import annotations

from typing import Any

import pytest
from tests.streams import parsed

import toolwire
from toolwire import parse
from toolwire.wire import FORMATS
from toolwire.wire.compiled_format import compile_format
from toolwire.wire.format_registry import all_formats
from toolwire.wire.shared_wrappers import after_first_call, with_shared_shapes
from toolwire.wire.syntax import Args, Call, JsonCall, Lit, Many, Name, Node, OneOf, WireFormat

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]
SHAPES = {
    "json": '<tool_call>{"name": "f", "arguments": {"a": "1"}}</tool_call>',
    "function": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
    "bare function": "<function=f><parameter=a>1</parameter></function>",
    "function with json": '<function=f>{"a": "1"}</function>',
    "pairs": "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
    "elements": '<tool_call><name>f</name><arguments>{"a": "1"}</arguments></tool_call>',
    "invoke": '<tool_call><invoke name="f"><parameter name="a">1</parameter></invoke></tool_call>',
}
BODIES = {
    "name and json": '<tool_call>f{"a": "1"}</tool_call>',
    "name, bracket and json": '<tool_call>f>{"a": "1"}</tool_call>',
    "python": '<tool_call>f(a="1")</tool_call>',
}
FAMILY = ("hermes", "qwen3_coder", "glm4", "laguna", "utp_xml", "granite", "ernie45", "llama3_json")


@pytest.mark.parametrize("format", [*FAMILY, "hunyuan_v3", "mimo", "minimax_m3", "auto"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_the_shape_inside_a_wrapper_decides_whatever_format_was_named(format: str, shape: str, size: int) -> None:
    text = f"Now: {SHAPES[shape]}"
    parser = toolwire.StreamParser(format=format, tools=TOOLS)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    read = toolwire.collect([*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()])
    assert [(call.name, call.arguments["a"].strip()) for call in read.tool_calls] == [("f", "1")]
    assert (read.content, read.problems) == ("Now: ", ())


@pytest.mark.parametrize("format", [*FAMILY, "auto"])
@pytest.mark.parametrize("body", BODIES)
def test_a_name_in_a_wrapper_may_be_followed_by_json_or_by_a_call_in_python(format: str, body: str) -> None:
    read = parse(BODIES[body], format=format, tools=TOOLS)
    assert [(call.name, call.arguments) for call in read.tool_calls] == [("f", {"a": "1"})]


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "utp_xml"])
@pytest.mark.parametrize("text", ["<tool_call>...</tool_call>", "<tool_call>g</tool_call>", "<tool_call>a call"])
def test_a_name_alone_counts_in_foreign_wrappers_only_if_it_is_a_tools(format: str, text: str) -> None:
    read = parse(text, format=format, tools=TOOLS)
    assert (read.tool_calls, read.content) == ((), text)
    assert parse("<tool_call>f</tool_call>", format=format, tools=TOOLS).tool_calls


@pytest.mark.parametrize("format", ["glm4", "laguna", "auto"])
def test_dots_are_not_the_name_of_a_tool(format: str) -> None:
    read = parse("Write <tool_call>...</tool_call> for a call.", format=format, tools=TOOLS)
    assert (read.tool_calls, read.content) == ((), "Write <tool_call>...</tool_call> for a call.")


def test_shapes_mix_in_one_message_named_or_detected() -> None:
    text = SHAPES["json"] + SHAPES["pairs"] + SHAPES["function"]
    for format in ("hermes", "auto"):
        read = parse(text, format=format, tools=TOOLS)
        assert [call.arguments for call in read.tool_calls] == [{"a": "1"}] * 3
        assert {call.format for call in read.tool_calls} == {"hermes"}


def test_without_a_wrapper_no_foreign_shape_is_read() -> None:
    for text in ('{"name": "f", "arguments": {"a": "1"}}', "f<arg_key>a</arg_key><arg_value>1</arg_value>"):
        for format in ("qwen3_coder", "glm4"):
            assert parse(text, format=format, tools=TOOLS).content == text


def test_an_empty_wrapper_is_markup() -> None:
    for format in ("hermes", "qwen3_coder", "glm4"):
        read = parse("a<tool_call>\n</tool_call>b", format=format, tools=TOOLS)
        assert (read.content, read.problems) == ("ab", ())


def test_strict_formats_read_their_own_shapes_alone() -> None:
    for wire in FORMATS:
        if wire.strict:
            assert with_shared_shapes(wire, all_formats()) is wire
    as_json = '<tool>{"tool_name": "f", "arguments": {"a": "1"}}</tool>'
    assert parse(as_json, format="forge_xml", tools=TOOLS).content == as_json


def test_a_format_of_ones_own_shares_its_wrappers_too() -> None:
    opener, closer = Lit("<tool_call>"), Lit("</tool_call>", need="forgiven")
    own = WireFormat("own", blocks=((opener, JsonCall(name=("tool",)), closer),))
    assert parse('<tool_call>{"tool": "f"}</tool_call>', format=own, tools=TOOLS).tool_calls
    assert parse(SHAPES["function"], format=own, tools=TOOLS).tool_calls[0].format == "own"
    alone = WireFormat("alone", blocks=((Lit("<alone>"), OneOf(((Call((Name(),)),),))),))
    assert with_shared_shapes(alone, all_formats()) is alone


_WRAP, _MAYBE, _NAME_END, _JSON = Lit("<w>"), Lit("<o>", need="optional"), Lit("|"), JsonCall()


@pytest.mark.parametrize(
    ("own", "extended"),
    [
        ((_WRAP, Call((Lit("["), Name()))), (_WRAP, OneOf(((Call((Lit("["), Name())),), (_JSON,))))),
        ((Call((_WRAP, Name())),), (_WRAP, OneOf(((Call((Name(),)),), (_JSON,))))),
        ((Call((_WRAP, Name(), _NAME_END)),), (_WRAP, OneOf(((Call((Name(), _NAME_END)),), (_JSON,))))),
        ((Many((_WRAP, Call((Name(),)))),), (Many((_WRAP, OneOf(((Call((Name(),)),), (_JSON,))))),)),
        ((_MAYBE, _WRAP, Call((Name(),))), (_MAYBE, _WRAP, OneOf(((Call((Name(),)),), (_JSON,))))),
        ((_WRAP, _JSON, _NAME_END), None),
        ((Lit("<x>"), Call((Name(),))), None),
        ((Call((_WRAP,)),), None),
    ],
)
def test_shapes_of_others_follow_the_own_one_behind_its_opener(
    own: tuple[Node, ...], extended: tuple[Node, ...] | None
) -> None:
    """A shape that begins like the own one, or like one that was added before, would never be read."""
    wire = WireFormat("own", blocks=(own,))
    others = [WireFormat(name, blocks=((_WRAP, _JSON),)) for name in ("one", "two")]
    hidden: list[dict[str, Any]] = [{"strict": True}, {"markers": False}, {"detected": False}]
    others += [WireFormat("hidden", blocks=((_WRAP, Lit("<z>"), _JSON),), **options) for options in hidden]
    assert with_shared_shapes(wire, (wire, *others)).blocks == (extended or own,)


def test_a_name_without_a_mark_of_its_own_has_to_be_a_known_tools_in_foreign_wrappers() -> None:
    end = Lit("</w>", need="forgiven")
    wire = WireFormat("own", blocks=((_WRAP, _JSON),))
    known = Call((Name(known=True), _NAME_END))
    for shape, expected in (
        ((Call((Name(), _NAME_END)), end), (known, end)),
        (
            (OneOf(((Call((Name(), _NAME_END)),), (Lit("<z>"), _JSON))), end),
            (OneOf(((known,), (Lit("<z>"), _JSON))), end),
        ),
        ((Lit("<z>"), Call((Name(), _NAME_END)), end), (Lit("<z>"), Call((Name(), _NAME_END)), end)),
    ):
        other = WireFormat("other", blocks=((_WRAP, *shape),))
        assert with_shared_shapes(wire, (other,)).blocks == ((_WRAP, OneOf(((_JSON,), expected))),)


@pytest.mark.parametrize(
    ("behind", "is_read"),
    [((Lit("<j>"), _JSON), True), ((Lit("<n>"), Call((Name(), _NAME_END))), False), ((_JSON,), True)],
)
def test_a_block_whose_wrapper_may_be_missing_is_read_unless_text_follows_its_marker(
    behind: tuple[Node, ...], is_read: bool
) -> None:
    optional = Lit("<w>", need="optional")
    other = WireFormat("other", blocks=((optional, *behind),))
    wire = WireFormat("own", blocks=((_WRAP, Lit("<c>"), Call((Name(), Args()))),))
    blocks = with_shared_shapes(wire, (wire, other)).blocks
    assert ((optional, *behind) in blocks) is is_read
    unrelated = WireFormat("own", blocks=((Lit("<v>"), _JSON),))
    assert with_shared_shapes(unrelated, (other,)) is unrelated


def test_a_wrapper_that_may_be_missing_is_read_with_shapes_of_others_where_it_is_written() -> None:
    optional, call = Lit("<w>", need="optional"), Call((Lit("<n>"), Name()))
    wire = WireFormat("own", blocks=((optional, call),))
    other = WireFormat("other", blocks=((_WRAP, _JSON),))
    assert with_shared_shapes(wire, (other,)).blocks == ((_WRAP, OneOf(((call,), (_JSON,)))), (optional, call))
    alone = WireFormat("own", blocks=((_MAYBE, call),))
    assert with_shared_shapes(alone, (other,)) is alone


def test_only_openers_of_wrappers_that_may_be_missing_are_added() -> None:
    for wire in FORMATS:
        own = compile_format(wire).blocks.keys()
        shared = compile_format(with_shared_shapes(wire, all_formats())).blocks.keys()
        assert own <= shared
        assert not {"", "{", "[", "```"} & (shared - own)


_OBJECT = '{"name": "f", "arguments": {"a": "%s"}}'
_PRIMED = f"{_OBJECT % 1}</tool_call>\n<tool_call>{_OBJECT % 2}</tool_call>\n<tool_call>\n{_OBJECT % 3}\n</tool_call>"


@pytest.mark.parametrize(
    ("format", "level"), [("auto", "none"), ("auto", "whole_message"), ("hermes", "whole_message")]
)
@pytest.mark.parametrize("size", [1, 6, 1000])
def test_calls_after_one_whose_opener_the_prompt_had_written_are_read(format: str, level: Any, size: int) -> None:
    parser = toolwire.StreamParser(format=format, tools=TOOLS, fallback=level)
    pieces = [_PRIMED[at : at + size] for at in range(0, len(_PRIMED), size)]
    events = [event for piece in pieces for event in parser.feed(piece)] + [*parser.finish()]
    read = toolwire.collect(events)
    assert [call.arguments for call in read.tool_calls] == [{"a": "1"}, {"a": "2"}, {"a": "3"}]
    assert [event.index for event in events if isinstance(event, toolwire.CallStart)] == [0, 1, 2]
    assert len({call.id for call in read.tool_calls}) == 3
    assert (read.content.strip(), read.problems, read.finish_reason) == ("", (), toolwire.FinishReason.TOOL_CALLS)


def test_a_closing_tag_after_a_call_without_markers_is_markup() -> None:
    read = parse(f"{_OBJECT % 1}</tool_call> Done.", tools=TOOLS)
    assert ([call.arguments for call in read.tool_calls], read.content.strip()) == ([{"a": "1"}], "Done.")


@pytest.mark.parametrize("code", [_OBJECT % 2, f"<tool_call>{_OBJECT % 2}</tool_call>"])
def test_a_fence_after_text_behind_a_call_without_markers_hides_what_is_inside(code: str) -> None:
    fence = f"\nLike this:\n```json\n{code}\n```\n"
    read = parse(f"{_OBJECT % 1}{fence}", tools=TOOLS)
    assert ([call.arguments for call in read.tool_calls], read.content) == ([{"a": "1"}], fence)


_FENCE = f"```json\n{_OBJECT}\n```"
_LIST = f"[{_OBJECT}]"


@pytest.mark.parametrize("level", ["none", "whole_message"])
@pytest.mark.parametrize(
    ("first", "between", "second"),
    [
        (_FENCE, "\n", _FENCE),
        (_FENCE, "\n\n", _FENCE),
        (_FENCE, "\n", _OBJECT),
        (_OBJECT, "\n", _FENCE),
        (_OBJECT, ",\n", _OBJECT),
        (_OBJECT, ";", _OBJECT),
        (_LIST, ",\n", _LIST),
        (_LIST, "; ", _OBJECT),
        (_OBJECT, ", ", _LIST),
        (_LIST, "\n", _LIST),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_message_of_several_pieces_of_json_is_several_calls(
    first: str, between: str, second: str, level: Any, size: int
) -> None:
    read = parsed(first % 1 + between + second % 2, size, tools=TOOLS, fallback=level)
    assert [call.arguments for call in read.tool_calls] == [{"a": "1"}, {"a": "2"}]
    assert (read.content.strip(), read.problems) == ("", ())


@pytest.mark.parametrize("behind", [", and so on", "; done", ",", ", {", ", [1, 2]"])
def test_separator_that_separates_no_calls_is_content(behind: str) -> None:
    read = parse(f"{_OBJECT % 1}{behind}", tools=TOOLS)
    assert ([call.arguments for call in read.tool_calls], read.content) == ([{"a": "1"}], behind)


@pytest.mark.parametrize("format", [wire for wire in FORMATS if not wire.markers], ids=lambda wire: wire.name)
def test_after_a_call_without_markers_calls_of_marked_formats_are_read_too(format: WireFormat) -> None:
    later = after_first_call(format, FORMATS)
    assert later.blocks[: len(format.blocks)] == format.blocks
    assert len(later.blocks) > len(format.blocks)
    expected = (format.at, format.fences) if format.at == "anywhere" else ("markers", True)
    assert (later.at, later.fences) == expected
