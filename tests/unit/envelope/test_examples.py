"""The examples of the Tool Envelope's own documents, made again from a tree; where ours differ, why.

The rows' facts stand here; where the file that they are from lies beside the checkout, they are compared with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.envelope.tree import build, te

from toolwire.envelope.envelope import Envelope
from toolwire.envelope.grammar import CRUMB, EnvelopeDocument, EnvelopeHeader, EnvelopeSection, read_envelope
from toolwire.envelope.ranking import hot_zone
from toolwire.envelope.search_results import SearchResults
from toolwire.envelope.te_tools import te_run
from toolwire.errors import EnvelopeError
from toolwire.messages import ToolCall, ToolResult
from toolwire.search.ripgrep import find_ripgrep

SHARED = Path(__file__).resolve().parents[4] / "shared" / "mission" / "te_examples.jsonl"

HANDLE = "res_5f0c1e7a9b3d"
"""Stands for every handle: they are never the same twice."""

NOT_IN_THE_EXAMPLE = "lines were left out, so our header says truncated and names a handle"
COUNTED_ONCE = "each line that is left out is counted, once"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    build(root)
    return root


def grep(tree: Path, *arguments: str, **environ: str) -> EnvelopeDocument:
    done = te("grep", *arguments, cwd=tree, **environ)
    assert done.returncode in (0, 1, 2), done.stderr
    return read_envelope(done.stdout.removesuffix("\n"))


def told(document: EnvelopeDocument) -> str:
    """The envelope, with the same handle always."""
    return document.text.replace(document.header.handle or HANDLE, HANDLE)


# -- one function a row; it gives back what we write -----------------------------------------------------------------


def sdd_4_1_header(tree: Path) -> str:
    document = grep(tree, "database_connection")
    header = document.header
    assert (header.matches, header.files, header.truncated) == (847, 37, True)
    assert header.handle is not None
    plain = EnvelopeHeader(cmd="grep", matches=847, files=37, truncated=True, handle="res_01H...")
    return plain.text


def sdd_4_2_stream(tree: Path) -> str:
    return told(grep(tree, "--annotate", "--preview", "4", "database_connection"))


def sdd_7_invalid(tree: Path) -> str:
    done = te("grep", "[", cwd=tree)
    assert (done.returncode, done.stderr.startswith("te: ")) == (2, True)
    return done.stdout.removesuffix("\n")


def sdd_7_internal(tree: Path) -> str:
    broken = tree / "broken-rg"
    broken.write_text("#!/bin/sh\necho gone >&2\nexit 101\n")
    broken.chmod(0o755)
    done = te("grep", "x", cwd=tree, TE_RG=str(broken))
    assert done.returncode == 2
    return done.stdout.removesuffix("\n")


def sdd_1_2_mpd(tree: Path) -> str:
    meta = grep(tree, "database_connection").header.meta
    return json.dumps({name: meta[name] for name in ("matches", "truncated", "handle")})


def sdd_4_1_hint(_: Path) -> str:
    return EnvelopeHeader(cmd="grep", matches=0, hint="rag search available").text


def library(name: str, hits: list[str]) -> str:
    result = Envelope(preview=2).shape(ToolCall(name, {"query": "auth"}, "c"), ToolResult("c", name, hits))
    return told(read_envelope(result.text))


def hld_3_3(_: Path) -> str:
    more = [f"tools/auth/part{number}.py:1: auth" for number in range(42)]
    first = ["tools/auth/handler.py:15: def auth()", "tools/auth/service.py:89: auth.validate()"]
    return library("search", [*first, *more, "a.py:1: auth", "b/c.py:2: auth", "d.py:3: auth"])


def uat_4_8(_: Path) -> str:
    more = [f"tools/rag/part{number}.py:1: database_connection" for number in range(10)]
    first = [
        "tools/rag/database.py:42: def database_connection():",
        "tools/rag/database.py:89: database_connection.execute(",
    ]
    return library("search", [*first, *more, "a.py:1: x", "b/c.py:2: x", "d.py:3: x"])


def unit_basic(_: Path) -> str:
    return EnvelopeDocument(EnvelopeHeader(cmd="grep", matches=10, files=3)).text


def unit_none_excluded(_: Path) -> str:
    return EnvelopeDocument(EnvelopeHeader(cmd="grep", matches=5, files=None, hot_zone=None, error=None)).text


def unit_truncated(_: Path) -> str:
    return EnvelopeDocument(EnvelopeHeader(cmd="grep", matches=100, truncated=True, handle="res_abc123")).text


def unit_render(_: Path) -> str:
    section = EnvelopeSection("file.py:1: def foo():\nfile.py:5: def bar():", ("more results available",))
    return EnvelopeDocument(EnvelopeHeader(cmd="grep", matches=2), (section,)).text


def unit_breadcrumb(_: Path) -> str:
    text = EnvelopeDocument(EnvelopeHeader(cmd="x", size=0), (EnvelopeSection("x", ("42 more in tools/",)),)).text
    return text[text.index("\n" + CRUMB) :]


def zone(counts: dict[str, int], total: int) -> Callable[[Path], str]:
    def made(_: Path) -> str:
        findings = SearchResults()
        for folder, count in counts.items():
            for number in range(count):
                findings.hit(f"{folder}/{number}.py".encode())
        found = findings.compose("find", preview=1, limit=5_000, keep=lambda *_: None).header.hot_zone
        assert found == hot_zone(counts, total)
        return json.dumps(found)

    return made


def grep_nomatch(tree: Path) -> str:
    done = te("grep", "nomatch_5d41402abc4b", cwd=tree)
    assert done.returncode == 1
    return done.stdout


def grep_raw(tree: Path) -> str:
    done = te("-i", "grep", "def handle_grep", cwd=tree)
    assert done.returncode == 0
    if program := find_ripgrep():
        plain = subprocess.run(
            [program, "def handle_grep"], cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
        assert done.stdout == plain.stdout.decode()
    with pytest.raises(EnvelopeError):
        read_envelope(done.stdout)
    return done.stdout


def grep_invalid(tree: Path) -> str:
    return grep(tree, "[invalid").header.text


def passthrough_json(tree: Path) -> str:
    assert json.loads(te("--json", "no-such-command", cwd=tree).stdout)["exit_code"] == 1
    late = te("--json", "--timeout", "0.2", "sleep", "60", cwd=tree)
    value = json.loads(late.stdout)
    assert (late.returncode, value["exit_code"], value["error"]) == (124, 124, "command timed out after 0.2s: sleep 60")
    return te("--json", "printf", "...", cwd=tree).stdout


def mcp_te_run(_: Path) -> str:
    stand_in = "import json, sys; print(json.dumps({'ok': True, 'echo': sys.argv[-1]}))"
    return json.dumps(asyncio.run(te_run(command=[sys.executable, "-c", stand_in])(["run", "echo", "hello"])))


# -- the rows --------------------------------------------------------------------------------------------------------

Row = tuple[Callable[[Path], str], str, dict[str, Any], str]

BEGIN, END = "# TE_BEGIN_META", "# TE_END_META"
EXAMPLES: dict[str, Row] = {
    # id: what makes it, what we write, the header that the row asks for, why ours differs from the example
    "te/sdd-4.1-header": (
        sdd_4_1_header,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","matches":847,"files":37,"truncated":true,"handle":"res_01H..."}}\n{END}',
        {"v": 1, "cmd": "grep", "matches": 847, "files": 37, "truncated": True, "handle": "res_01H..."},
        "",
    ),
    "te/sdd-4.2-stream": (
        sdd_4_2_stream,
        f"""{BEGIN}
{{"v":1,"cmd":"grep","matches":847,"files":37,"truncated":true,"hot_zone":"tools/rag/ (73%)","handle":"{HANDLE}"}}
{END}

