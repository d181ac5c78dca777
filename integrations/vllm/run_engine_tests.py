"""Run vLLM's own tests of parsers against this package, without torch and without a GPU.

The script downloads vLLM's source distribution from the package index, makes a virtual environment beside it, and runs
the tests of parsers of tool calls and the replays of whole answers. It prints the counts, by reason and by file. Its
exit status is 1 if a test fails for a reason that `engine_tests/differences.tsv` does not give.

    python integrations/vllm/run_engine_tests.py --work /tmp/vllm-tests
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSION = "0.33.0"
WITHOUT_DEPENDENCIES = ("xgrammar", "apache-tvm-ffi")
PYTEST_OPTIONS = ("-q", "--tb=no", "-W", "ignore", "-p", "no:cacheprovider", "-p", "stub_engine")
RUNS = {
    "tool parsers": ("swap_tool_parsers", "tests/tool_parsers", ["tests/tool_parsers"]),
    "replays": (
        "swap_replays",
        "tests/parser/engine",
        ["tests/parser/engine/test_replay.py", "tests/parser/engine/test_delegating_replay.py"],
    ),
}


def environment(work: Path) -> Path:
    """Return the interpreter of the environment, made if it is missing."""
    python = work / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(work / "venv", with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "-r", HERE / "engine_tests" / "requirements.txt"], check=True
        )
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", *WITHOUT_DEPENDENCIES], check=True)
    return python


def source(work: Path, python: Path, version: str) -> Path:
    """Return the unpacked source distribution, downloaded if it is missing."""
    unpacked = sorted(work.glob("download/**/vllm_*/vllm/tool_parsers"))
    if not unpacked:
        download = work / "download"
        download.mkdir(parents=True, exist_ok=True)
        # Its metadata cannot be built without torch, so pip ends with an error; the unpacked files stay.
        arguments = ["--no-binary", ":all:", "--no-deps", "--no-clean", "--no-build-isolation", f"vllm=={version}"]
        subprocess.run(
            [python, "-m", "pip", "download", "-q", *arguments],
            cwd=download, env={**os.environ, "TMPDIR": str(download)}, check=False, capture_output=True,
        )  # fmt: skip
        unpacked = sorted(work.glob("download/**/vllm_*/vllm/tool_parsers"))
    if not unpacked:
        raise SystemExit(f"the source distribution of vLLM {version} could not be downloaded into {work}")
    return unpacked[0].parent.parent


def outcomes(python: Path, engine: Path, results: Path, run: str) -> list[tuple[str, str, str]]:
    """Run tests; return the outcome of each, whether it reached Toolwire, and its id."""
    plugin, confcut, tests = RUNS[run]
    paths = [str(HERE / "engine_tests"), str(HERE / "src"), str(ROOT / "src"), str(engine)]
    results.unlink(missing_ok=True)
    subprocess.run(
        [python, "-m", "pytest", *PYTEST_OPTIONS, "-p", plugin, f"--confcutdir={confcut}", *tests],
        cwd=engine,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TOOLWIRE_RESULTS": str(results)},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    lines = results.read_text("utf-8").splitlines()
    return [(outcome, kind, test) for outcome, kind, test in (line.split("\t", 2) for line in lines)]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "toolwire" / "vllm-tests")
    parser.add_argument("--version", default=VERSION)
    parser.add_argument("--run", choices=[*RUNS], action="append", help="only this run")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    python = environment(options.work)
    engine = source(options.work, python, options.version)
    lines = (HERE / "engine_tests" / "differences.tsv").read_text("utf-8").splitlines()
    reasons = [*csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t")]
    unexplained: list[str] = []
    for run in options.run or RUNS:
        rows = outcomes(python, engine, options.work / "results.tsv", run)
        reached = [(outcome, test) for outcome, kind, test in rows if kind == "reached"]
        counts = Counter(outcome for outcome, _ in reached)
        print(f"{run}: {len(rows)} tests, {len(reached)} reach Toolwire")
        print(f"  pass {counts['passed'] + counts['xpassed']} (of these, vLLM's own parser fails {counts['xpassed']})")
        by_reason: Counter[str] = Counter()
        by_file: dict[str, Counter[str]] = {}
        for outcome, test in reached:
            kind = "pass"
            if outcome not in ("passed", "xpassed", "xskipped", "skipped"):
                row = next((row for row in reasons if re.search(row["pattern"], test)), None)
                kind = row["kind"] if row else "not explained"
                by_reason[row["reason"] if row else "NOT EXPLAINED"] += 1
                unexplained += [] if row else [test]
            by_file.setdefault(Path(test.partition("::")[0]).stem, Counter())[kind] += 1
        for reason, count in by_reason.most_common():
            print(f"  {count:4}  {reason}")
        print("| file | pass | internals | another rule |\n|---|---|---|---|")
        for file, kinds in sorted(by_file.items()):
            print(f"| `{file}` | {kinds['pass']} | {kinds['internals']} | {kinds['rule']} |")
    for test in unexplained:
        print(f"not explained: {test}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
