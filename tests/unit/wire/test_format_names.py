"""Names of formats: aliases, case, and the characters between their parts."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from toolwire.errors import UnknownFormat
from toolwire.wire.format_registry import get_format

_LINES = (Path(__file__).parent / "engine_parsers.tsv").read_text(encoding="utf-8").splitlines()
ENGINE_PARSERS = [*csv.DictReader((line for line in _LINES if not line.startswith("#")), delimiter="\t")]


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("gemma-4", "gemma4"),
        ("gemma_4", "gemma4"),
        ("deepseek-v4", "deepseek_dsml"),
        ("DeepSeek-V3.2", "deepseek_dsml"),
        ("glm-4.5", "glm4"),
        ("Qwen3-Coder", "qwen3_coder"),
    ],
)
def test_separators_in_a_name_are_equal(name: str, format_name: str) -> None:
    assert get_format(name).name == format_name


@pytest.mark.parametrize("name", ["auto", "a.u.t.o", "gemma-", "deepseek"])
def test_a_name_of_no_format_is_refused(name: str) -> None:
    with pytest.raises(UnknownFormat):
        get_format(name)


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row['engine']}-{row['parser']}") for row in ENGINE_PARSERS])
def test_an_engines_name_of_a_parser_is_the_name_of_its_format(row: dict[str, str]) -> None:
    if row["format"] == "-":
        with pytest.raises(UnknownFormat):
            get_format(row["parser"])
    else:
        assert get_format(row["parser"]).name == row["format"]
