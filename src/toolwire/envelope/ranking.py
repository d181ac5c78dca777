"""Rank the hits of a search: definitions before uses, code before its tests, and the directory with most of them first.

Lines are bytes, as a search returns them. All work is linear in the length of the line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from toolwire.text.escape import escape_as_json
from toolwire.text.truncate import shorten
from toolwire.text.word_set import word_set

ZONE_PARTS = 2
"""Components of a path that make up a zone."""
ZONE_SHARE = 0.5
"""Minimum share of the hits in a hot zone."""
ZONE_LEAST = 5
"""Minimum number of hits for a hot zone."""
MAX_ZONE = 80
"""Maximum length of a zone's name that is shown, in characters."""


class Rank(IntEnum):
    """The order of hits; hits of one rank are in order of path and line."""

    DEFINITION = 0
    USE = 1
    TEST_DEFINITION = 2
    TEST = 3


# -- definitions -----------------------------------------------------------------------------------------------------

_WORDS = (
    "abstract actual async const data declare default expect export extern final fileprivate friend global implicit "
    "inline inner internal lateinit lazy local native noinline open operator override partial private protected pub "
    "public readonly sealed static strictfp suspend synchronized transient unsafe value virtual volatile"
).replace(" ", "|")
_KINDS = (
    "actor alias annotation class contract def defmacro defmodule defn defp defprotocol defrecord defstruct deftype "
    "defun enum fn fun func function impl interface library message mixin mod module namespace newtype object package "
    "proc procedure protocol record rpc service struct sub test trait type typealias union"
).replace(" ", "|")
_NAME = r"[\w$\x80-\xff][\w$?!\x80-\xff-]*"
_BEHIND = (
    r"\s*(?:$|[(){}\[\]<>:=;,|]|(?:extends|implements|with|where|is|as|for|struct|interface|enum|do|begin|returns?|throws|"
    r"conforms|derives|permits)\b|[\w.*\[\]&]+\s*$)"
)
"""Text after a name that is being defined; prose that begins with such a word continues differently."""
_DECLARED = re.compile(
    (
        rf'\s*(?:(?:{_WORDS})(?:\([\w: ]+\)|\s+"C")?\s+){{0,8}}'
        rf"(?:(?:{_KINDS})\*?(?:<[^<>]{{0,200}}>)?(?:\s+(?:class|struct|async|static|case|object))?\s+"
        rf"(?:<[^<>]{{0,200}}>\s*|\([^()]{{0,200}}\)\s*)?"  # Kotlin's type parameters, Go's receiver
        rf"(?:[\w$]+(?:\.|::))*({_NAME})(?={_BEHIND})"
        r"|#\s*define\s+(\w+)"
        r"|macro_rules!\s*(\w+)"
        r"|(?:let|var|val|const|static)\s+(?:mut\s+|rec\s+)?([\w$\x80-\xff]+)\s*[:=]"
        r"|(?i:create)\s+(?:(?i:or\s+replace|temp|temporary|unique|materialized)\s+){0,3}"
        r"(?i:table|view|index|function|procedure|trigger|type|schema)\s+(?i:if\s+not\s+exists\s+)?[\"`\[]?([\w.]+))"
    ).encode("latin-1")
)
_LISP = re.compile(rb"\s*\(def[a-z-]*\*?\s+\(?([^\s()]+)")
_ASSIGNED = re.compile(
    rb"\s*(?:(?:exports|module\.exports|this|self|[A-Z]\w*\.prototype)\.)?([\w$.]+)\s*(?:=|<-|:=|:)\s*"
    rb"(?:async\s*)?(?:function\b|\([^()]{0,200}\)\s*=>|[\w$]+\s*=>|lambda\b|class\b)"
)
_SHELL = re.compile(rb"\s*([\w-]+)\s*\(\)\s*(?:\{|$)")
_CAPITAL = re.compile(rb"([A-Z]\w*)\s*(?::\s*TypeAlias\b[^=]*)?=\s*(?:NewType|TypeVar|NamedTuple|namedtuple|Enum)\b")


def _words(text: str) -> frozenset[bytes]:
    return frozenset(map(str.encode, word_set(text)))


_NO_CODE = _words(
    "adoc cfg conf css csv diff htm html ini ipynb json jsonl lock log markdown md ndjson patch properties rst svg "
    "toml tsv txt xml yaml yml"
)
_TYPED = _words("c cc cpp cxx h hh hpp hxx cs java dart m mm cu glsl groovy d")
_METHODS = _words("js jsx mjs cjs ts tsx mts cts vue svelte")
_NO_NAMES = _words(
    "return else if for while switch case catch do new delete throw goto sizeof typeof await yield using in is not "
    "and or assert import from print echo function super with co_return co_await co_yield"
)
_OTHERS = (
    (b"=", _ASSIGNED),
    (b":", _ASSIGNED),
    (b"<-", _ASSIGNED),
    (b"(def", _LISP),
    (b"()", _SHELL),
    (b"=", _CAPITAL),
)
_NOT_IN_HEADS = re.compile(rb"[=.\"'!`?]|->")
_LITERAL = re.compile(rb"[\w\s$\x80-\xff-]+")


