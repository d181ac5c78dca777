"""Approvals: the question to a person, the answer, and the view of a call in a terminal.

Rules of the view, for any content of a call:

- Every character that a terminal obeys, that is invisible, or that turns text around is written as an escape; so are
  letters of other scripts inside Latin words, which look like something else.
- Text of the call is behind a bar on every line and never exceeds the width, so it cannot imitate a line of ours.
- Keys are text of the call too: all except plain short names are behind the bar, quoted.
- Padding is folded: a run of white space, of one character or of equal lines becomes one of them and a count.
- What is too long is shown at both ends, with the number of characters left out, and that none of them is shown.
- The last line names the tool again, with a digest of the whole: a view that scrolled away is told apart from others.

Work is linear in the size of the call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.cells import get_character_cell_size

from toolwire._surface import check_type
from toolwire.messages import ToolCall
from toolwire.policy.approval_view import ApprovalView
from toolwire.policy.fingerprint import approval_key
from toolwire.text.escape import escape_lookalikes
from toolwire.tools import ToolDefinition

LIMIT = 1_600
"""Maximum length of one value that is shown, in characters, unless the whole is requested."""
PREVIEW_LIMIT = 8_000
"""Maximum length of a preview, in characters."""
LEAVES = 60
"""Maximum number of values that are shown."""
FIELD_LIMIT = 400
"""Maximum length of a name or a reason, in characters."""
DEEPEST = 6
"""Maximum number of plain keys shown as one path on our own line; together they are shorter than `FIELD_LIMIT`."""
MIN_WIDTH = 30

_PLAIN = re.compile(r"(?![0-9]+$)[A-Za-z0-9_.-]{1,60}")


@dataclass(frozen=True, slots=True)
class Approval:
    """A question for approval; `present` shows it.

    Attributes:
        call: exactly the call that would run.
        definition: the tool.
        reason: why an approval is needed.
        preview: what it would do, in words or as a diff; "" if the tool has none.
    """

    call: ToolCall
    definition: ToolDefinition
    reason: str
    preview: str = ""

    @property
    def key(self) -> str:
        """The SHA-256 hex digest to which the answer is bound, of the tool's definition and the arguments."""
        return approval_key(self.call, self.definition)


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """The answer to an approval request.

    Attributes:
        approved: the call may run.
        remember: the answer is valid for the same tool with the same arguments until the session ends.
        reason: for the model, if the call was refused.
        unanswered: nobody has said yes or no yet: the call does not run now, and is asked about when it comes again.
        by: who has answered, as the message about a refusal says it.
    """

    approved: bool
    remember: bool = False
    reason: str = ""
    unanswered: bool = False
    by: str = "The user"

    def __post_init__(self) -> None:
        """Check that it does not contradict itself.

        Raises:
            TypeError: a decision is not True or False. Most values are true, the text "no" among them.
            ValueError: an unanswered question is approved or remembered.
        """
        for name in ("approved", "remember", "unanswered"):
            check_type(name, getattr(self, name), bool, "True or False")
        if self.unanswered and (self.approved or self.remember):
            raise ValueError("an unanswered question can be neither approved nor remembered")


def present(approval: Approval, width: int = 80, *, whole: bool = False) -> str:
    """Return an approval as lines of plain text that are safe to print to a terminal.

    Args:
        approval: the question.
        width: cells of the terminal's lines.
        whole: show everything; runs of repeated characters stay folded with a count.
    """
    check_type("approval", approval, Approval, "an Approval")
    call, definition = approval.call, approval.definition
    edge = max(width, MIN_WIDTH)
    leaves = list(_leaves(call.arguments))
    lines = _field("tool", f"{definition.name} ({definition.tier.name})", edge)
    if definition.server:
        lines += _field("server", definition.server, edge)
    lines += _field("why", approval.reason, edge)
    # The middle is left out, not the end: a model could hide the value that matters behind many harmless ones.
    hidden = 0 if whole else max(0, len(leaves) - LEAVES)
    for at, leaf in enumerate(leaves):
        if at == LEAVES // 2 and hidden:
            lines.append(f"  ({hidden} values are left out here: nothing of them is shown)")
        if not LEAVES // 2 <= at < LEAVES // 2 + hidden:
            limit = None if whole else LIMIT
            path, plain = leaf.path()
            if plain:
                lines += _field("value", path + leaf.kind, edge)
            else:
                lines += [
                    *_field("value", f"at this key{leaf.kind}", edge),
                    *_barred(ApprovalView.of(path, limit), edge),
                ]
                lines.append(f"{'':8}is")
            lines += _barred(ApprovalView.of(leaf.text, limit), edge)
    if approval.preview:
        lines.append("what it would do")
        lines += _barred(ApprovalView.of(approval.preview, None if whole else PREVIEW_LIMIT), edge)
    size = sum(len(leaf.text) for leaf in leaves)
    summary = f"{definition.name}; values: {len(leaves)}, characters: {size}; {approval.key[:12]}"
    return "\n".join((*lines, *_field("all", summary, edge)))


