"""Members of a call beside its name: which of them are its arguments, and which may be arguments that went wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from toolwire.wire.dialects import ARGUMENT_KEYS, COMMENT_KEYS, IDENTITY_KEYS, folded_key

_EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values of members that can be left out of a call without a loss."""


def arguments_among(
    members: Mapping[str, Any], parameters: Collection[str]
) -> tuple[dict[str, Any], Iterable[str], str] | None:
    """Return the arguments among the members of a call without other arguments.

    Args:
        members: the members.
        parameters: the parameters that the tool's schema declares.

    Returns:
        The arguments, the keys of the members that they were in, and the repair. The arguments are the members that
        the schema declares, or else an object of such members whose key says that it holds arguments. None if there
        are no such members.
    """
    names = frozenset(parameters)
    if declared := {key: value for key, value in members.items() if key in names}:
        return declared, declared, "flat_arguments"
    holders = [key for key in members if folded_key(key) in ARGUMENT_KEYS]
    if names and len(holders) == 1:
        arguments = members[holders[0]]
        if isinstance(arguments, dict) and names.issuperset(arguments):
            return arguments, holders, "argument_key"
    return None


def lost_argument(members: Mapping[str, Any]) -> str:
    """Return the key of a member that may be an argument under a key that nothing declares, or ""."""
    ignored = COMMENT_KEYS | IDENTITY_KEYS
    lost = (key for key, value in members.items() if value not in _EMPTY and folded_key(key) not in ignored)
    return next(lost, "")