tools/rag/database.py:15: def database_connection():  # definition
tools/rag/database.py:89: database_connection.execute(  # hot usage
tools/rag/service.py:23: from .database import database_connection

# TE: 612 more in tools/rag/, 232 elsewhere

tests/test_database.py:7: mock_database_connection = ...

# TE: remaining 230 are test fixtures""",
        {"v": 1, "cmd": "grep", "matches": 847, "hot_zone": "tools/rag/ (73%)"},
        f"{NOT_IN_THE_EXAMPLE}; {COUNTED_ONCE}: 847 less the 612 and the 3 that are shown is 232, not 235",
    ),
    "te/sdd-7-invalid": (
        sdd_7_invalid,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","error":"invalid_pattern"}}\n{END}\n\n[TE] invalid regex pattern',
        {"v": 1, "cmd": "grep", "error": "invalid_pattern"},
        "",
    ),
    "te/sdd-7-internal": (
        sdd_7_internal,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","error":"internal"}}\n{END}\n\n'
        "[TE] internal error, operator intervention required",
        {"v": 1, "cmd": "grep", "error": "internal"},
        "",
    ),
    "te/sdd-1.2-mpd": (sdd_1_2_mpd, "", {"matches": 847, "truncated": True}, "the example is a part of a header"),
    "te/sdd-4.1-hint": (sdd_4_1_hint, "", {"hint": "rag search available"}, "the example is a part of a header"),
    "te/hld-3.3": (
        hld_3_3,
        f"""{BEGIN}
{{"v":1,"cmd":"search","matches":47,"truncated":true,"hot_zone":"tools/auth/ (94%)","handle":"{HANDLE}"}}
{END}

tools/auth/handler.py:15: def auth()
tools/auth/service.py:89: auth.validate()

# TE: 42 more in tools/auth/, 3 elsewhere""",
        {"v": 1, "cmd": "search", "matches": 47},
        f"{NOT_IN_THE_EXAMPLE}; {COUNTED_ONCE}: 47 less the 42 and the 2 that are shown is 3",
    ),
    "te/uat-4.8": (
        uat_4_8,
        f"""{BEGIN}
{{"v":1,"cmd":"search","matches":15,"truncated":true,"hot_zone":"tools/rag/ (80%)","handle":"{HANDLE}"}}
{END}

tools/rag/database.py:42: def database_connection():
tools/rag/database.py:89: database_connection.execute(

# TE: 10 more in tools/rag/, 3 elsewhere""",
        {"v": 1, "cmd": "search", "matches": 15},
        f"the example says truncated: false and leaves lines out; {COUNTED_ONCE}",
    ),
    "te/unit-basic": (
        unit_basic,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","matches":10,"files":3}}\n{END}',
        {"v": 1, "cmd": "grep", "matches": 10, "files": 3},
        "",
    ),
    "te/unit-none-excluded": (
        unit_none_excluded,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","matches":5}}\n{END}',
        {"v": 1, "cmd": "grep", "matches": 5},
        "",
    ),
    "te/unit-truncated": (
        unit_truncated,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","matches":100,"truncated":true,"handle":"res_abc123"}}\n{END}',
        {"v": 1, "cmd": "grep", "matches": 100, "truncated": True, "handle": "res_abc123"},
        "",
    ),
    "te/unit-render": (
        unit_render,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","matches":2}}\n{END}\n\nfile.py:1: def foo():\nfile.py:5: def bar():\n\n'
        "# TE: more results available",
        {"v": 1, "cmd": "grep", "matches": 2},
        "",
    ),
    "te/unit-breadcrumb": (unit_breadcrumb, "\n# TE: 42 more in tools/", {}, ""),
    "te/hotzone-dominant": (
        zone({"tools/rag": 70, "tests": 20, "scripts": 10}, 100),
        '"tools/rag/ (70%)"',
        {"hot_zone": "tools/rag/ (70%)"},
        "the example is what goes in",
    ),
    "te/hotzone-none": (
        zone({"tools": 30, "tests": 30, "scripts": 30}, 90), "null", {"hot_zone": None}, "the example is what goes in",
    ),
    "te/hotzone-small": (zone({"tools": 3}, 3), "null", {"hot_zone": None}, "the example is what goes in"),
    "te/grep-nomatch": (
        grep_nomatch,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","matches":0,"files":0}}\n{END}\n\n',
        {"v": 1, "cmd": "grep", "matches": 0, "files": 0},
        "",
    ),
    "te/grep-raw": (grep_raw, "te.py:def handle_grep(arguments):\n", {}, "the example stands for ripgrep's own output"),
    "te/grep-invalid": (
        grep_invalid,
        f'{BEGIN}\n{{"v":1,"cmd":"grep","error":"invalid_pattern"}}\n{END}',
        {"error": "invalid_pattern"},
        "the example has no text, only that there is an error",
    ),
    "te/passthrough-json": (
        passthrough_json, '{"stdout": "...", "stderr": "", "exit_code": 0, "error": null}\n', {},
        "the dots of the example stand for output",
    ),
    "te/mcp-te-run": (mcp_te_run, '{"data": {"ok": true, "echo": "hello"}, "meta": {"returncode": 0}}', {}, ""),
}  # fmt: skip


