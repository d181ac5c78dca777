"""Count vague names, riddling docstrings, banned words and comments; exit status 1 if a figure is beyond its limit.

Limits are ratchets: a commit may make a figure better and never worse. `--ratchet` stores an improvement.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Rewritten by --ratchet. All may only fall, except comment lines, which may only rise.
LIMITS = {
    "vague_names": 0.04,
    "riddle_docstrings": 0,
    "banned_words": 0.27,
    "comments": 19.0,
    "comments_subtle": 29.0,
}
RISING = frozenset({"comments", "comments_subtle"})
FIGURES = {
    "vague_names": "% of name assignments that bind a vague name",
    "riddle_docstrings": 'docstrings that begin with "What", "How", "Whoever" ...',
    "banned_words": "banned words per 1,000 words of prose",
    "comments": "comment lines per 1,000 lines",
    "comments_subtle": "comment lines per 1,000 lines of the subtle packages",
}
LISTS = {"names": "vague_names", "docstrings": "riddle_docstrings", "words": "banned_words"}

SUBTLE = ("wire/", "execution/", "policy/", "agent/durable")
"""Paths in the package whose code most needs comments that say why."""

VAGUE = frozenset(
    re.findall(
        r"\w+",
        """
        one ones made found said told known kept held given got seen done had been was were went gone came ran put taken
        used meant asked wanted called begun heard thing things stuff something anything everything nothing that this
        these those it such so what how who whole own others same either there here mine ours yours theirs
        """,
    )
)
"""Names that say "a result" and not what the value is. A participle that names the operation (`rendered`) is fine."""

RIDDLE = re.compile(r"\s*(What|Whoever|How|That which|So many|Somebody|Where|Whether)\b")

BANNED = {
    "agreement, consent (approval)": r"agreements?|consents?|consented|agrees?|agreed",
    "stranger (untrusted content)": r"strangers?",
    "is no X (is not a)": r"(?<!there\s)(?:is|are|was|were) no(?! longer| more| less| fewer| matter how|-|:)",
    "is none (is not one)": r"(?<!there\s)(?:is|are|was|were) none",
    "whoever, somebody": r"whoever|somebody|those who",
    "that which, so many": r"that which|so many",
    "tell (report)": r"(?:tells?|telling|told)(?!(?: \w+){0,3} (?:apart|from))",
    "hear (observe, receive)": r"hears?|heard",
    "life, lives (run, session, is)": r"lives|life",
    "stand (is, appears)": r"(?:stands?|stood|standing)(?! for)(?! in for)",
    "lie (is)": r"lies?|lain",
    "hold (contain, store)": r"(?:holds|held)(?! (?:a|the|its|this) (?:\w+ )?lock)",
    "go on (continue)": r"(?:go|goes|going|went|gone) on(?! to)",
    "usual (default)": r"(?:the|its|their|with|has|is) usual",
    "wish (request)": r"wish|wishes|wished",
    "no matter of (cannot)": r"no matters? of",
}
WORDS = [(label, re.compile(rf"\b(?:{pattern})\b".replace(" ", r"\s+"))) for label, pattern in BANNED.items()]
EXAMPLES = """examples:
  python scripts/check_prose.py                    figures and limits
  python scripts/check_prose.py --list             every place, as path:line: what
  python scripts/check_prose.py --list names src/toolwire/wire
                                                   vague names of one package
  python scripts/check_prose.py --json             figures, limits and places for a program
  python scripts/check_prose.py --ratchet          store better figures as the new limits
"""


@dataclass
class Tally:
    """Counts over all files, and the places to be looked at."""

    bindings: int = 0
    words: int = 0
    lines: int = 0
    comments: int = 0
    subtle_lines: int = 0
    subtle_comments: int = 0
    places: dict[str, list[tuple[str, int, str]]] = field(default_factory=lambda: {name: [] for name in LISTS})

    def figures(self) -> dict[str, float]:
        """Return the figures by name, rounded so that a figure is never beyond itself as a limit."""
        vague, riddles, banned = (len(self.places[name]) for name in LISTS)
        return {
            "vague_names": math.ceil(10_000 * vague / max(1, self.bindings)) / 100,
            "riddle_docstrings": riddles,
            "banned_words": math.ceil(100_000 * banned / max(1, self.words)) / 100,
            "comments": math.floor(10_000 * self.comments / max(1, self.lines)) / 10,
            "comments_subtle": math.floor(10_000 * self.subtle_comments / max(1, self.subtle_lines)) / 10,
        }

    def prose(self, path: str, line: int, text: str) -> None:
        """Count words of prose that begins on a line."""
        text = re.sub(r"`[^`]*`", lambda code: "\n" * code[0].count("\n") + "_", text)
        self.words += len(re.findall(r"[A-Za-z][\w'’-]*", text))
        lowered = text.lower()
        for label, pattern in WORDS:
            for match in pattern.finditer(lowered):
                at = line + lowered.count("\n", 0, match.start())
                self.places["words"].append((path, at, f'"{" ".join(match[0].split())}": {label}'))


def bindings(tree: ast.AST, in_class: bool = False) -> Iterator[tuple[int, str]]:
    """Yield line and name of every binding of a variable; fields in the body of a class are not variables."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if not in_class:
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.MatchMapping(rest=str(name)):
                yield node.lineno, name
        fields = isinstance(tree, ast.ClassDef) and isinstance(node, ast.Assign | ast.AnnAssign)
        yield from bindings(node, fields)


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield docstrings of modules, classes and functions, and strings right behind an assignment."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for previous, statement in zip([None, *body], body, strict=False):
            match statement:
                case ast.Expr(value=ast.Constant(value=str()) as string):
                    if (previous is None and documented) or isinstance(previous, ast.Assign | ast.AnnAssign):
                        yield string