def left_out(approval: Approval) -> int:
    """Return the number of characters of the arguments and the preview that `present` hides by default.

    If there are any, an interface should not accept an approval before it has shown the whole.
    """
    leaves = list(_leaves(approval.call.arguments))
    hidden = max(0, len(leaves) - LEAVES)
    # The same part that `present` leaves out; an answer may not be accepted before it was shown.
    middle = slice(LEAVES // 2, LEAVES // 2 + hidden)
    # At least one for each: an empty value that is hidden is still something that the person has not seen.
    unseen = sum(max(1, leaf.keys + len(leaf.text)) for leaf in leaves[middle])
    del leaves[middle]
    for leaf in leaves:
        path, plain = leaf.path()
        unseen += ApprovalView.of(leaf.text, LIMIT).hidden + (0 if plain else ApprovalView.of(path, LIMIT).hidden)
    return unseen + ApprovalView.of(approval.preview, PREVIEW_LIMIT).hidden


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a value: a key or an index below another place. Whole paths would take quadratic memory."""

    key: str | int
    above: _Place | None


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value that contains no other; `keys` counts the characters of keys that no earlier leaf is below."""

    place: _Place
    text: str
    kind: str
    keys: int

    def path(self) -> tuple[str, bool]:
        """Return the path, and whether its keys are plain names; other keys are quoted, so that no two look alike."""
        # Places are linked upwards, since most leaves of a large call are never shown and need no path.
        parts: list[str | int] = []
        place: _Place | None = self.place
        while place:
            parts.append(place.key)
            place = place.above
        parts.reverse()
        plain = len(parts) <= DEEPEST and all(isinstance(key, int) or _PLAIN.fullmatch(key) for key in parts)
        if plain:
            return "/".join(map(str, parts)), True
        return "/".join(
            str(key) if isinstance(key, int) else json.dumps(key, ensure_ascii=False) for key in parts
        ), False


def _leaves(arguments: Mapping[str, Any]) -> Iterator[_Leaf]:
    """Yield every value that contains no other; text as it is, all else as JSON."""
    # A stack instead of recursion: the view has to work for any depth that the parser accepts.
    waiting = [(_Place(key, None), value, len(key)) for key, value in [*arguments.items()][::-1]]
    while waiting:
        place, value, keys = waiting.pop()
        if isinstance(value, dict | list) and value:
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            below = [(_Place(key, place), item, len(key) if isinstance(key, str) else 0) for key, item in inner]
            # Keys of an object count once, with its first value, though every value below has them in its path.
            below[0] = (below[0][0], below[0][1], below[0][2] + keys)
            waiting += reversed(below)
        elif isinstance(value, str):
            yield _Leaf(place, value, "", keys)
        else:
            yield _Leaf(place, json.dumps(value, ensure_ascii=False, default=str), f" ({_kind(value)})", keys)


def _kind(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", dict: "object", list: "array", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _barred(view: ApprovalView, width: int) -> list[str]:
    """Return text behind a bar on every line."""
    if not view.start:
        return ["  (empty)"]
    lines: list[str] = []
    # The bar shows where the call's own text is, which could otherwise imitate the lines of the question.
    for part in (view.start, view.end) if view.hidden else (view.start,):
        for line in escape_lookalikes(part).split("\n"):
            lines += [f"  | {piece}" for piece in _wrapped(line, width - 4)]
        if view.hidden and part is view.start:
            lines.append(f"  ({view.hidden} characters are left out here: nothing of them is shown)")
    return lines


def _field(name: str, text: str, width: int) -> list[str]:
    """Return a line of ours, with its text wrapped below itself."""
    first, *rest = _wrapped(_line(text), width - 8)
    return [f"{name:<8}{first}", *(f"{'':8}{line}" for line in rest)]


def _line(text: str) -> str:
    """Return text on one line, without its end if it is long."""
    # Without line breaks of its own, or a text of the model could end our line and begin one that looks like ours.
    line = " ".join(escape_lookalikes(text[: FIELD_LIMIT + 1]).split())
    return line if len(text) <= FIELD_LIMIT else f"{line}…"


def _wrapped(line: str, width: int) -> list[str]:
    """Return the parts of a line that fit the width in cells of the terminal."""
    parts: list[str] = []
    start = width_used = 0
    for at, c in enumerate(line):
        # Wide characters take two cells. Counted as one, they would run over the edge and escape the bar.
        size = get_character_cell_size(c)
        if width_used + size > width:
            parts.append(line[start:at])
            start, width_used = at, 0
        width_used += size
    return [*parts, line[start:]]