class Definitions:
    """Recognize definitions of the names that a pattern matches.

    A pattern without operators is a name or part of one, and only definitions of such names count. For any other
    pattern every line that defines something counts.
    """

    def __init__(self, pattern: str) -> None:
        """Prepare for the names that this pattern matches."""
        sought = pattern.encode("utf-8", "replace").strip()
        self._sought = sought if _LITERAL.fullmatch(sought) else b""
        self._any_case = sought == sought.lower()

    def among(self, line: bytes, ending: bytes) -> bool:
        """Return whether a line defines such a name.

        Args:
            line: the line.
            ending: the file's extension, without the dot, in lower case.
        """
        if ending in _NO_CODE:
            return False
        name = defined(line, ending)
        if not name:
            return False
        if self._any_case:
            name = name.lower()
        return not self._sought or self._sought in name or name in self._sought


def defined(line: bytes, ending: bytes = b"") -> bytes:
    """Return the name that a line defines; b"" if it defines none."""
    if match := _DECLARED.match(line):
        return next(name for name in match.groups() if name is not None)
    if ending in _TYPED:
        return _with_brackets(line, least=2)
    for sign, pattern in _OTHERS:
        if sign in line and (match := pattern.match(line)):
            return match[1]
    return _with_brackets(line, least=1) if ending in _METHODS else b""


def _with_brackets(line: bytes, *, least: int) -> bytes:
    """Return the name of the function that a line of C and its relatives, or a method in JavaScript, begins to define.

    Such a line has a minimum number of words, of which the last is the name, then parameters, and no semicolon.
    """
    before, bracket, behind = line.partition(b"(")
    if not bracket or _NOT_IN_HEADS.search(before):
        return b""
    words = before.translate(None, b"*&").split()
    if len(words) < least or words[0] in _NO_NAMES or words[-1] in _NO_NAMES:
        return b""
    behind = behind.split(b"//", 1)[0].rstrip()
    open_brackets = 1 + behind.count(b"(") - behind.count(b")")
    complete = open_brackets == 0 and behind.endswith((b"{", b")", b"}", b"const", b"override"))
    cut = open_brackets == 1 and (behind.endswith(b",") or not behind)
    if least == 1:  # without types, a call looks the same but for its end
        complete, cut = open_brackets == 0 and behind.endswith(b"{"), False
    return words[-1].rpartition(b"::")[2] if complete or cut else b""


# -- tests -----------------------------------------------------------------------------------------------------------

_TEST_FOLDERS = frozenset(("test", "tests", "__tests__", "spec", "specs", "testing", "testdata", "e2e", "__mocks__"))
_TEST_FILE = re.compile(
    rb"(?:test|tests|spec|conftest)\.\w+|test_.*|.*[_.-](?:test|tests|spec|unittest)\.[^.]+"
    rb"|.*[a-z0-9](?:Test|Tests|Spec|IT)\.[^.]+",
    re.DOTALL,
)


def is_test_folder(path: str) -> bool:
    """Return whether a directory contains tests, judging by its name and the names of its parents."""
    return not _TEST_FOLDERS.isdisjoint(path.lower().split("/"))


def is_test_file(name: bytes) -> bool:
    """Return whether a file contains tests, judging by its name."""
    return (b"est" in name or b"pec" in name or b"IT." in name) and _TEST_FILE.fullmatch(name) is not None


# -- zones -----------------------------------------------------------------------------------------------------------


def zone_of(path: str) -> str:
    """Return the first directories of a path, without a slash at the end; "" for a file at the top."""
    return "/".join(path.split("/")[:-1][:ZONE_PARTS])


def hottest(zones: Mapping[str, int], total: int) -> str:
    """Return the zone with at least half of all hits; "" if there is none, or if there are few hits."""
    if total < ZONE_LEAST or not zones:
        return ""
    zone = max(zones, key=lambda name: (zones[name], name))
    return zone if zones[zone] >= ZONE_SHARE * total else ""


def hot_zone(zones: Mapping[str, int], total: int) -> str | None:
    """Return a header's `hot_zone`, such as `tools/rag/ (73%)`; None if no zone is hot."""
    zone = hottest(zones, total)
    return f"{shown(zone)} ({round(100 * zones[zone] / total)}%)" if zone else None


def shown(zone: str) -> str:
    """Return a zone's name as it is written: on one line, truncated, with a slash at its end."""
    return f"{shorten(escape_as_json(zone), MAX_ZONE)}/"


def remaining(zones: Mapping[str, int], hot: str) -> str:
    """Return the breadcrumb for hits that are not shown: their number, and how many of them are in the hot zone."""
    total = sum(zones.values())
    inside = zones.get(hot, 0) if hot else 0
    if not inside:
        return f"{total} more"
    return f"{inside} more in {shown(hot)}" + (f", {total - inside} elsewhere" if total > inside else "")
