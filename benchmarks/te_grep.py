"""`te grep` beside ripgrep on a large tree, in pairs: how much later it is done.

    python benchmarks/te_grep.py                  # a tree of 1 GB, removed again; a minute
    python benchmarks/te_grep.py --folder TREE    # the tree stays, and is used again
    python benchmarks/te_grep.py --megabytes 100 --pairs 5
    python benchmarks/te_grep.py --fallback       # also the search without ripgrep

The tree has files of 1 to 200 KB that look like code, and words that stand in 10, 1,000 and 10,000 of their lines. A
pair is `rg --line-number WORD .` and `te grep WORD`, as processes, in turns; the outputs of both are read through a
pipe. The file cache is warm, and the library is compiled, as an installed one is. Below stand the medians, the median
of the differences within a pair, and the least difference, which says most on a machine that has other things to do.
"""

from __future__ import annotations

import argparse
import compileall
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import toolwire
from toolwire.envelope.grammar import read_envelope
from toolwire.search.ripgrep import find_ripgrep

LIMIT = 0.150
"""Seconds that `te grep` may take above ripgrep's own time."""
BUDGET = 16_000
"""Characters of an answer for an agent that nobody knows."""
HITS = {"zqrare": 10, "zqsome": 1_000, "zqmany": 10_000}
_TEXT = (
    "return if else for while value index result buffer connection request response handler parser token stream event "
    "config option default error message length offset cache table column query path name self this node tree"
)
WORDS = _TEXT.split()


def build(folder: Path, megabytes: int) -> None:
    """Write the tree; the same for the same size."""
    rng = random.Random(7)
    paragraphs = [_paragraph(rng) for _ in range(4_000)]
    sizes: list[int] = []
    while sum(sizes) < megabytes * 1_000_000:
        sizes.append(int(1_000 * 200 ** rng.random()))
    places: dict[int, list[str]] = {}
    for word, count in HITS.items():
        for at in range(count):
            line = f"def {word}_{at}(value):" if at % 50 == 0 else f"    result = {word}(value, {at})"
            places.setdefault(rng.randrange(len(sizes)), []).append(line)
    for number, size in enumerate(sizes):
        ending = ("py", "js", "go", "c", "md")[number % 5]
        where = folder / f"part{number % 40}" / ("tests" if number % 9 == 0 else f"module{number % 25}")
        where.mkdir(parents=True, exist_ok=True)
        lines: list[str] = []
        length = 0
        while length < size:
            lines.append(rng.choice(paragraphs))
            length += len(lines[-1]) + 1
        for line in places.get(number, ()):
            lines.insert(rng.randrange(len(lines) + 1), line)
        (where / f"file{number}.{ending}").write_text("\n".join(lines) + "\n", "utf-8")


def _paragraph(rng: random.Random) -> str:
    lines = [
        " " * 4 * rng.randrange(4) + " ".join(rng.choice(WORDS) for _ in range(rng.randrange(3, 12))) for _ in range(12)
    ]
    return "\n".join(lines)


def seconds(argv: list[str], folder: Path, environ: dict[str, str]) -> tuple[float, bytes]:
    """How long a program takes, and what it prints."""
    start = time.perf_counter()
    done = subprocess.run(argv, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - start, done.stdout


def compare(folder: Path, pairs: int, environ: dict[str, str], *, fallback: bool) -> bool:
    """Print a row for each word; whether all stay below the limit."""
    rg = find_ripgrep()
    te = [sys.executable, "-c", "from toolwire.envelope.te.main import main; main()", "grep"]  # as the script does
    compileall.compile_dir(Path(toolwire.__file__).parent, quiet=2)
    good = True
    print(
        f"{'hits':>7} {'rg s':>8} {'te s':>8} {'later by ms':>12} {'least':>6} {'ratio':>6}"
        + "  without rg s" * fallback
    )
    for word, hits in HITS.items():
        times: list[tuple[float, float]] = []
        for pair in range(pairs + 1):
            one, out = seconds([rg, "--no-config", "--line-number", word, "."], folder, environ)
            two, text = seconds([*te, word], folder, environ)
            if not pair:  # warms up, and is looked at
                document = read_envelope(text.decode())
                assert document.header.matches == out.count(b"\n") == hits, (document.header, out.count(b"\n"))
                assert len(text.decode()) <= BUDGET
                continue
            times.append((one, two))
        plain, shaped = (statistics.median(column) for column in zip(*times, strict=True))
        differences = [two - one for one, two in times]
        later = statistics.median(differences)
        good &= later <= LIMIT
        row = f"{hits:7} {plain:8.3f} {shaped:8.3f} {later * 1000:12.0f} {min(differences) * 1000:6.0f}"
        row += f" {shaped / plain:6.2f}"
        if fallback:
            slow, _ = seconds([*te, word], folder, {**environ, "TE_RG": "none"})
            row += f"  {slow:12.2f}"
        print(row, flush=True)
    return good


def main() -> int:
    """Build, compare, remove."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, help="where the tree is, or is to be; it stays")
    options.add_argument("--megabytes", type=int, default=1_000)
    options.add_argument("--pairs", type=int, default=9)
    options.add_argument("--fallback", action="store_true", help="also without ripgrep")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "tree"
        if not folder.exists():
            build(folder, given.megabytes)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        count = sum(1 for file in folder.rglob("*") if file.is_file())
        print(f"{size / 1e6:.0f} MB in {count} files; {os.cpu_count()} processors; the median of {given.pairs} pairs")
        environ = {**os.environ, "TOOLWIRE_STATE": f"{scratch}/state", "TE_TIMEOUT": "600"}
        environ["TOOLWIRE_TE_CONFIG"] = str(_patient(Path(scratch)))
        good = compare(folder, given.pairs, environ, fallback=given.fallback)
    return 0 if good else 1


def _patient(scratch: Path) -> Path:
    """A configuration under which no search is stopped."""
    path = scratch / "te.toml"
    path.write_text("[grep]\nmilliseconds = 600000\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
