"""Names of stored runs and conversations."""

from __future__ import annotations

from typing import Final

MAX_NAME: Final = 200
"""Maximum length of a name, in characters."""


def name_fault(owner: str, name: str) -> str:
    """Return why a name cannot be stored; "" if it can.

    Args:
        owner: what has the name, such as "a run".
        name: the name.
    """
    if name.isprintable() and name.strip() and len(name) <= MAX_NAME:
        return ""
    return f"{owner} cannot be called {name[:80]!r}: use at most {MAX_NAME} printable characters"
