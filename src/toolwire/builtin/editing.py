"""`write_file` and `apply_diff`: files written whole or not at all, each with the diff that somebody is shown before.

Where a diff was shown for a call, the call runs only if the file is still what the diff began with; else the model is
told that it has changed. (Between that look and the write another program may still change the file: nothing here
locks it.)
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
"""Bytes of a file that is written or edited."""
REMEMBERED = 10_000
"""Previews that are remembered for calls which run elsewhere than they were shown; `_shown` holds the others."""


class Editing:
    """Files written, below roots."""

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
        was = self._seen.take(path, content)
        if was is not None:

            def change(old: bytes | None) -> bytes:
                _compare(path, was, old)
                return data

            self._roots.update(path, change, most=MAX_WRITTEN, parents=True)
        else:
            self._roots.write(path, data, parents=True)
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        return f"wrote {len(data)} bytes, {lines} lines, to {path}"

    def preview_write(self, arguments: dict[str, Any]) -> str:
        """The diff that `write_file` would make."""
        path, content = arguments["path"], arguments["content"]
        _encoded(content)
        _names_a_file(path)
        old = self._roots.look(path, most=MAX_WRITTEN)
        self._seen.put(path, content, old)
        text = None if old is None else _text(old)
        if old is not None and text is None:
            return previews.diff(f"{path} (replaces {len(old):,} bytes that are no text)", None, content)
        return previews.diff(path, text, content)

    def apply_diff(self, path: str, edits: list[Edit]) -> str:
        """Change parts of a text file: each edit replaces text that is in the file exactly once.

        All edits are made, or none. They are looked for in the file as it is now, so they must not overlap.

        Args:
            path: the file, relative to the root.
            edits: what to replace, and by what.
        """
        told: list[str] = []
        was = self._seen.take(path, edits)

        def change(old: bytes | None) -> bytes:
            if was is not None:
                _compare(path, was, old)
            text, notes = applied(path, _editable(path, old), edits)
            told.extend(notes)
            return _encoded(text)

        self._roots.update(path, change, most=MAX_WRITTEN)
        made = "1 edit" if len(edits) == 1 else f"{len(edits)} edits"
        return "; ".join([f"made {made} in {path}", *told])

    def preview_diff(self, arguments: dict[str, Any]) -> str:
        """The diff that `apply_diff` would make."""
        path, edits = arguments["path"], arguments["edits"]
        old = self._roots.look(path, most=MAX_WRITTEN)
        before = _editable(path, old)
        after, notes = applied(path, before, edits)
        self._seen.put(path, edits, old)
        return "\n".join([*(f"({note})" for note in notes), previews.diff(path, before, after)])


@dataclass(slots=True, eq=False)
class _Shown:
    """A diff that was shown: of which call, beginning with what."""

    seen: _Seen
    key: str
    digest: str
    taken: bool = False


_shown: ContextVar[_Shown | None] = ContextVar("_shown", default=None)
"""What was shown in this context. A call runs in the context in which somebody agreed to it, or in a copy of that, so
equal calls that wait at the same time, of other sessions too, are told apart."""


class _Seen:
    """What was in the files whose diffs were shown, by the calls that would change them."""

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
        """What was shown in this context for exactly this call, once; else what was shown last for an equal one."""
        key, own = _key(path, change), _shown.get()
        with self._lock:
            if own is not None and own.seen is self and own.key == key and not own.taken:
                own.taken = True
                if self._last.get(key) is own:
                    del self._last[key]
                return own.digest
            last = self._last.pop(key, None)  # not marked: whoever was shown that may still be thinking
            return None if last is None else last.digest


def _key(path: str, change: str | list[Edit]) -> str:
    what = change if isinstance(change, str) else [[edit["search"], edit["replace"]] for edit in change]
    return hashlib.sha256(json.dumps([path, what]).encode()).hexdigest()


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _compare(path: str, was: str, content: bytes | None) -> None:
    if _digest(content) != was:
        raise ToolError(f"{path} has changed since somebody agreed to this, so nothing was written; read it again")


def _names_a_file(path: str) -> None:
    if path.endswith(("/", "/.", "/..")) or path in (".", ".."):
        raise ToolError(f"{path} names a directory; write_file writes files, and makes the directories they lie in")


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolError("the text has half of a surrogate pair, which no file can hold") from None
    if len(data) > MAX_WRITTEN:
        raise ToolError(f"the text has {len(data)} bytes; a file can be written with {MAX_WRITTEN}")
    return data


def _text(data: bytes) -> str | None:
    """What a file says; None if it is no UTF-8 text."""
    try:
        return None if is_binary(data) else data.decode()
    except UnicodeDecodeError:
        return None


def _editable(path: str, data: bytes | None) -> str:
    if data is None:
        raise ToolError(f"{path}: No such file or directory; write_file makes files")
    text = _text(data)
    if text is None:
        raise ToolError(f"{path} is not UTF-8 text, so it cannot be edited")
    return text