@pytest.mark.mission("G10", "G28")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_reproduced(name: str, tree: Path) -> None:
    make, text, meta, _ = EXAMPLES[name]
    made = make(tree)
    assert not text or made == text
    if made.startswith(BEGIN):
        header = read_envelope(made).header.meta
        assert {key: header.get(key) for key in meta} == meta
    elif "matches" in meta:
        assert json.loads(made).items() >= meta.items()


def test_search_results_are_the_same_without_ripgrep(tree: Path) -> None:
    make, text, _, _ = EXAMPLES["te/sdd-4.2-stream"]
    os.environ["TE_RG"] = "none"
    try:
        assert make(tree) == text
    finally:
        del os.environ["TE_RG"]


@pytest.mark.skipif(not SHARED.is_file(), reason="there is no file with the examples beside the checkout")
def test_the_rows_match_the_file() -> None:
    rows = {row["id"]: row for row in map(json.loads, SHARED.read_text("utf-8").splitlines())}
    assert rows.keys() == EXAMPLES.keys()
    for name, (_, text, meta, why) in EXAMPLES.items():
        row = rows[name]
        assert all(
            row["meta"].get(key) in (value, "<present>", "res_01H...", "res_01HYY...") for key, value in meta.items()
        )
        if why:
            continue
        expected = row["output_text"]
        if expected.startswith(BEGIN):  # JSON may be spaced in two ways
            assert read_envelope(text) == read_envelope(expected)
            assert text.split("\n")[2:] == expected.split("\n")[2:]
        else:
            assert text == expected
