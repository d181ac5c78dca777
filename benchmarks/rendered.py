"""Share of publishers' prompts that Toolwire renders character by character.

    .venv/bin/python -m benchmarks.rendered FOLDER      # the table in docs/explanation/comparison.md

FOLDER holds JSON lines, one prompt each: `family` (the template's name), `format`, `tools`, `messages`, and the
`prompt` that the template made of them. The definitions, the calls of each message and each result are rendered, and
looked for.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from tests.conformance.rendered import blocks, prompts

KINDS = ("definitions", "calls", "results")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder with the prompts")
    rows = prompts(parser.parse_args().folder)
    tried, matched = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for row in rows:
        for kind, text in blocks(row):
            key = row["format"], row["family"], kind
            tried[key] += 1
            matched[key] += text in row["prompt"]
    print(f"{len(rows)} prompts\n")
    print(f"| template | format | {' | '.join(KINDS)} |")
    print("| --- " * (2 + len(KINDS)) + "|")
    for format, family in sorted({key[:2] for key in tried}):
        keys = [(format, family, kind) for kind in KINDS]
        cells = [f" {matched[key]} of {tried[key]} |" if tried[key] else " |" for key in keys]
        print(f"| {family} | `{format}` |{''.join(cells)}")


if __name__ == "__main__":
    main()
