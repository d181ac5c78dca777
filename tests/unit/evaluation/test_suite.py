from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolwire import ConfigurationError
from toolwire.evaluation.suite import load_rows

TOOL: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALLS = [{"name": "get_weather", "arguments": {"city": ["Paris"]}}]


def row(**members: Any) -> dict[str, Any]:
    return {"question": "Weather?", "tools": [TOOL], "calls": CALLS, **members}


def without_calls(**members: Any) -> dict[str, Any]:
    return {"question": "Weather?", "tools": [TOOL], **members}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in rows), "utf-8")
    return path


def test_rows_of_all_kinds(tmp_path: Path) -> None:
    suite = load_rows(
        write(
            tmp_path / "mine.jsonl",
            row(id="a", group="g"),
            "",
            without_calls(refusal=True),
            without_calls(
                any_call=True, question=[{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
            ),
        )
    )
    assert suite.name == "mine" and suite.broken == ()
    first, second, third = suite.questions
    assert (first.id, first.group, first.expected.calls[0].arguments) == ("a", "g", {"city": ["Paris"]})
    assert (second.id, second.expected.rule) == ("line 3", "no_call")
    assert [message.role for message in third.messages] == ["system", "user"]
    assert third.expected.rule == "any_call"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "it is not JSON: Expecting property name"),
        ("[" * 100_000, "recursion"),
        ("3", "it is a JSON number, and not an object"),
        (row(question=""), "question: it is empty"),
        (row(question="\ud800"), "half of a surrogate pair"),
        (row(tools=[]), "tools: it is empty"),
        (row(tools=[{"nothing": 1}]), "name"),
        (row(call=CALLS), "call: there is no such key"),
        (row(calls=[]), '"calls" is empty'),
        (row(refusal=True), "a row has one of the members"),
        (without_calls(), "a row has one of the members"),
        (row(calls=[{"name": "get_weather", "arguments": {"city": "Paris"}}]), "calls.0.arguments.city"),
        (row(calls=[{"name": "get_wether", "arguments": {}}]), "no tool is called 'get_wether'"),
        (row(calls=[{"name": "get_weather", "arguments": {"city": []}}]), "get_weather.city is an empty list"),
        (
            row(calls=[{"name": "get_weather", "arguments": {"citty": ["Paris"]}}]),
            "no parameter 'citty'; there are city",
        ),
        (
            row(
                tools=[{**TOOL, "parameters": {**TOOL["parameters"], "required": ["city"]}}],
                calls=[{"name": "get_weather", "arguments": {}}],
            ),
            "get_weather requires city, and the row lists no",
        ),
        (row(tools=[TOOL, TOOL]), "tools: two have the name 'get_weather'"),
        (json.dumps(row(x=0)).replace("0", "NaN"), "NaN is not a number"),
        (json.dumps(row(x=0)).replace("0", "1e999"), "1e999 is out of range"),
        (row(question=" \n"), "the question is empty"),
        (row(question=[{"role": "user", "content": ""}]), "the question is empty"),
        (row(question=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]), "role assistant"),
        (row(refusal="no"), "refusal"),
        (row(id="good"), "an earlier row has the id 'good'"),
    ],
)
def test_a_broken_row_is_named_by_its_line_and_the_others_count(tmp_path: Path, line: Any, reason: str) -> None:
    suite = load_rows(write(tmp_path / "mine.jsonl", row(id="good"), line, row(id="other")))
    assert [question.id for question in suite.questions] == ["good", "other"]
    (broken,) = suite.broken
    assert broken.place.endswith("mine.jsonl, line 2")
    assert reason in broken.reason and "\n" not in broken.reason


def test_a_file_in_utf_16_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes("".join(json.dumps(row(id=name)) + "\n" for name in "ab").encode("utf-16"))
    with pytest.raises(ConfigurationError, match=r"line 1: it is not UTF-8: .* with iconv"):
        load_rows(path)


def test_a_file_without_questions_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"has no question: .*line 1: "):
        load_rows(write(tmp_path / "mine.jsonl", "{"))
    with pytest.raises(ConfigurationError, match=r"has no question$"):
        load_rows(write(tmp_path / "empty.jsonl"))
    with pytest.raises(ConfigurationError, match=r"No such file"):
        load_rows(tmp_path / "missing.jsonl")


def test_a_sample_alternates_groups_and_draws_from_each_alone(tmp_path: Path) -> None:
    rows = [row(id=f"{group}{number}", group=group) for group in "abc" for number in range(9)]
    suite = load_rows(write(tmp_path / "mine.jsonl", *rows))
    drawn = [question.id for question in suite.sample(7, 5).questions]
    assert [id[0] for id in drawn] == list("abcabca")
    assert drawn == [question.id for question in suite.sample(20, 5).questions][:7]
    assert drawn != [question.id for question in suite.sample(7, 6).questions]
    alone = load_rows(write(tmp_path / "b.jsonl", *(entry for entry in rows if entry["group"] == "b")))
    assert [question.id for question in alone.sample(2, 5).questions] == [drawn[1], drawn[4]]
    assert len(suite.sample(None, 5).questions) == 27
