"""Shapes of answers: the members that an API's module reads. All other members are kept, so that none is lost silently.

An answer of the same API gets them back. In every other API, a note names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolwire.providers.message_parts import Json

_NO_VALUE: tuple[Any, ...] = (None, "", [], {})
_STEP = re.compile(r"\.?([^.\[]+)|\[([^\]]+)\]")


class AnswerShape:
    """The members of an answer that are read, or that describe the exchange and not the answer, by their object.

    Args:
        finish: the path of the word for the finish reason.
        lines: for each object its path, a colon and the names of these members. The path of the answer is empty. In
            `choices.0.message` a number is a place in a list; `content[text]` stands for the items of a list that have
            the type `text`, or a member of that name.
    """

    def __init__(self, finish: str, lines: str) -> None:
        self._finish = finish.rpartition(".")
        self._objects: list[tuple[tuple[str, ...], frozenset[str]]] = []
        for line in lines.strip().splitlines():
            path, _, names = line.partition(":")
            steps = tuple(f"[{item}" if item else name for name, item in _STEP.findall(path.strip()))
            self._objects.append((steps, frozenset(names.split())))
        self._lists = {steps[0] for steps, _ in self._objects if steps[1:2] == ("0",)}

    def finish_of(self, answer: Mapping[str, Any]) -> tuple[Any, dict[str, Json]]:
        """Return the word for the finish reason, and the members that have it by the path of their object."""
        path, _, name = self._finish
        _, object = next(_at(answer, tuple(filter(None, path.split("."))), ""), ("", {}))
        return object.get(name), {path: {name: object.get(name)}}

    def unread(self, answer: Mapping[str, Any]) -> dict[str, Json]:
        """Return the members that are not read, by the paths of their objects."""
        by_path: dict[str, Json] = {}
        for name in self._lists:  # of several answers, the first is read
            if isinstance(items := answer.get(name), list) and len(items) > 1:
                by_path[""] = {**by_path.get("", {}), name: items[1:]}
        for steps, names in self._objects:
            for path, value in _at(answer, steps, ""):
                if value.keys() <= names:
                    continue
                rest = {name: value[name] for name in value if name not in names and value[name] not in _NO_VALUE}
                if rest:
                    by_path[path] = {**by_path.get(path, {}), **rest}
        return by_path


def _at(value: Any, steps: tuple[str, ...], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects at the end of some steps, with their paths."""
    if not steps:
        if isinstance(value, Mapping):
            yield path, value
        return
    step, rest = steps[0], steps[1:]
    if step.startswith("["):
        for at, item in enumerate(value) if isinstance(value, list) else ():
            if isinstance(item, Mapping) and (item.get("type") == step[1:] or step[1:] in item):
                yield from _at(item, rest, f"{path}[{at}]")
    elif step.isdigit():
        if isinstance(value, list) and int(step) < len(value):
            yield from _at(value[int(step)], rest, f"{path}.{step}")
    elif isinstance(value, Mapping) and step in value:
        yield from _at(value[step], rest, f"{path}.{step}" if path else step)


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
