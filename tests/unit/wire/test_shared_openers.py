"""Openers that several formats share: the text behind one decides which of the formats are tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

import toolwire
from toolwire.wire.shared_openers import Candidate, SharedOpener, candidate


def shared(opener: str, *names: str) -> SharedOpener:
    return SharedOpener(candidate(toolwire.get_format(name), opener) for name in names)


@pytest.fixture
def tool_call() -> SharedOpener:
    return shared("<tool_call>", "hermes", "qwen3_coder", "utp_xml", "glm4", "granite", "minimax_m3", "llama3_json")


def tried(opener: SharedOpener, text: str, *, final: bool = False) -> list[str] | None:
    competing = opener.competing(text, 0, final)
    return None if competing is None else [each.wire.name for each in competing]


@pytest.mark.parametrize(
    ("behind", "names"),
    [
        ('{"name"', ["hermes"]),
        ('\n{"name"', ["hermes"]),
        ("\n<function=f>", ["qwen3_coder"]),
        ("<name>f", ["utp_xml"]),
        ("<NAME>f", ["utp_xml"]),
        ("get_weather\n", ["glm4"]),
        ('<invoke name="f">', ["minimax_m3"]),
    ],
)
def test_only_formats_that_can_continue_are_tried(tool_call: SharedOpener, behind: str, names: list[str]) -> None:
    assert tried(tool_call, behind) == names


def test_a_list_of_calls_may_be_empty_and_then_the_closing_markers_decide(tool_call: SharedOpener) -> None:
    assert tried(tool_call, "[") == ["hermes", "utp_xml", "granite"]


@pytest.mark.parametrize("behind", ["", "\n", " \n ", "<", "<func", "\n<function"])
def test_more_text_is_awaited_before_the_formats_are_told_apart(tool_call: SharedOpener, behind: str) -> None:
    assert tried(tool_call, behind) is None


@pytest.mark.parametrize("behind", ["", "\n", "<func"])
def test_every_format_is_tried_on_a_text_that_ends_too_early(tool_call: SharedOpener, behind: str) -> None:
    assert tried(tool_call, behind, final=True) == [each.wire.name for each in tool_call.candidates]


def test_the_wait_for_a_character_that_is_not_white_space_is_bounded(tool_call: SharedOpener) -> None:
    assert tried(tool_call, " " * 63) is None
    assert tried(tool_call, " " * 64) == [each.wire.name for each in tool_call.candidates]
    assert tried(tool_call, " " * 64 + "{") == tried(tool_call, " " * 64)


def test_the_first_format_reports_text_that_no_format_can_continue_with(tool_call: SharedOpener) -> None:
    assert tried(tool_call, "(") == ["hermes"]


def test_a_lone_format_needs_no_more_text() -> None:
    assert tried(shared("<tool_call>", "glm4"), "") == ["glm4"]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_white_space_behind_an_opener_hides_no_call(size: int) -> None:
    text = f'<tool_call>{" " * 200}{{"name": "f", "arguments": {{"a": 1}}}}</tool_call>'
    parser = toolwire.StreamParser(tools=[{"name": "f"}])
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    response = toolwire.collect([event for piece in pieces for event in parser.feed(piece)] + list(parser.finish()))
    assert [call.arguments for call in response.tool_calls] == [{"a": 1}]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_lone_format_without_markers_leaves_closing_markers_to_all_formats(size: int) -> None:
    text = 'Sure: start|>[f(a="b")]<|tool_call_end|>'
    parser = toolwire.StreamParser(tools=[{"name": "f"}])
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    response = toolwire.collect([event for piece in pieces for event in parser.feed(piece)] + list(parser.finish()))
    assert [call.arguments for call in response.tool_calls] == [{"a": "b"}]
    assert response.content == "Sure: start|>"


@pytest.mark.parametrize(
    ("name", "opener", "character", "continues"),
    [
        ("glm4", "<tool_call>", "g", True),
        ("glm4", "<tool_call>", "(", False),
        ("react", "Action:", "r", True),
        ("react", "Action:", "(", False),
        ("deepseek_v3_1", "<\uff5ctool\u2581call\u2581begin\uff5c>", "f", True),
        ("deepseek_v3_1", "<\uff5ctool\u2581call\u2581begin\uff5c>", "(", False),
        # other text than a name may follow: a list, code, a value
        ("lfm2", "<|tool_call_start|>", "(", True),
        ("gemma_tool_code", "```tool_code", "(", True),
        ("functionary_v3_1", "<function=", "(", True),
        # text may not follow
        ("forge_xml", "<tool>", "f", False),
        ("hermes", "<tool_call>", "f", False),
        ("anthropic_xml", "<invoke>", "f", False),
    ],
)
def test_a_name_begins_with_a_letter_and_other_text_with_any_character(
    name: str, opener: str, character: str, continues: bool
) -> None:
    assert candidate(toolwire.get_format(name), opener).continues_with("", character) is continues


def test_at_the_end_of_the_text_only_half_of_a_marker_may_be_any_format(tool_call: SharedOpener) -> None:
    assert tried(tool_call, "get_weather\n", final=True) == ["glm4"]
    assert len(tried(tool_call, "<func", final=True) or ()) == len(tool_call.candidates)


@pytest.mark.parametrize("place", ["anywhere", "ends_reasoning", "markers", "marked"])
def test_a_format_is_preceded_by_an_equal_one_that_counts_in_as_many_places(place: str) -> None:
    def counting(counts: bool) -> Candidate:
        one = candidate(toolwire.get_format("hermes"), "<tool_call>")
        wire = replace(one.wire, markers=counts or place != "markers")
        block = replace(one.block, marked=counts or place != "marked")
        anywhere, ends_reasoning = counts or place != "anywhere", counts or place != "ends_reasoning"
        return replace(one, wire=wire, block=block, anywhere=anywhere, ends_reasoning=ends_reasoning)

    for marker in ("{", "<"):
        assert counting(True).is_preceded(counting(True), marker)
        assert counting(False).is_preceded(counting(True), marker)
        assert not counting(True).is_preceded(counting(False), marker)
