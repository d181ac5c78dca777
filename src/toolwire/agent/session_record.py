"""Records of a session: the changes since the record before, and how they are restored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from enum import Enum
from time import time
from typing import Any, Final

from toolwire.errors import JournalError
from toolwire.policy.policy import REMEMBERED
from toolwire.policy.session import Session

CALL_TIMES: Final = "_call_times"
"""The field of a session that only grows: the times of calls, by tool. A record contains those that are new."""
MOMENTARY: Final = frozenset({"_busy"})
"""Fields that are not recorded: the calls that are running in one process do not run in another."""


class SessionRecord:
    """Writes the changes of a session, and restores them into one.

    Times of calls are recorded by the wall clock, since the clocks of other processes begin elsewhere.

    Args:
        session: the session that is recorded, and into which records are restored.
        clock: returns seconds, as the session's own times count them.
        wall: returns seconds, as every process counts them.
    """

    def __init__(self, session: Session, clock: Callable[[], float], wall: Callable[[], float] = time) -> None:
        self._session = session
        self._clock = clock
        self._wall = wall
        self._recorded: dict[str, Any] = {}
        self._recorded_calls: dict[str, int] = {}  # number of times in the session, by tool

    def changes(self) -> dict[str, Any]:
        """Return the changes since the last call of this method; everything, the first time."""
        changed: dict[str, Any] = {}
        for field in fields(self._session):
            if field.name in MOMENTARY:
                continue
            value = getattr(self._session, field.name)
            if field.name == CALL_TIMES:
                if self._session.delegated:
                    continue  # shared with the session that it was made of, which records them
                if new := self._new_calls(value):
                    changed[CALL_TIMES] = new
                continue
            data = _plain(value)
            if field.name not in self._recorded or self._recorded[field.name] != data:
                self._recorded[field.name] = changed[field.name] = data
        return changed

    def forget(self, changes: Mapping[str, Any]) -> None:
        """Have `changes` return these again, since they could not be written."""
        for name, data in changes.items():
            if name != CALL_TIMES:
                self._recorded.pop(name, None)
                continue
            for tool, times in data.items():
                self._recorded_calls[tool] -= len(times)

    def reset(self) -> None:
        """Turn the session into a new one."""
        new = type(self._session)()
        for field in fields(new):
            setattr(self._session, field.name, getattr(new, field.name))

    def restore(self, changes: Iterable[Mapping[str, Any]]) -> None:
        """Restore recorded changes, in the order of their records.

        Raises:
            JournalError: the records are not those of a session.
        """
        kinds = {field.name: type(getattr(self._session, field.name)) for field in fields(self._session)}
        offset = self._clock() - self._wall()
        for change in changes:
            for name, data in change.items():
                kind = kinds.get(name)
                try:
                    if kind is None:
                        raise ValueError(name)
                    if name == CALL_TIMES:
                        for tool, times in data.items():
                            getattr(self._session, name).setdefault(tool, []).extend(at + offset for at in times)
                    else:
                        self._restore_field(name, kind, data)
                except (AttributeError, TypeError, ValueError) as error:
                    raise JournalError(f"the record of a session cannot be read: {error!r:.200}") from error
        self.changes()  # what was restored is recorded already

    def _restore_field(self, name: str, kind: type, data: Any) -> None:
        # Sets and counters are shared by the sessions of one user, so another of them may have restored more already:
        # they grow in place, and a counter never falls.
        value = getattr(self._session, name)
        if isinstance(value, set):
            value |= set(data)
        elif isinstance(value, dict):
            for key, number in data.items():
                value[key] = max(value.get(key, 0), number)
        else:
            setattr(self._session, name, kind(data))

    def _new_calls(self, call_times: Mapping[str, list[float]]) -> dict[str, list[float]]:
        offset = self._clock() - self._wall()
        new: dict[str, list[float]] = {}
        for tool, times in call_times.items():
            count = len(times) - self._recorded_calls.get(tool, 0)
            if count < 0:  # the session has dropped its oldest times
                count += REMEMBERED
            if count:
                new[tool] = [at - offset for at in times[-count:]]
            self._recorded_calls[tool] = len(times)
        return new


def _plain(value: Any) -> Any:
    """Return the value of a session's field as JSON data.

    Raises:
        TypeError: a field of this type was added, and nothing says how it is recorded.
    """
    match value:
        case Enum():  # before numbers, which some enums are
            return value.value
        case bool() | str() | int() | float() | None:
            return value
        case dict():
            return dict(value)
        case set() | frozenset():
            return sorted(value)
        case tuple() | list():
            return list(value)
    raise TypeError(f"no rule says how a session's {type(value).__name__} is recorded")
