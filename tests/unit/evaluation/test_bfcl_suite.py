from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from toolwire import ConfigurationError
from toolwire.evaluation.bfcl_suite import load_bfcl
from toolwire.evaluation.suite_names import open_suite

FUNCTION = {
    "name": "geometry.area",
    "description": "Area.",
    "parameters": {
        "type": "dict",
        "properties": {
            "type": {"type": "string", "description": "a parameter that is called type"},
            "size": {"type": "float"},
            "pair": {"type": "tuple", "items": {"type": "float"}},
            "extra": {"type": "any"},
        },
        "required": ["size"],
    },
}


def write(folder: Path, name: str, *rows: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"BFCL_v4_{name}.json").write_text("\n".join(map(json.dumps, rows)), "utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "bfcl_eval" / "data"
    question = [[{"role": "user", "content": "How large?"}]]
    rows = [{"id": f"simple_python_{at}", "question": question, "function": [FUNCTION]} for at in range(2)]
    write(folder, "simple_python", *rows)
    write(
        folder / "possible_answer",
        "simple_python",
        {"id": "simple_python_0", "ground_truth": [{"geometry.area": {"size": [2, 2.0], "type": ["a", ""]}}]},
    )
    write(folder, "irrelevance", {"id": "irrelevance_0", "question": question, "function": [FUNCTION]})
    write(folder, "live_relevance", {"id": "live_relevance_0", "question": question, "function": [FUNCTION]})
    return folder


def test_types_become_those_of_json_schema(data: Path) -> None:
    suite = load_bfcl(["simple_python"], data)
    (question,) = suite.questions
    assert question.parameters["geometry.area"]["properties"] == {
        "type": {"type": "string", "description": "a parameter that is called type"},
        "size": {"type": "number"},
        "pair": {"type": "array", "items": {"type": "number"}},
        "extra": {},
    }
    assert question.parameters["geometry.area"]["type"] == "object"
    assert question.expected.calls[0].arguments == {"size": [2, 2.0], "type": ["a", ""]}


def test_a_question_without_an_answer_is_broken(data: Path) -> None:
    (broken,) = load_bfcl(["simple_python"], data).broken
    assert broken.place.endswith("BFCL_v4_simple_python.json, line 2")
    assert "simple_python_1" in broken.reason


def test_categories_without_answers_have_a_rule(data: Path) -> None:
    suite = load_bfcl(["irrelevance", "live_relevance"], data)
    assert [question.expected.rule for question in suite.questions] == ["no_call", "any_call"]


def test_the_data_of_the_installed_package_are_found_without_importing_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data.parent / "__init__.py").write_text("raise RuntimeError('imported')", "utf-8")
    monkeypatch.syspath_prepend(str(data.parent.parent))
    assert [question.id for question in open_suite("bfcl:irrelevance").questions] == ["irrelevance_0"]
    assert "bfcl_eval" not in sys.modules


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pip install --no-deps bfcl-eval"):
        open_suite("bfcl")
    with pytest.raises(ConfigurationError, match="no category 'simpel'; did you mean bfcl:simple"):
        open_suite("bfcl:simpel")
    with pytest.raises(ConfigurationError, match="neither a suite"):
        open_suite(str(tmp_path / "missing.jsonl"))


def test_a_category_has_its_earlier_name_too(data: Path) -> None:
    assert [question.id for question in load_bfcl(["simple"], data).questions] == ["simple_python_0"]


def test_a_broken_line_is_named_and_the_rest_is_read(data: Path) -> None:
    file = data / "BFCL_v4_irrelevance.json"
    row = json.loads(file.read_text("utf-8"))
    row["question"][0][0]["content"] = "two\u2028lines for Python, one for JSON"
    good = json.dumps(row, ensure_ascii=False).encode()
    file.write_bytes(b"\n".join([good, b"{cut", b"\xff", b"7", b'{"id": "x", "question": []}']))
    suite = load_bfcl(["irrelevance"], data)
    assert len(suite.questions) == 1
    assert [row.place.rpartition("line ")[2] for row in suite.broken] == ["2", "3", "4", "5"]
