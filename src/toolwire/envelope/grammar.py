r"""The grammar of an envelope: one description, which the writer and the reader share.

    # TE_BEGIN_META
    {"v":1,"cmd":"grep","matches":847,"truncated":true,"handle":"res_5f0c1e7a9b3d"}
    # TE_END_META

    a section of content

    # TE: what was left out of the section above

    the next section

The header begins the text; nothing further down is one. Content cannot pass for a marker: a line of it that begins as
one is written with a backslash before it, one more where it has some already, and the reader takes one away. So what
is between the markers comes back as it was. Lines begin behind every character at which some program breaks them.
What the header and the breadcrumbs quote of the outside (names of directories, of commands) stays on its one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
"""What a header may hold, in the order in which it is written."""
MAGNITUDES: Final = ("matches", "lines", "size")
FORBIDDEN: Final = frozenset({"next_moves", "suggestions", "hints"})
"""An envelope says what there is. What to do next is for whoever reads it."""

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
    """What stands before the content; it cannot be made without a magnitude, unless it says what went wrong.

    Attributes:
        cmd: the command or the tool.
        matches: how many things were found, shown or not.
        lines: how many lines there are, shown or not.
        size: characters of text, or bytes of what is no text.
        files: files that hold the matches.
        truncated: something is not shown.
        hot_zone: the directory that most matches lie in, with their share.
        content_type: what the content is, if not plain text.
        handle: under which the whole is kept.
        hint: one sentence about something new that this reader can do.
        error: a word for what went wrong.
        v: the version of the grammar.
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
        """Refuse what no header may say."""
        for name, kind in FIELDS.items():
            value = getattr(self, name)
            if value is not None and (type(value) is not kind or (isinstance(value, int) and value < 0)):
                raise EnvelopeError(f"{name} has to be {_KINDS[kind]}, not {value!r:.80}")
        if not self.cmd:
            raise EnvelopeError("cmd is empty")
        if self.error is None and all(getattr(self, name) is None for name in MAGNITUDES):
            raise EnvelopeError(f"a header without an error has one of {', '.join(MAGNITUDES)}")

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> EnvelopeHeader:
        """A header from its JSON object; members that are not known are left out.

        Raises:
            EnvelopeError: it is none.
        """
        if found := FORBIDDEN & meta.keys():
            raise EnvelopeError(f"a header must not hold {', '.join(sorted(found))}; one sentence may stand in hint")
        if missing := {"v", "cmd"} - meta.keys():
            raise EnvelopeError(f"a header has {' and '.join(sorted(missing))}")
        return cls(**{name: meta[name] for name in FIELDS if meta.get(name) is not None})

    @property
    def meta(self) -> dict[str, Any]:
        """The JSON object: what is said and nothing else, `truncated` only where it is true."""
        said = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in said.items() if value is not None and value is not False}

    @property
    def text(self) -> str:
        """The three lines."""
        line = json.dumps(self.meta, ensure_ascii=False, separators=(",", ":"))
        return f"{BEGIN}\n{escape_as_json(line)}\n{END}"


_KINDS = {int: "a whole number, not negative", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Section:
    """Content, and what was left out of it: breadcrumbs say that, and never what to do."""

    text: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """An envelope: a header and sections, each but the last with its breadcrumbs; without sections a header alone."""

    header: EnvelopeHeader
    sections: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what could not be read back."""
        for section in self.sections[:-1]:
            if not section.left_out:
                raise EnvelopeError("only the last section may be without a breadcrumb: what would end it?")
        for crumb in (crumb for section in self.sections for crumb in section.left_out):
            if _BREAK.search(crumb):
                raise EnvelopeError(f"a breadcrumb is one line, not {crumb!r:.80}")

    @property
    def body(self) -> str:
        """All behind the header and the empty line."""
        parts: list[str] = []
        for section in self.sections:
            parts.append(quoted(section.text))
            parts += [CRUMB + crumb for crumb in section.left_out]
        return "\n\n".join(parts)

    @property
    def text(self) -> str:
        """The envelope, as it is written."""
        return f"{self.header.text}\n\n{self.body}" if self.sections else self.header.text

    @property
    def content(self) -> str:
        """The sections' text, a line break between them."""
        return "\n".join(section.text for section in self.sections)

    @property
    def left_out(self) -> tuple[str, ...]:
        """All breadcrumbs."""
        return tuple(crumb for section in self.sections for crumb in section.left_out)


def read_envelope(text: str) -> Document:
    """Read an envelope; the opposite of `Document.text`. JSON may be spaced, and breadcrumbs closer than we write them.

    Raises:
        EnvelopeError: the text does not begin with a header.
    """
    found = _HEADER.match(text)
    if found is None:
        raise EnvelopeError(f"an envelope begins with {BEGIN}, a line of JSON and {END}")
    try:
        meta = json.loads(found[1], object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        raise EnvelopeError(f"the header holds no JSON: {error}") from error
    if not isinstance(meta, dict):
        raise EnvelopeError("the header holds no JSON object")
    header = EnvelopeHeader.of(meta)
    rest = text[found.end() :]
    if rest in ("", "\n"):
        return Document(header)
    if not rest.startswith("\n\n"):
        raise EnvelopeError("an empty line stands between the header and the content")
    return Document(header, tuple(_sections(rest[2:])))


def _sections(body: str) -> list[Section]:
    found = list(_CRUMB_LINE.finditer(body))
    sections: list[Section] = []
    text = body[: found[0].start()].removesuffix("\n") if found else body
    crumbs: list[str] = []
    for at, crumb in enumerate(found):
        crumbs.append(crumb[1])
        last = at + 1 == len(found)
        between = body[crumb.end() : None if last else found[at + 1].start()]
        if between in ("", "\n"):  # the next breadcrumb, or the end
            continue
        sections.append(Section(_unquoted(text), tuple(crumbs)))
        crumbs = []
        text = between.removeprefix("\n").removeprefix("\n")
        if not last:
            text = text.removesuffix("\n")
    return [*sections, Section(_unquoted(text), tuple(crumbs))]


def quoted(text: str) -> str:
    """Content in which no line begins as a marker."""
    return _TO_QUOTE.sub(r"\\", text) if "# TE" in text else text


def extra(text: str) -> int:
    """How many characters longer `quoted` makes a text."""
    return sum(1 for _ in _TO_QUOTE.finditer(text)) if "# TE" in text else 0


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text) if "# TE" in text else text


def count_lines(text: str) -> int:
    """Return the number of lines, whether or not the last one ends with a line break."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)