def comments(path: Path) -> list[tuple[int, str]]:
    """Return line and text of every comment that is written for people."""
    with path.open("rb") as file:
        remarks = [(t.start[0], t.string) for t in tokenize.tokenize(file.readline) if t.type == tokenize.COMMENT]
    return [(line, text) for line, text in remarks if not re.match(r"#\s*(?:noqa|type:|pragma|!|fmt:|mypy:)", text)]


def count_module(tally: Tally, path: Path, name: str) -> None:
    """Count names, docstrings and comments of a module."""
    source = path.read_bytes()
    tree = ast.parse(source, str(path))
    for line, variable in bindings(tree):
        if variable != "_":
            tally.bindings += 1
            if variable in VAGUE:
                tally.places["names"].append((name, line, variable))
    for string in docstrings(tree):
        text = str(string.value)
        if RIDDLE.match(text):
            tally.places["docstrings"].append((name, string.lineno, text.strip().partition("\n")[0]))
        tally.prose(name, string.lineno, text)
    lines, remarks = source.count(b"\n"), comments(path)
    tally.lines += lines
    tally.comments += len(remarks)
    if name.partition("src/toolwire/")[2].startswith(SUBTLE):
        tally.subtle_lines += lines
        tally.subtle_comments += len(remarks)
    for line, text in remarks:
        tally.prose(name, line, text)


def count_markdown(tally: Tally, path: Path, name: str) -> None:
    """Count words of a Markdown file outside code blocks and addresses of links."""
    prose, fence = [], ""
    for line in path.read_text(encoding="utf-8").split("\n"):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence:
            prose.append("")
            fence = "" if mark and mark[1].startswith(fence) and line.strip() == mark[1] else fence
        elif mark:
            prose.append("")
            fence = mark[1]
        else:
            prose.append(re.sub(r"\]\([^)]*\)", "]", line))
    tally.prose(name, 1, "\n".join(prose))


def count(root: Path, only: list[str]) -> Tally:
    """Count all files, or those whose paths begin with one of the given ones."""
    tally = Tally()
    pages = [root / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for path in [*sorted(root.glob("src/toolwire/**/*.py")), *pages, *sorted(root.glob("docs/**/*.md"))]:
        name = path.relative_to(root).as_posix()
        if path.exists() and (not only or f"{name}/".startswith(tuple(f"{part.rstrip('/')}/" for part in only))):
            (count_module if path.suffix == ".py" else count_markdown)(tally, path, name)
    return tally


def is_beyond(name: str, figure: float) -> bool:
    """Report whether a figure is worse than its limit."""
    return figure < LIMITS[name] if name in RISING else figure > LIMITS[name]


def ratchet(figures: dict[str, float], script: Path) -> None:
    """Store better figures as the limits in this script."""
    text = script.read_text(encoding="utf-8")
    for name, figure in figures.items():
        if figure != LIMITS[name] and not is_beyond(name, figure):
            text = re.sub(rf'^(    "{name}": )[\d.]+,$', rf"\g<1>{figure},", text, count=1, flags=re.MULTILINE)
    script.write_text(text, encoding="utf-8")


def main() -> int:
    """Print figures beside their limits, or the places."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", help="count only these files and directories (no limits then)")
    parser.add_argument("--list", nargs="?", const="all", choices=["all", *LISTS], help="print every place")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--ratchet", action="store_true", help="store better figures as limits")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args()
    tally = count(options.root, options.paths)
    figures = tally.figures()
    beyond = [name for name, figure in figures.items() if not options.paths and is_beyond(name, figure)]
    listed = {name: sorted(tally.places[name]) for name in LISTS if options.list in ("all", name)}
    if options.ratchet and not options.paths:
        ratchet(figures, Path(__file__))
    if options.json:
        print(json.dumps({"figures": figures, "limits": LIMITS, "beyond": beyond, "places": listed}, indent=2))
    elif options.list:
        for path, line, text in sorted(place for places in listed.values() for place in places):
            print(f"{path}:{line}: {text}")
    else:
        for name, figure in figures.items():
            limit = "" if options.paths else f"{'at least' if name in RISING else 'at most'} {LIMITS[name]:g}"
            print(f"{name:18}{figure:9g}  {limit:15} {FIGURES[name]}{'  <- BEYOND' if name in beyond else ''}")
    return 1 if beyond and not options.list else 0


if __name__ == "__main__":
    sys.exit(main())
