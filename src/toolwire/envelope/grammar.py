r"""The grammar of an envelope: one description, which the writer and the reader share.

    # TE_BEGIN_META
    {"v":1,"cmd":"grep","matches":847,"truncated":true,"handle":"res_5f0c1e7a9b3d"}
    # TE_END_META

    a section of content

    # TE: what was left out of the section above

    the next section

Only the beginning of the text is a header. Content cannot pass for a marker: the writer puts a backslash before a line
that begins as one, and one more if there are some already; the reader removes one. So content is read back unchanged.
A line begins after every character at which some program breaks lines. Names of directories and commands, which the
header and the breadcrumbs quote, stay on one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolwire._surface import check_type
from toolwire.errors import EnvelopeError
from toolwire.text.escape import escape_as_json
from toolwire.text.json_text import unique_members

BEGIN: Final = "# TE_BEGIN_META"
END: Final = "# TE_END_META"
CRUMB: Final = "# TE: "
VERSION: Final = 1

FIELDS: Final[Mapping[str, type]] = {
    "v": int,
    "cmd": str,
    "matches": int,
    "lines": int,
    "size": int,
    "files": int,
    "truncated": bool,
    "hot_zone": str,
    "content_type": str,
    "handle": str,
    "hint": str,
    "error": str,
}
"""Types of the header's fields, in the order in which they are written."""
MAGNITUDES: Final = ("matches", "lines", "size")
FORBIDDEN: Final = frozenset({"next_moves", "suggestions", "hints"})
"""An envelope describes content. It does not advise its reader on the next step."""

