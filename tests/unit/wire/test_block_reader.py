"""One block of calls: the problem of members that are not read, and markers around and between calls."""

from __future__ import annotations

import pytest
from tests.property.laws import check_chunking

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


@pytest.mark.parametrize(
    ("count", "shown"),
    [(1, "'m0'."), (2, "'m0', 'm1'."), (5, "'m3', 'm4'."), (6, "'m4' and 1 more."), (8, "'m4' and 3 more.")],
)
def test_members_that_are_not_read_are_named_where_their_call_is(count: int, shown: str) -> None:
    members = ", ".join(f'"m{number}": 1' for number in range(count))
    call = f'<tool_call>{{"name": "f", "arguments": {{}}, {members}}}</tool_call>'
    response = check_chunking(f"Look: {call} ", format="hermes", tools=TOOLS).response
    (problem,) = response.problems
    assert (problem.kind, problem.position, problem.raw) == ("unread_members", len("Look: "), call)
    assert problem.message.startswith("The call to 'f' was read without these members beside its arguments: 'm0'")
    assert problem.message.endswith(shown)


@pytest.mark.parametrize("repair", ["safe", "none"])
def test_a_name_is_only_resolved_where_repairs_are_allowed(repair: str) -> None:
    text = '<tool_call>{"name": "F", "arguments": {}}</tool_call>'
    (call,) = check_chunking(text, format="hermes", tools=TOOLS, repair=repair).response.tool_calls
    assert (call.name, call.repairs) == (("f", ("name_resolved",)) if repair == "safe" else ("F", ()))
    text = text.replace("F", "f")
    (call,) = check_chunking(text, format="hermes", tools=TOOLS, repair=repair).response.tool_calls
    assert (call.name, call.repairs) == ("f", ())


@pytest.mark.parametrize("closers", ["</tool_call>", "</tool_call></tool_call>", "</tool_call>\n</tool_call>\n"])
def test_repeated_closing_markers_are_markup(closers: str) -> None:
    text = f'<tool_call>{{"name": "f", "arguments": {{}}}}{closers}Done.'
    response = check_chunking(text, format="hermes", tools=TOOLS).response
    assert ([call.name for call in response.tool_calls], response.content.strip()) == (["f"], "Done.")


@pytest.mark.parametrize("repair", ["safe", "none"])
@pytest.mark.parametrize(("name", "reads"), [("f", True), ("g", False), ("F", None)])
def test_a_name_alone_in_a_wrapper_has_to_be_a_known_tools(name: str, reads: bool | None, repair: str) -> None:
    text = f"<tool_call>{name}</tool_call>"
    response = check_chunking(text, format="hermes", tools=TOOLS, repair=repair).response
    reads = repair == "safe" if reads is None else reads
    assert [call.name for call in response.tool_calls] == ["f"] * reads
    assert response.content == ("" if reads else text)


def test_closing_markers_of_other_blocks_are_markup_only_behind_a_call_without_markers() -> None:
    call = '{"name": "f", "arguments": {}}'
    response = check_chunking(f"{call}</tool_call> Done.", format="auto", tools=TOOLS).response
    assert ([made.name for made in response.tool_calls], response.content.strip()) == (["f"], "Done.")
    response = check_chunking(f"[TOOL_CALLS][{call}]</tool_call>", format="mistral_json", tools=TOOLS).response
    assert ([made.name for made in response.tool_calls], response.content) == (["f"], "</tool_call>")
