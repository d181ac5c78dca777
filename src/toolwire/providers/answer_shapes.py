"""Shapes of answers: the members that an API's module reads. All other members are kept, so that none is lost silently.

An answer of the same API gets them back. In every other API, a note names them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolwire.providers.message_parts import Json

_NO_VALUE: tuple[Any, ...] = (None, "", [], {})
_STEP = re.compile(r"\.?([^.\[]+)|\[([^\]]+)\]")


class _Place:
    """A place in an answer, which the paths of a shape lead to.

    Attributes:
        names: the members that are read of the object at this place; None if the place has no line of its own.
        members: the places of members, by their names.
        numbered: the places of items of a list, by their numbers.
        typed: the places of those items of a list that have a type, or a member of its name.
    """

    __slots__ = ("members", "names", "numbered", "typed")

    def __init__(self) -> None:
        self.names: frozenset[str] | None = None
        self.members: dict[str, _Place] = {}
        self.numbered: dict[int, _Place] = {}
        self.typed: dict[str, _Place] = {}

    def add(self, path: str, names: frozenset[str]) -> None:
        """Add a line of a shape."""
        place = self
        for name, item in _STEP.findall(path):
            if item:
                place = place.typed.setdefault(item, _Place())
            elif name.isdigit():
                place = place.numbered.setdefault(int(name), _Place())
            else:
                place = place.members.setdefault(name, _Place())
        place.names = names

    def find_unread(self, value: Any, path: str, by_path: dict[str, Json]) -> None:
        """Put the members below a value that are not read into `by_path`, by the paths of their objects."""
        if type(value) is dict or isinstance(value, Mapping):  # the first is faster
            if self.names is not None and not value.keys() <= self.names:
                names = self.names
                rest = {name: value[name] for name in value if name not in names and value[name] not in _NO_VALUE}
                if rest:
                    by_path[path] = {**by_path.get(path, {}), **rest}
            for name, place in self.members.items():
                if name in value:
                    place.find_unread(value[name], f"{path}.{name}" if path else name, by_path)
        elif isinstance(value, list):
            for number, place in self.numbered.items():
                if number < len(value):
                    place.find_unread(value[number], f"{path}.{number}", by_path)
            for kind, place in self.typed.items():
                for at, item in enumerate(value):
                    if isinstance(item, Mapping) and (item.get("type") == kind or kind in item):
                        place.find_unread(item, f"{path}[{at}]", by_path)


class AnswerShape:
    """The members of an answer that are read, or that describe the exchange and not the answer, by their object.

    Args:
        finish: the path of the word for the finish reason.
        lines: for each object its path, a colon and the names of these members. The path of the answer is empty. In
            `choices.0.message` a number is a place in a list; `content[text]` stands for the items of a list that have
            the type `text`, or a member of that name.
    """

    def __init__(self, finish: str, lines: str) -> None:
        self._finish_path, _, self._finish = finish.rpartition(".")
        self._finish_steps = [int(step) if step.isdigit() else step for step in self._finish_path.split(".") if step]
        self._root = _Place()
        for line in lines.strip().splitlines():
            path, _, names = line.partition(":")
            self._root.add(path.strip(), frozenset(names.split()))
        self._lists = [name for name, place in self._root.members.items() if 0 in place.numbered]

    def finish_of(self, answer: Mapping[str, Any]) -> tuple[Any, dict[str, Json]]:
        """Return the word for the finish reason, and the members that have it by the path of their object."""
        value: Any = answer
        for step in self._finish_steps:
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and step < len(value) else None
            else:
                value = value.get(step) if isinstance(value, Mapping) else None
        word = value.get(self._finish) if isinstance(value, Mapping) else None
        return word, {self._finish_path: {self._finish: word}}

    def has_finish(self, members: Mapping[str, Mapping[str, Any]]) -> bool:
        """Return whether members, by the paths of their objects, have a word for the finish reason."""
        return self._finish in members.get(self._finish_path, ())

    def unread(self, answer: Mapping[str, Any]) -> dict[str, Json]:
        """Return the members that are not read, by the paths of their objects."""
        by_path: dict[str, Json] = {}
        for name in self._lists:  # of several answers, the first is read
            if isinstance(items := answer.get(name), list) and len(items) > 1:
                by_path[""] = {**by_path.get("", {}), name: items[1:]}
        self._root.find_unread(answer, "", by_path)
        return by_path


def joined(earlier: Any, value: Any) -> Any:
    """Return two values of one member as one; a stream has a list, such as that of log probabilities, in pieces."""
    if isinstance(earlier, Mapping) and isinstance(value, Mapping):
        return {**earlier, **{name: joined(earlier.get(name), inner) for name, inner in value.items()}}
    if isinstance(earlier, list) and isinstance(value, list):
        return [*earlier, *value]
    return value


def put_members(answer: Json, members: Mapping[str, Json]) -> Json:
    """Put members into an answer; return those that have no place there, by the paths of their objects."""
    unplaced: Json = {}
    for path, rest in members.items():
        value: Any = answer
        for step in filter(None, path.split(".")):  # `content[1]` is not a member: the item may be elsewhere now
            if step.isdigit():
                value = value[int(step)] if isinstance(value, list) and int(step) < len(value) else None
            else:
                value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, dict):
            for name, inner in rest.items():
                earlier = value.get(name)
                value[name] = [*earlier, *inner] if isinstance(earlier, list) and isinstance(inner, list) else inner
        else:
            unplaced[path] = rest
    return unplaced
