"""`write_file` and `apply_diff`: files are written whole or not at all, and each call has a diff as its preview.

If a preview was shown for a call, the call runs only if the path still leads to the same file, and that file is still
what the diff began with. (Another program may still change it between that check and the write: nothing here locks
files.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from toolwire.builtin import previews
from toolwire.builtin.matching import Edit, applied
from toolwire.builtin.shown_calls import ShownCalls, link_note
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.search.re2_search import is_binary
from toolwire.text.counted import counted

MAX_WRITTEN = 4 << 20
"""Maximum size of a file that is written or edited, in bytes."""
PREVIEW_SECONDS = 0.5
"""Processor time for the edits of a preview, in seconds; previews are made in the event loop."""


class Editing:
    """The tools `write_file` and `apply_diff`."""

    def __init__(self, roots: AllowedRoots) -> None:
        self._roots = roots
        self._shown = ShownCalls()

    def write_file(self, path: str, content: str) -> str:
        """Write a text file whole. What was in it is lost; directories that are missing are made.

        Args:
            path: the file, relative to the root.
            content: all of its text.
        """
        data = _encoded(content)
        _names_a_file(path)
        previewed = self._shown.take(_call(path, content))
        if previewed is not None:
            self._update(path, previewed, lambda _: data, parents=True)
        else:
            self._roots.write(path, data, parents=True)
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        return f"wrote {len(data)} bytes, {lines} lines, to {path}"

    def preview_write(self, arguments: dict[str, Any]) -> str:
        """Return the diff that `write_file` would make."""
        path, content = arguments["path"], arguments["content"]
        _encoded(content)
        _names_a_file(path)
        old, note = self._look(path, content)
        text = None if old is None else _text(old)
        if old is not None and text is None:
            return note + previews.diff(f"{path} (replaces {len(old):,} bytes that are not text)", None, content)
        return note + previews.diff(path, text, content)

    def apply_diff(self, path: str, edits: list[Edit]) -> str:
        """Change parts of a text file: each edit replaces text that is in the file exactly once.

        All edits are made, or none. They are looked for in the file as it is now, so they must not overlap.

        Args:
            path: the file, relative to the root.
            edits: what to replace, and by what.
        """
        notes_of_edits: list[str] = []

        def change(old: bytes | None) -> bytes:
            text, notes = applied(path, _editable(path, old), edits)
            notes_of_edits.extend(notes)
            return _encoded(text)

        self._update(path, self._shown.take(_call(path, edits)), change)
        count = counted(len(edits), "edit")
        return "; ".join([f"made {count} in {path}", *notes_of_edits])

    def preview_diff(self, arguments: dict[str, Any]) -> str:
        """Return the diff that `apply_diff` would make."""
        path, edits = arguments["path"], arguments["edits"]
        old, link = self._look(path, edits)
        before = _editable(path, old)
        after, notes = applied(path, before, edits, seconds=PREVIEW_SECONDS)
        return link + "\n".join([*(f"({note})" for note in notes), previews.diff(path, before, after)])

    def _look(self, path: str, call: str | list[Edit]) -> tuple[bytes | None, str]:
        """Return a file's content for a preview, and a note if a link leads there; the call is bound to both."""
        state = _State()
        state.content = self._roots.look(path, most=MAX_WRITTEN, on_target=state.on_target)
        self._shown.put(_call(path, call), str(state))
        return state.content, link_note(self._roots, path, state.target)

    def _update(
        self, path: str, previewed: str | None, change: Callable[[bytes | None], bytes], *, parents: bool = False
    ) -> None:
        """Change a file, unless a preview showed another file or another content."""
        state = _State()

        def compared(old: bytes | None) -> bytes:
            state.content = old
            if previewed is not None and str(state) != previewed:
                raise ToolError(f"{path} has changed since this was approved, so nothing was written; read it again")
            return change(old)

        self._roots.update(path, compared, most=MAX_WRITTEN, parents=parents, on_target=state.on_target)


class _State:
    """A file as a preview shows it and a call finds it: its path without links, and its content."""

    target = ""
    content: bytes | None = None

    def on_target(self, target: str) -> None:
        self.target = target

    def __str__(self) -> str:
        content = "" if self.content is None else hashlib.sha256(self.content).hexdigest()
        return f"{content} {self.target}"


def _call(path: str, change: str | list[Edit]) -> list[Any]:
    return [path, change if isinstance(change, str) else [[edit["search"], edit["replace"]] for edit in change]]


def _names_a_file(path: str) -> None:
    if path.endswith(("/", "/.", "/..")) or path in (".", ".."):
        raise ToolError(f"{path} names a directory; write_file writes files and creates their directories")


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolError("the text has half of a surrogate pair, which a file cannot contain") from None
    if len(data) > MAX_WRITTEN:
        raise ToolError(f"the text has {len(data)} bytes; the maximum is {MAX_WRITTEN}")
    return data


def _text(data: bytes) -> str | None:
    """Return a file's text; None if it is not UTF-8 text."""
    try:
        return None if is_binary(data) else data.decode()
    except UnicodeDecodeError:
        return None


def _editable(path: str, data: bytes | None) -> str:
    if data is None:
        raise ToolError(f"{path}: No such file or directory; write_file creates files")
    text = _text(data)
    if text is None:
        raise ToolError(f"{path} is not UTF-8 text, so it cannot be edited")
    return text
