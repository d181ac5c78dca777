"""Did you mean: the known names that are nearest to an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

_KindT = TypeVar("_KindT", bound=type)

SIMILARITY = 0.5
"""Smallest similarity of a suggestion, from 0 to 1, as `difflib` measures it."""
SYNONYMS = {
    "callbacks": "observers",
    "chat_history": "history",
    "checkpointer": "conversation",
    "context": "deps",
    "context_schema": "deps",
    "dependencies": "deps",
    "deps_type": "deps",
    "description_override": "description",
    "event_stream_handler": "observers",
    "history_processors": "hooks",
    "instructions": "system",
    "managed_agents": "members",
    "max_completion_tokens": "max_tokens",
    "max_iterations": "rounds",
    "max_output_tokens": "max_tokens",
    "max_retries": "output_retries",
    "max_steps": "rounds",
    "max_turns": "rounds",
    "mcp_servers": "tools",
    "message_history": "history",
    "messages": "history",
    "middleware": "hooks",
    "model": "backend",
    "model_settings": "settings",
    "name_override": "name",
    "needs_approval": "requires_confirmation",
    "parallel_tool_calls": "parallel",
    "reasoning": "reasoning_effort",
    "recursion_limit": "rounds",
    "request_limit": "rounds",
    "requires_approval": "requires_confirmation",
    "response_format": "output_type",
    "response_model": "output_type",
    "result_type": "output_type",
    "retries": "output_retries",
    "return_direct": "ends_turn",
    "session_id": "conversation",
    "stop_sequences": "stop",
    "step_callbacks": "observers",
    "system_message": "system",
    "system_prompt": "system",
    "thinking": "reasoning_effort",
    "thread_id": "conversation",
    "tool_calls_limit": "calls",
    "toolsets": "tools",
    "total_tokens_limit": "tokens",
    "usage_limits": "budget",
}
"""Names of arguments in other frameworks, and what they are called here. No spelling resembles them, so nothing else
would suggest the name."""
Places = Mapping[str, Collection[str]]
"""Places of arguments that a function does not have: a hint with `{}` for the name, and the names."""


def closest(name: str, known: Iterable[str], *, limit: int = 1, similarity: float = SIMILARITY) -> list[str]:
    """Return the known names nearest to a name, whatever their case; the best comes first.

    Args:
        name: the name that is not known.
        known: the names to choose from.
        limit: the maximum number of names.
        similarity: the smallest similarity of a name, from 0 to 1.
    """
    import difflib  # here, since only failures need it, and every command would pay for it

    spellings: dict[str, list[str]] = {}
    for candidate in known:
        spellings.setdefault(candidate.casefold(), []).append(candidate)
    near = difflib.get_close_matches(name.casefold(), spellings, n=limit, cutoff=similarity)
    return [candidate for folded in near for candidate in spellings[folded]][:limit]


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first of these names with commas between them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def did_you_mean(names: Iterable[str]) -> str:
    """Return the end of a sentence that suggests these names, or "" if there are none."""
    listed = " or ".join(names)
    return f"; did you mean {listed}?" if listed else ""


def check_options(function: str, options: Iterable[str], known: Collection[str], places: Places | None = None) -> None:
    """Check the names of keyword arguments that are passed on as a dict.

    Args:
        function: name of the function, for messages.
        options: the names to check.
        known: the names that the function has.
        places: where other names belong.

    Raises:
        TypeError: a name is not known; the message suggests the nearest one, or where it belongs.
    """
    for name in options:
        if name not in known:
            raise TypeError(f"{function}() has no argument {name!r}{_hint(name, known, places or {})}")


def _hint(name: str, known: Collection[str], places: Places) -> str:
    """Return the end of the sentence that an argument is not known: how it is written instead."""
    synonym = SYNONYMS.get(name, name)
    if synonym in known:
        return did_you_mean([synonym])
    for place in (name, synonym):
        if hint := next((hint for hint, names in places.items() if place in names), ""):
            return f": {hint.replace('{}', place)}"
    return did_you_mean(closest(name, known)) or f"; it takes {', '.join(sorted(known))}"


def suggests_keywords(kind: _KindT) -> _KindT:
    """Make the constructor of a dataclass suggest the nearest name for a misspelt keyword argument.

    Python's own error names the class and the unknown argument alone, and settings have many names. The signature
    stays what it was, for type checkers and for `inspect`.
    """
    return explains_keywords({})(kind)


def explains_keywords(places: Places) -> Callable[[_KindT], _KindT]:
    """Make the constructor of a dataclass say where a keyword belongs that it does not have; see `suggests_keywords`.

    Args:
        places: where other names belong.
    """

    def decorate(kind: _KindT) -> _KindT:
        construct = vars(kind)["__init__"]
        names = frozenset(field.name for field in fields(kind) if field.init)

        @wraps(construct)
        def checked(self: Any, *values: Any, **options: Any) -> None:
            if not names.issuperset(options):
                check_options(kind.__name__, options, names, places)
            construct(self, *values, **options)

        kind.__init__ = checked  # type: ignore[misc]
        return kind

    return decorate
