"""Guess a content type from a file name or from the text."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Final

TEXT: Final = "text"

_TYPES: Final = {
    "assembly": "asm s",
    "batch": "bat cmd",
    "binary": "a bin class dll dylib exe gz jar o pdf png jpg jpeg gif webp ico so tar wasm zip",
    "c": "c h",
    "clojure": "clj cljs cljc edn",
    "cpp": "cc cpp cxx hh hpp hxx",
    "csharp": "cs",
    "css": "css less sass scss",
    "csv": "csv tsv",
    "dart": "dart",
    "diff": "diff patch",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "fsharp": "fs fsi fsx",
    "go": "go",
    "haskell": "hs",
    "html": "htm html xhtml",
    "ini": "cfg conf ini properties",
    "java": "java",
    "javascript": "cjs js jsx mjs",
    "json": "json webmanifest",
    "jsonl": "jsonl ndjson",
    "julia": "jl",
    "kotlin": "kt kts",
    "log": "log",
    "lua": "lua",
    "markdown": "markdown md mdx",
    "nim": "nim",
    "notebook": "ipynb",
    "ocaml": "ml mli",
    "perl": "pl pm",
    "php": "php",
    "powershell": "ps1 psm1",
    "protobuf": "proto",
    "python": "py pyi pyw",
    "r": "r",
    "restructuredtext": "rst",
    "ruby": "gemspec rake rb",
    "rust": "rs",
    "scala": "sc scala",
    "shell": "bash fish sh zsh",
    "sql": "sql",
    "swift": "swift",
    "terraform": "hcl tf",
    "text": "txt",
    "toml": "toml",
    "typescript": "cts mts ts tsx",
    "vue": "svelte vue",
    "xml": "svg xml xsd xsl",
    "yaml": "yaml yml",
    "zig": "zig",
}
_BY_ENDING = {ending: kind for kind, endings in _TYPES.items() for ending in endings.split()}
_BY_NAME = {"dockerfile": "dockerfile", "makefile": "makefile", "gnumakefile": "makefile", "cmakelists.txt": "cmake"}

LOOKED_AT = 5
"""Lines examined to recognize a log, of which two must look like one."""
MAX_PARSED = 65_536
"""Maximum length of JSON that is parsed to be sure, in characters."""

_LOG_LINE = re.compile(
    r"\s?\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d"  # 2026-11-21T10:00:00
    r"|\d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"  # Nov 21 10:00:00, as syslog writes it
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b[\]:| \t])"
)


def content_type(text: str, name: str = "") -> str:
    """Return a language, `log`, `json` or `text`.

    Args:
        text: the text, or its beginning and its end.
        name: the name of the file that it is from, or "".
    """
    base = posixpath.basename(name).lower()
    stem, dot, ending = base.rpartition(".")
    by_name = _BY_NAME.get(base) or (_BY_ENDING.get(ending) if dot and stem else None)
    return by_name or _told_by_text(text)


def _told_by_text(text: str) -> str:
    first = text[:2_000].split("\n")[:LOOKED_AT]
    if sum(_LOG_LINE.match(line) is not None for line in first) >= 2:
        return "log"
    return "json" if _is_json(text) else TEXT


def _is_json(text: str) -> bool:
    """Return whether a text is one JSON object or array; of a long text only both ends are examined."""
    start, end = text[:200].lstrip(), text[-200:].rstrip()
    if (start[:1], end[-1:]) not in (("{", "}"), ("[", "]")):
        return False
    if len(text) > MAX_PARSED:
        return start[1:].lstrip()[:1] in {'"', "{", "[", "]", "}"}
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