_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_AT_LINE = rf"(?:\A|(?<=[{_BREAKS}]))"
_MARKER = r"# TE(?:_BEGIN_META|_END_META|:)"
_TO_QUOTE = re.compile(rf"{_AT_LINE}(?=\\*{_MARKER})")
_QUOTED = re.compile(rf"{_AT_LINE}\\(?=\\*{_MARKER})")
_BREAK = re.compile(f"[{_BREAKS}]")
_HEADER = re.compile(rf"{BEGIN}\n([^\n]*)\n{END}(?=\n|\Z)")
_CRUMB_LINE = re.compile(r"(?:\A|\n)# TE: ?([^\n]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeHeader:
    """The header of an envelope. It states a magnitude, unless it reports an error.

    Attributes:
        cmd: the command or the tool.
        matches: number of matches, shown or not.
        lines: number of lines, shown or not.
        size: characters of text, or bytes of other content.
        files: number of files with matches.
        truncated: something is not shown.
        hot_zone: the directory with most of the matches, and their share.
        content_type: the type of the content, if not plain text.
        handle: handle of the whole result.
        hint: one sentence about a new feature for this reader.
        error: a word for the error.
        v: version of the grammar.
    """

    cmd: str
    matches: int | None = None
    lines: int | None = None
    size: int | None = None
    files: int | None = None
    truncated: bool = False
    hot_zone: str | None = None
    content_type: str | None = None
    handle: str | None = None
    hint: str | None = None
    error: str | None = None
    v: int = VERSION

    def __post_init__(self) -> None:
        """Raise an error for a header that must not be written."""
        for name, kind in FIELDS.items():
            value = getattr(self, name)
            if value is not None and (type(value) is not kind or (isinstance(value, int) and value < 0)):
                raise EnvelopeError(f"{name} must be {_KINDS[kind]}, not {value!r:.80}")
        if not self.cmd:
            raise EnvelopeError("cmd is empty")
        if self.error is None and all(getattr(self, name) is None for name in MAGNITUDES):
            raise EnvelopeError(f"a header without an error has one of {', '.join(MAGNITUDES)}")

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> EnvelopeHeader:
        """Return the header from its JSON object; unknown members are ignored.

        Raises:
            EnvelopeError: the object is not a header.
        """
        if forbidden := FORBIDDEN & meta.keys():
            raise EnvelopeError(f"a header must not contain {', '.join(sorted(forbidden))}; use one sentence in hint")
        if missing := {"v", "cmd"} - meta.keys():
            raise EnvelopeError(f"a header has {' and '.join(sorted(missing))}")
        return cls(**{name: meta[name] for name in FIELDS if meta.get(name) is not None})

    @property
    def meta(self) -> dict[str, Any]:
        """The JSON object: only fields that are set, and `truncated` only if true."""
        values = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    @property
    def text(self) -> str:
        """The three lines of the header."""
        line = json.dumps(self.meta, ensure_ascii=False, separators=(",", ":"))
        return f"{BEGIN}\n{escape_as_json(line)}\n{END}"


_KINDS = {int: "a non-negative integer", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class EnvelopeSection:
    """Content, and breadcrumbs that say what was left out of it."""

    text: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvelopeDocument:
    """An envelope: a header and sections, each but the last with breadcrumbs; without sections, the header alone."""

    header: EnvelopeHeader
    sections: tuple[EnvelopeSection, ...] = ()

    def __post_init__(self) -> None:
        """Raise an error for a document that could not be read back."""
        for section in self.sections[:-1]:
            if not section.left_out:
                raise EnvelopeError("only the last section may be without a breadcrumb, which ends a section")
        for crumb in (crumb for section in self.sections for crumb in section.left_out):
            if _BREAK.search(crumb):
                raise EnvelopeError(f"a breadcrumb is one line, not {crumb!r:.80}")

    @property
    def body(self) -> str:
        """Everything after the header and its empty line."""
        parts: list[str] = []
        for section in self.sections:
            parts.append(quoted(section.text))
            parts += [CRUMB + crumb for crumb in section.left_out]
        return "\n\n".join(parts)

    @property
    def text(self) -> str:
        """The envelope as it is written."""
        return f"{self.header.text}\n\n{self.body}" if self.sections else self.header.text

    @property
    def content(self) -> str:
        """The text of all sections, separated by line breaks."""
        return "\n".join(section.text for section in self.sections)

    @property
    def left_out(self) -> tuple[str, ...]:
        """All breadcrumbs."""
        return tuple(crumb for section in self.sections for crumb in section.left_out)


def read_envelope(text: str) -> EnvelopeDocument:
    """Parse an envelope, the inverse of `EnvelopeDocument.text`.

    The JSON may contain spaces, and blank lines may be missing.

    Raises:
        EnvelopeError: the text does not begin with a header.
    """
    check_type("text", text, str, "the text of an envelope")
    match = _HEADER.match(text)
    if match is None:
        raise EnvelopeError(f"an envelope begins with {BEGIN}, a line of JSON and {END}")
    try:
        meta = json.loads(match[1], object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        raise EnvelopeError(f"the header is not JSON: {error}") from error
    if not isinstance(meta, dict):
        raise EnvelopeError("the header is not a JSON object")
    header = EnvelopeHeader.of(meta)
    rest = text[match.end() :]
    if rest in ("", "\n"):
        return EnvelopeDocument(header)
    if not rest.startswith("\n\n"):
        raise EnvelopeError("an empty line is missing between the header and the content")
    return EnvelopeDocument(header, tuple(_sections(rest[2:])))


def _sections(body: str) -> list[EnvelopeSection]:
    crumb_lines = list(_CRUMB_LINE.finditer(body))
    sections: list[EnvelopeSection] = []
    text = body[: crumb_lines[0].start()].removesuffix("\n") if crumb_lines else body
    crumbs: list[str] = []
    for at, crumb in enumerate(crumb_lines):
        crumbs.append(crumb[1])
        last = at + 1 == len(crumb_lines)
        between = body[crumb.end() : None if last else crumb_lines[at + 1].start()]
        if between in ("", "\n"):  # the next breadcrumb, or the end
            continue
        sections.append(EnvelopeSection(_unquoted(text), tuple(crumbs)))
        crumbs = []
        text = between.removeprefix("\n").removeprefix("\n")
        if not last:
            text = text.removesuffix("\n")
    return [*sections, EnvelopeSection(_unquoted(text), tuple(crumbs))]


def quoted(text: str) -> str:
    """Return content with a backslash before each line that begins as a marker."""
    return _TO_QUOTE.sub(r"\\", text) if "# TE" in text else text


def extra(text: str) -> int:
    """Return the number of characters that `quoted` adds to a text."""
    return sum(1 for _ in _TO_QUOTE.finditer(text)) if "# TE" in text else 0


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text) if "# TE" in text else text


def count_lines(text: str) -> int:
    """Return the number of lines, whether or not the last one ends with a line break."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)
