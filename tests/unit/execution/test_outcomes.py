"""Outcomes of calls: results of values, error results, copies."""

from typing import Any

import pytest

from toolwire import FilePart, ImagePart, Session, TextPart, ToolCall, ToolResult
from toolwire.execution.outcomes import MAX_ERROR, Issue, build_result, copy_json, failed_result, refuse

CALL = ToolCall("look", {}, id="c1")
IMAGE = ImagePart(data="aGk=", media_type="image/png")
FILE = FilePart(data="aGk=", media_type="application/pdf")


def test_an_error_message_is_cut_at_its_limit() -> None:
    assert failed_result(CALL, "x" * 1_000).error == "x" * 1_000
    assert failed_result(CALL, "x" * 1_001).error == "x" * MAX_ERROR == "x" * 1_000


def test_only_an_untrusted_message_taints_the_session() -> None:
    session = Session()
    outcome = refuse(CALL, Issue("denied", "not here"), session)
    assert not session.untrusted
    assert outcome.issue is not None
    assert outcome.result.error == "not here"
    refuse(CALL, Issue("invalid_arguments", "words of a server", untrusted=True), session)
    assert session.untrusted


@pytest.mark.parametrize(
    ("value", "result", "images", "files"),
    [
        (IMAGE, None, (IMAGE,), ()),
        (FILE, None, (), (FILE,)),
        (TextPart("a"), "a", (), ()),
        ([IMAGE, FILE], None, (IMAGE,), (FILE,)),
        (("a", IMAGE, TextPart("b")), "a\nb", (IMAGE,), ()),
        (["a", IMAGE, TextPart("b"), FILE], "a\nb", (IMAGE,), (FILE,)),
        ((IMAGE, FILE, IMAGE), None, (IMAGE, IMAGE), (FILE,)),
        (["a", "b"], ["a", "b"], (), ()),
        ([], [], (), ()),
    ],
)
def test_parts_of_a_value_become_parts_of_the_result(value: Any, result: Any, images: Any, files: Any) -> None:
    assert build_result(CALL, value) == ToolResult("c1", "look", result, images=images, files=files)


def test_parts_beside_other_values_are_no_list_of_parts() -> None:
    built = build_result(CALL, [IMAGE, 1])
    assert built.images == ()
    assert isinstance(built.result, list)
    assert built.result[1] == 1


def test_a_result_answers_its_own_call_only() -> None:
    built = build_result(CALL, ToolResult("other", "else", {"a": (1, 2)}))
    assert (built.call_id, built.tool_name, built.result) == ("c1", "look", {"a": [1, 2]})


def test_a_copy_shares_no_container_with_the_value() -> None:
    value = {"list": [1, [2, {"a": "b"}]], "tuple": (3, (4, [5])), "text": "t", "none": None}
    copied = copy_json(value)
    assert copied == {"list": [1, [2, {"a": "b"}]], "tuple": [3, [4, [5]]], "text": "t", "none": None}
    assert copied["list"] is not value["list"]
    assert copied["list"][1] is not value["list"][1]
    assert copied["list"][1][1] is not value["list"][1][1]
    assert copied["tuple"][1][1] is not value["tuple"][1][1]
    assert copy_json("text") == "text"
    assert copy_json([1, "a"]) == [1, "a"]


def test_a_result_does_not_change_with_the_value_of_the_tool() -> None:
    value = {"rows": [1]}
    built = build_result(CALL, value)
    value["rows"].append(2)
    assert built.result == {"rows": [1]}
