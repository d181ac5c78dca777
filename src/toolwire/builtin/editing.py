"""`write_file` and `apply_diff`: files are written whole or not at all, and each call has a diff as its preview.

If a preview was shown for a call, the call runs only if the file is still what the diff began with. (Another program
may still change it between that check and the write: nothing here locks files.)
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any

from toolwire.builtin import previews
from toolwire.builtin.matching import Edit, applied
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.search.re2_search import is_binary

MAX_WRITTEN = 4 << 20
"""Maximum size of a file that is written or edited, in bytes."""
PREVIEW_SECONDS = 0.5
"""Processor time for the edits of a preview, in seconds; previews are made in the event loop."""
REMEMBERED = 10_000
"""Maximum number of previews stored for calls that run in another context than their preview; see `_shown`."""


class Editing:
    """The tools `write_file` and `apply_diff`."""

    def __init__(self, roots: AllowedRoots) -> None:
        self._roots = roots
        self._seen = _Seen()

    def write_file(self, path: str, content: str) -> str:
        """Write a text file whole. What was in it is lost; directories that are missing are made.

        Args:
            path: the file, relative to the root.
            content: all of its text.
        """
        data = _encoded(content)
        _names_a_file(path)
        previewed = self._seen.take(path, content)
        if previewed is not None:

            def change(old: bytes | None) -> bytes:
                _compare(path, previewed, old)
                return data

            self._roots.update(path, change, most=MAX_WRITTEN, parents=True)
        else:
            self._roots.write(path, data, parents=True)
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        return f"wrote {len(data)} bytes, {lines} lines, to {path}"

    def preview_write(self, arguments: dict[str, Any]) -> str:
        """Return the diff that `write_file` would make."""
        path, content = arguments["path"], arguments["content"]
        _encoded(content)
        _names_a_file(path)
        old = self._roots.look(path, most=MAX_WRITTEN)
        self._seen.put(path, content, old)
        text = None if old is None else _text(old)
        if old is not None and text is None:
            return previews.diff(f"{path} (replaces {len(old):,} bytes that are not text)", None, content)
        return previews.diff(path, text, content)

    def apply_diff(self, path: str, edits: list[Edit]) -> str:
        """Change parts of a text file: each edit replaces text that is in the file exactly once.

        All edits are made, or none. They are looked for in the file as it is now, so they must not overlap.

        Args:
            path: the file, relative to the root.
            edits: what to replace, and by what.
        """
        notes_of_edits: list[str] = []
        previewed = self._seen.take(path, edits)

        def change(old: bytes | None) -> bytes:
            if previewed is not None:
                _compare(path, previewed, old)
            text, notes = applied(path, _editable(path, old), edits)
            notes_of_edits.extend(notes)
            return _encoded(text)

        self._roots.update(path, change, most=MAX_WRITTEN)
        count = "1 edit" if len(edits) == 1 else f"{len(edits)} edits"
        return "; ".join([f"made {count} in {path}", *notes_of_edits])

    def preview_diff(self, arguments: dict[str, Any]) -> str:
        """Return the diff that `apply_diff` would make."""
        path, edits = arguments["path"], arguments["edits"]
        old = self._roots.look(path, most=MAX_WRITTEN)
        before = _editable(path, old)
        after, notes = applied(path, before, edits, seconds=PREVIEW_SECONDS)
        self._seen.put(path, edits, old)
        return "\n".join([*(f"({note})" for note in notes), previews.diff(path, before, after)])


@dataclass(slots=True, eq=False)
class _Shown:
    """A preview: the call that it was for, and the content of the file then."""

    seen: _Seen
    key: str
    digest: str
    taken: bool = False


_shown: ContextVar[_Shown | None] = ContextVar("_shown", default=None)
"""The preview of this context. A call runs in the context in which it was approved, or in a copy of it. So equal calls
that wait at the same time, in other sessions too, are distinct.
"""


class _Seen:
    """Digests of the files whose diffs were shown, by the calls that would change them."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, _Shown] = OrderedDict()
        self._lock = Lock()

    def put(self, path: str, change: str | list[Edit], content: bytes | None) -> None:
        shown = _Shown(self, _key(path, change), _digest(content))
        _shown.set(shown)
        with self._lock:
            self._last[shown.key] = shown
            self._last.move_to_end(shown.key)
            if len(self._last) > REMEMBERED:
                self._last.popitem(last=False)

    def take(self, path: str, change: str | list[Edit]) -> str | None:
        """Return the digest for exactly the call of this context, once; otherwise that of the last equal call."""
        key, current = _key(path, change), _shown.get()
        with self._lock:
            if current is not None and current.seen is self and current.key == key and not current.taken:
                current.taken = True
                if self._last.get(key) is current:
                    del self._last[key]
                return current.digest
            last = self._last.pop(key, None)  # not marked as taken: its own call may still wait for approval
            return None if last is None else last.digest


def _key(path: str, change: str | list[Edit]) -> str:
    content = change if isinstance(change, str) else [[edit["search"], edit["replace"]] for edit in change]
    return hashlib.sha256(json.dumps([path, content]).encode()).hexdigest()


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _compare(path: str, was: str, content: bytes | None) -> None:
    if _digest(content) != was:
        raise ToolError(f"{path} has changed since this was approved, so nothing was written; read it again")


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
