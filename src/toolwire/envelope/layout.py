"""A text in an envelope that fits: in as many characters as its reader has room for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from toolwire.envelope.cutting import cut
from toolwire.envelope.grammar import Document, Header, Section
from toolwire.envelope.store import MAX_KEPT

Keep = Callable[[str, Header], str | None]
"""Keeps a whole text and gives its handle back; None if it cannot be kept."""

CRUMBS: Final = 420
"""Characters that all breadcrumbs of an envelope have room in."""


def compose_text(
    text: str,
    header: Header,
    *,
    limit: int,
    keep: Keep,
    lines: int | None = None,
    tail: float = 0.0,
    more: str = "",
) -> Document:
    """A text in an envelope; where it has no room, its ends, and a handle for the whole.

    Args:
        text: the text.
        header: what is said of it, but for what cutting it adds.
        limit: characters of the envelope.
        keep: where the whole goes.
        lines: lines that may be shown.
        tail: the share that its end has of what is shown.
        more: what is not even in the text, in words.
    """
    crumbs = (more,) if more else ()
    whole = Document(replace(header, truncated=bool(more)), (Section(text, crumbs),))
    if len(whole.text) <= limit and not cut(text, limit, lines=lines).left_out:
        return whole
    handle = keep(text, header)
    header = replace(header, truncated=True, handle=handle)
    room = limit - len(header.text) - 2 - CRUMBS
    shown = cut(text, max(room, 1), lines=lines, tail=tail)
    left_out = shown.left_out + ("" if handle else " (not kept)")
    if handle and len(text) > MAX_KEPT:
        crumbs = (f"of these the first {MAX_KEPT} characters are kept", *crumbs)
    if not shown.tail:
        return Document(header, (Section(shown.head, (left_out, *crumbs)),))
    return Document(header, (Section(shown.head, (left_out,)), Section(shown.tail, crumbs)))
