"""The exported descriptions are enough to read calls: a reader that does only what `spec/` says agrees with ours."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.rows import Row
from tests.spec.rows import DOCUMENT, SHARED, UNREAD, complete_rows, first_reading, rows_of, second_reading
from tests.spec.second_reader import read

ROOT = Path(__file__).parents[2]
READER = sorted(Path(__file__).parent.glob("second_*.py"))

_ALL_ROWS = """
    action_json anthropic_xml apertus apriel autobyteus_json autobyteus_xml beam cohere_action cohere_json cwm
    deepseek_dsml deepseek_v3 deepseek_v4_1 dots ernie45 firefunction functionary_v2 functionary_v2_5 functionary_v3_1
    functionary_v3_2 functiongemma gemini_json gemma4 gemma_tool_code gigachat gigachat35 glimmer glm4 granite
    granite_20b harmony hunyuan hunyuan_v3 inkling internlm iquest_coder_v2 jamba json_fence k2_horizon kimi_k3 laguna
    langchain_xml llama3_json longcat mimo minicpm5 minimax_json minimax_m2 minimax_m3 nemotron olmo3 openai_json phi4
    plamo3 qwen3_coder qwen_agent rwkv seed_oss smolagents_code solar_open solar_open2 step3 telechat4
    xlam
"""
ALL_ROWS = frozenset(_ALL_ROWS.split())
"""Formats of which both readers read every complete row alike."""

_ROWS_WITHOUT_REPAIR = """
    bare_json deepseek_v3_1 forge_json forge_xml hermes kimi_k2 lfm2 mistral_args mistral_json pythonic react sarashina
    utp_xml
"""
ROWS_WITHOUT_REPAIR = frozenset(_ROWS_WITHOUT_REPAIR.split())
"""Formats of which both read every complete row alike that needs no repair: the second reader repairs nothing."""


SHARED_ROWS = complete_rows(SHARED)
"""Further rows beside the checkout, by format; most formats have some."""


def _differences(rows: list[Row], *, repaired: bool) -> dict[str, tuple[Any, Any]]:
    different = {}
    for row in rows:
        first, needs_repair = first_reading(row)
        if (repaired or not needs_repair) and (second := second_reading(row)) != first:
            different[row["id"]] = (first, second)
    return different


@pytest.mark.parametrize("name", sorted(ALL_ROWS | ROWS_WITHOUT_REPAIR))
def test_the_second_reader_agrees_on_our_rows(name: str) -> None:
    rows = complete_rows()[name]
    assert any(name in ALL_ROWS or not first_reading(row)[1] for row in rows)
    assert not _differences(rows, repaired=name in ALL_ROWS)


@pytest.mark.skipif(not SHARED.is_dir(), reason="there is no folder with further rows beside the checkout")
@pytest.mark.parametrize("name", sorted((ALL_ROWS | ROWS_WITHOUT_REPAIR) & SHARED_ROWS.keys()))
def test_the_second_reader_agrees_on_shared_rows(name: str) -> None:
    assert not _differences(SHARED_ROWS[name], repaired=name in ALL_ROWS)


@pytest.mark.parametrize("folder", [None, SHARED], ids=["ours", "shared"])
def test_the_second_reader_reads_no_call_that_ours_does_not(folder: Path | None) -> None:
    if folder is not None and not folder.is_dir():
        pytest.skip("there is no folder with further rows beside the checkout")
    rows = [row for kind in ("negative", "malformed", "truncated") for row in rows_of(kind, folder)]
    assert len(rows) > 200
    readings = {row["id"]: (first_reading(row)[0].calls, second_reading(row).calls) for row in rows}
    assert not {name: second for name, (first, second) in readings.items() if any(call not in first for call in second)}


def test_every_format_is_in_one_list_and_most_agree() -> None:
    assert len(ALL_ROWS) >= 64
    named = [*ALL_ROWS, *ROWS_WITHOUT_REPAIR, *UNREAD, "plain"]  # plain has no calls
    assert sorted(named) == sorted(wire["name"] for wire in DOCUMENT["formats"])


def test_the_prose_names_every_member_that_a_reader_needs() -> None:
    prose = (ROOT / "spec" / "README.md").read_text("utf-8")
    schema = json.loads((ROOT / "spec" / "formats.schema.json").read_text("utf-8"))
    members = {(node, member) for node, value in schema["$defs"].items() for member in value.get("properties", ())}
    of_rows = {("row", member) for member in ("tools", "text", "reasoning_started", "primed", "kind", "expect")}
    missing = {(node, member) for node, member in members | of_rows if f"`{member}`" not in prose and member != "node"}
    assert missing == {("Listing", "each"), ("Listing", "shape")}  # definitions are written, not read


def test_the_second_reader_imports_nothing_of_toolwire() -> None:
    imported = set()
    for path in READER:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    others = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
    modules = {f"tests.spec.{path.stem}" for path in READER}
    assert len(modules) == 5
    assert others < modules


def test_a_reader_refuses_versions_and_nodes_that_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="version"):
        read({**DOCUMENT, "version": 2}, "hermes", "", [])
    hermes = next(wire for wire in DOCUMENT["formats"] if wire["name"] == "hermes")
    changed = {**hermes, "blocks": [[{"node": "Word"}]]}
    with pytest.raises(LookupError, match="Word"):
        read({**DOCUMENT, "formats": [changed]}, "hermes", "x", [])
