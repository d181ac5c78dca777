"""States that previews of calls showed, so that a call does not run on anything else."""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import PurePath
from threading import Lock
from typing import Any

from toolwire.builtin.previews import path_name
from toolwire.errors import ToolError
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.runtime.launched_files import code_digests, program_file

MAX_NAMED = 5
"""Maximum number of files of code that a preview names."""
REMEMBERED = 10_000
"""Maximum number of previews stored for calls that run in another context than their preview; see `_shown`."""


@dataclass(slots=True, eq=False)
class _Shown:
    """A preview: the call that it was for, and what the call was about to change then."""

    calls: ShownCalls
    key: str
    state: str
    taken: bool = False


_shown: ContextVar[_Shown | None] = ContextVar("_shown", default=None)
"""The preview of this context. A call runs in the context in which it was approved, or in a copy of it. So equal calls
that wait at the same time, in other sessions too, are distinct.
"""


class ShownCalls:
    """The states that were shown, such as a file's place and content, by the calls that would change them."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, _Shown] = OrderedDict()
        self._lock = Lock()

    def put(self, call: Any, state: str) -> None:
        """Store the state that was shown for a call, which is a JSON value."""
        shown = _Shown(self, _key(call), state)
        _shown.set(shown)
        with self._lock:
            self._last[shown.key] = shown
            self._last.move_to_end(shown.key)
            if len(self._last) > REMEMBERED:
                self._last.popitem(last=False)

    def take(self, call: Any) -> str | None:
        """Return the state for exactly the call of this context, once; otherwise that of the last equal call."""
        key, current = _key(call), _shown.get()
        with self._lock:
            if current is not None and current.calls is self and current.key == key and not current.taken:
                current.taken = True
                if self._last.get(key) is current:
                    del self._last[key]
                return current.state
            last = self._last.pop(key, None)  # not marked as taken: its own call may still wait for approval
            return None if last is None else last.state


def link_note(roots: AllowedRoots, path: str, target: str) -> str:
    """Return a line that says where a path leads if links take it elsewhere than it says; "" otherwise."""
    root, names = roots.inside(path) if path.startswith("/") else (roots.roots[0], path.split("/"))
    if target == os.path.normpath(os.path.join(root, *names)):
        return ""
    return f"(through a link: this is {path_name(target)})\n"


def changeable_code(
    argv: Sequence[str], here: str, env: Mapping[str, str], roots: Sequence[str | os.PathLike[str]]
) -> dict[str, str]:
    """Return the digests of the program and of files of code that a command names, by path, where calls can write.

    Args:
        argv: the program and its arguments.
        here: the directory that it runs in.
        env: its environment.
        roots: the directories below which calls can write, without links.

    Raises:
        ToolError: a file cannot be read.
    """
    program = program_file(argv[0], here, env.get("PATH", os.defpath))
    try:
        all_digests = code_digests(program, argv, here, env)
    except OSError as error:
        raise ToolError(f"{error.filename} cannot be read, so what would run is not certain") from error
    targets = {os.path.realpath(path): digest for path, digest in all_digests.items()}
    return {
        path: digest for path, digest in targets.items() if any(PurePath(path).is_relative_to(root) for root in roots)
    }


def code_note(code: Mapping[str, str]) -> str:
    """Return a line with files of code that calls can change, by path with their digests; "" if there are none."""
    if not code:
        return ""
    # Their content is a part of what is shown: an approval that comes later, or stays, is for this content alone.
    digest = next(iter(code.values())) if len(code) == 1 else hashlib.sha256(json.dumps(code).encode()).hexdigest()
    paths = ", ".join(map(path_name, [*code][:MAX_NAMED]))
    omitted = f" and {len(code) - MAX_NAMED} more" if len(code) > MAX_NAMED else ""
    ending = f"; SHA-256 begins with {digest[:32]}" if digest else ""
    return f"(code in a directory that tools may change: {paths}{omitted}{ending})\n"


def _key(call: Any) -> str:
    return hashlib.sha256(json.dumps(call).encode()).hexdigest()
