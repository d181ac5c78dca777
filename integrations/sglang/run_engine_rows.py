"""Read rows of texts inside SGLang's own `FunctionCallParser`, with its detectors and with Toolwire's, without torch.

The script downloads SGLang's wheel from the package index into a folder, unpacks it, and makes a virtual environment
beside it. Each row has a text, tools, and the calls that are in it. The script prints for how many rows each side finds
these calls, in the whole text and character by character. SGLang's own tests are not in its packages.

    python integrations/sglang/run_engine_rows.py --work /tmp/sglang-rows tests/conformance/own.jsonl
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import types
import venv
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSION = "0.5.23"
_OPTIONS = frozenset(["options", "reasoning_started", "primed", "fallback", "tool_choice", "results"])
STAND_INS = ROOT / "integrations" / "vllm" / "engine_tests"


def prepare(work: Path) -> Path:
    """Return the interpreter of an environment in which `read_rows` works; download what is missing."""
    python = work / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(work / "venv", with_pip=True)
        install = [python, "-m", "pip", "install", "-q"]
        subprocess.run([*install, "-r", STAND_INS / "requirements.txt", "orjson"], check=True)
        subprocess.run([*install, "--no-deps", "xgrammar", "apache-tvm-ffi"], check=True)
    if not (work / "sglang").exists():
        download = [python, "-m", "pip", "download", "-q", "--no-deps", f"sglang=={VERSION}", "-d", work]
        subprocess.run(download, check=True)
        with zipfile.ZipFile(next(work.glob("sglang-*.whl"))) as wheel:
            wheel.extractall(work, [name for name in wheel.namelist() if name.startswith("sglang/")])
    return python


def read_rows(work: Path, paths: list[Path]) -> None:
    """Print the counts; run inside the environment."""
    import stub_engine

    stub_engine.STAND_INS += tuple((HERE / "stand_ins.txt").read_text("utf-8").split())
    for name in ("sglang", "sglang.srt"):  # without their own code, which imports the whole server
        module = types.ModuleType(name)
        module.__path__ = [str(work.joinpath(*name.split(".")))]
        sys.modules[name] = module
    import toolwire_sglang
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    import toolwire
    from toolwire.errors import UnknownFormat

    logging.disable(logging.CRITICAL)
    own_names: dict[str, str] = {}
    for name in FunctionCallParser.ToolCallParserEnum:
        try:
            own_names.setdefault(toolwire.get_format(name).name, name)
        except UnknownFormat:
            continue
    toolwire_sglang.register()
    counts: Counter[str] = Counter()
    for row in _rows(paths, own_names):
        tools = [Tool(**_as_function(tool)) for tool in row["tools"]]
        known = {tool.function.name for tool in tools}
        expected = [(call["name"], call["arguments"]) for call in _expected(row) if call["name"] in known]
        counts["rows"] += 1
        for side, name in (("sglang", own_names[row["format"]]), ("toolwire", f"toolwire:{row['format']}")):
            for way, pieces in (("whole", None), ("streamed", row["text"])):
                if _calls(FunctionCallParser, name, tools, row["text"], pieces) == expected:
                    counts[f"{side}, {way}"] += 1
                elif side == "toolwire":
                    print(f"toolwire differs, {way}: {row['id']}")
    for name, count in sorted(counts.items()):
        print(f"{name:20} {count}")


def _as_function(tool: dict[str, Any]) -> dict[str, Any]:
    return tool if "function" in tool else {"type": "function", "function": tool}


def _rows(paths: list[Path], own_names: dict[str, str]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            # Another parser reads the reasoning of a message before these do.
            is_plain = row.get("kind") == "complete" and not row["expect"].get("reasoning")
            is_plain = is_plain and not row.keys() & _OPTIONS and all("arguments" in call for call in _expected(row))
            if is_plain and row.get("tools") and row["format"] in own_names:
                yield row


def _expected(row: dict[str, Any]) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = row["expect"]["calls"]
    return calls


def _calls(parser_class: Any, name: str, tools: list[Any], text: str, pieces: str | None) -> Any:
    """Return names and arguments of the calls that a parser finds, or the name of what it raises."""
    calls: dict[int, list[str]] = {}
    try:
        parser = parser_class(tools, name)
        if pieces is None:
            return [(call.name, json.loads(call.parameters)) for call in parser.parse_non_stream(text)[1]]
        items = [item for piece in pieces for item in parser.parse_stream_chunk(piece)[1]]
        for item in (*items, *parser.parse_stream_end()[1]):
            call = calls.setdefault(item.tool_index, ["", ""])
            call[0], call[1] = item.name or call[0], call[1] + (item.parameters or "")
        return [(name, json.loads(arguments)) for name, arguments in calls.values()]
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # a detector of SGLang's that fails
        return type(error).__name__


def main() -> int:
    """Prepare the environment, and read the rows in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "toolwire" / "sglang-rows")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("rows", type=Path, nargs="*", default=[ROOT / "tests" / "conformance" / "own.jsonl"])
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.inside:
        read_rows(options.work, options.rows)
        return 0
    python = prepare(options.work)
    paths = [str(path) for path in (STAND_INS, HERE / "src", ROOT / "src", options.work)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    arguments = [__file__, "--inside", "--work", options.work, *options.rows]
    return subprocess.run([python, *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
