"""The values in bodies of provider APIs, leaf by leaf, each with its meaning; for `benchmarks/translation.py`."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from answer_members import FINISHES
from request_members import CHOICES, MEDIA_TYPES

_EMPTY: tuple[Any, ...] = (None, "", [], {})
_OWN = ""  # the meaning of a member that only its API knows
_LABELS = ("type", "id", "call_id", "name", "tool_use_id", "tool_call_id", "toolUseId")
_ROLES = {"model": "assistant", "developer": "system", "function": "tool"}
_PLAIN_TYPES = ("text", "input_text", "output_text", "message")
_NO_PARAMETERS = frozenset(
    ("type", "properties", "required", "additionalProperties", "description", "title", "$schema")
)
_NO_CONSTRAINT = ("$schema", "$id", "$comment")
_TYPES = {1: "string", 2: "number", 3: "integer", 4: "boolean", 5: "array", 6: "object"}
"""Types of Gemini's schemas as numbers."""
_FINISH = {word: end for end, words in FINISHES.items() for word in words.split()}


@dataclass(frozen=True)
class Leaf:
    """One value of a body.

    Attributes:
        path: the names of the members that lead to it, with `[]` for items of lists.
        meaning: the meaning of the member; "" if only its API knows it.
        speaker: the role of the message around it; "" if it is not bound to one.
        value: the value in a form that all APIs share.
        labels: types, names and ids of the objects around it.
    """

    path: str
    meaning: str
    speaker: str
    value: Any
    labels: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.replace("[]", "").rpartition(".")[2]

    @property
    def key(self) -> tuple[str, str, str]:
        """What has to be found again."""
        return self.meaning or self.path, self.speaker, text_of(self.value)


class Members:
    """Finds the leaves of the bodies of one API, with their meanings."""

    def __init__(self, api: str, table: str) -> None:
        self._api = api
        self._meanings: dict[str, str] = {}
        self._whole: dict[str, str] = {}  # of members whose value is the caller's own JSON
        for line in filter(None, table.splitlines()):
            path, meaning = line.split()
            (self._whole if path.endswith("**") else self._meanings)[path.removesuffix("**")] = meaning

    def leaves(self, body: Mapping[str, Any]) -> list[Leaf]:
        """Return all leaves; token counts of one meaning are one leaf."""
        found: list[Leaf] = []
        counts: Counter[str] = Counter()
        other_counts: dict[str, int] = {}
        for leaf in self._walk(body, "", "", frozenset()):
            if not leaf.meaning.startswith("usage."):
                found.append(leaf)
            elif leaf.meaning.endswith("?"):
                other_counts[leaf.meaning[:-1]] = leaf.value
            else:
                meaning, _, label = leaf.meaning.partition("@")
                if not label or label in leaf.labels:  # a count of an item of this type
                    counts.update(dict.fromkeys(meaning.split("+"), leaf.value))
        totals = {**other_counts, **counts}
        return found + [Leaf(meaning, meaning, "", count) for meaning, count in totals.items() if count]

    def _walk(self, value: Any, path: str, speaker: str, labels: frozenset[str]) -> Iterator[Leaf]:
        if value in _EMPTY or (isinstance(value, str) and not value.strip()):
            return
        if path in self._whole and not (path in self._meanings and isinstance(value, str)):
            if self._whole[path] != "-":
                yield from _whole(path, self._whole[path], speaker, value, labels)
            elif isinstance(value, Mapping):  # some members of it may have a meaning
                yield from (leaf for leaf in self._object(value, path, speaker, labels) if leaf.meaning)
        elif isinstance(value, Mapping):
            yield from self._object(value, path, speaker, labels)
        elif isinstance(value, list):
            for item in value:
                yield from self._walk(item, f"{path}[]", speaker, labels)
        else:
            meaning = self._meanings.get(path, _OWN)
            if meaning != "-":
                yield from _leaf(path, meaning, speaker, value, labels)

    def _object(self, value: Mapping[str, Any], path: str, speaker: str, labels: frozenset[str]) -> Iterator[Leaf]:
        if isinstance(role := value.get("role"), str):
            speaker = _ROLES.get(role, role)
        elif path in ("input[]", "output[]"):
            speaker = "assistant"
        labels |= {str(value[name]) for name in _LABELS if isinstance(value.get(name), str)}
        found: list[Leaf] = []
        kind: list[Leaf] = []
        for name, inner in value.items():
            spelled = camel(name) if self._api == "gemini" else name
            below = f"{path}.{spelled}" if path else spelled
            is_kind = name == "type" and below not in self._meanings
            (kind if is_kind else found).extend(self._walk(inner, below, speaker, labels))
        if _FINISH.get(str(value.get("native_finish_reason")).lower()) == "length":
            found = [replace(leaf, value="length") if leaf.meaning == "finish" else leaf for leaf in found]
        if value.get("thought"):  # Gemini's mark of reasoning
            found = [replace(leaf, meaning="reasoning") if leaf.meaning == "text" else leaf for leaf in found]
        if value.get("type") == "text" and isinstance(value.get("data"), str):  # a document that is text
            found = [replace(leaf, value=base64.b64encode(leaf.value.encode()).decode()) for leaf in found]
        yield from found
        # The type of an object says nothing that its other members, whose meanings are known, do not show.
        if not any(leaf.meaning for leaf in found) and value.get("type") not in _PLAIN_TYPES:
            yield from kind


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _leaf(path: str, meaning: str, speaker: str, value: Any, labels: frozenset[str]) -> Iterator[Leaf]:
    """Yield the leaves of a scalar: one, or for a data URL its data and its type."""
    bound, _, rest = meaning.rpartition(":")
    meaning, _, form = rest.partition("/")
    if meaning == "name":
        meaning = "result.name" if speaker == "tool" else _OWN
    speaker = bound or (speaker if meaning in ("text", "reasoning", "result") else "")
    match meaning:
        case "media" if isinstance(value, str) and value.startswith("data:"):
            head, _, data = value.partition(",")
            yield Leaf(path, "media", "", data, labels)
            value, meaning = head[5:].partition(";")[0], "media.type"
        case "media" if form == "text":
            value = base64.b64encode(str(value).encode()).decode()
        case "effort.switch" if value in ("disabled", False):
            meaning, value = "effort", "none"
        case "effort" if value in (True, "adaptive"):
            meaning = "effort.switch"
        case "effort" if value in (0, False):
            value = "none"
        case "parallel" if form == "not":
            value = not value
        case "call.arguments":
            meaning = f"call.arguments/{form}"
        case _:
            pass
    yield Leaf(path, meaning, speaker, _shared_form(meaning, value), labels)


def _shared_form(meaning: str, value: Any) -> Any:
    """Return a value in the form that all APIs share."""
    match meaning:
        case "media.type":
            type = str(value).rpartition("/")[2]
            return MEDIA_TYPES.get(type, type)
        case "choice":
            return CHOICES.get(str(value).lower(), value)
        case "finish":
            return _FINISH.get(str(value).lower(), value)
        case "cache":
            return True
        case "effort" | "service_tier" | "modality":
            return str(value).lower()
        case "output.kind":
            return "text" if value in ("text", "text/plain") else "json"
        case "result.error":
            return value in (True, "error")
    return value


def _whole(path: str, meaning: str, speaker: str, value: Any, labels: frozenset[str]) -> Iterator[Leaf]:
    """Yield the leaves of JSON that the caller defined: of a result one, of anything else each scalar."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
        if value is None:  # no arguments at all
            return
    bound, _, meaning = meaning.rpartition(":")
    if meaning in ("result", "text"):
        if isinstance(value, Mapping) and value.keys() <= {"result", "output", "error"} and len(value) == 1:
            if "error" in value:
                yield Leaf(path, "result.error", "", True, labels)
            (value,) = value.values()
        yield Leaf(path, "text", bound or speaker, value, labels)
    elif meaning == "choice":
        yield Leaf(path, "choice", "", CHOICES.get(next(iter(value), "auto"), "required"), labels)
        if isinstance(tool := value.get("tool"), Mapping):
            yield Leaf(path, "choice.name", "", tool.get("name"), labels)
    elif not isinstance(value, Mapping):
        yield Leaf(path, f"{meaning}/input", "", value, labels)
    elif meaning.endswith("schema"):
        yield from _schema_leaves(path, meaning, value, labels)
    else:
        yield from (Leaf(path, f"{meaning}{pointer}", "", scalar, labels) for pointer, scalar in _scalars(value, ""))


def _schema_leaves(path: str, meaning: str, schema: Mapping[str, Any], labels: frozenset[str]) -> Iterator[Leaf]:
    """Yield the leaves of a schema; none for one that only says that there are no parameters."""
    if schema.keys() <= _NO_PARAMETERS and not schema.get("properties"):
        return
    for pointer, scalar in _scalars(schema, ""):
        pointer = pointer.replace("/property_ordering/", "/propertyOrdering/")
        parent, _, name = pointer.rpartition("/")
        if scalar in ({}, []) or name in _NO_CONSTRAINT:
            continue
        if re.fullmatch(r"\d+", name) and parent.rpartition("/")[2] in ("required", "type", "enum"):
            pointer, name = parent, parent.rpartition("/")[2]  # sets, not lists
        if name == "type":
            scalar = scalar.lower() if isinstance(scalar, str) else _TYPES.get(scalar, scalar)
        yield Leaf(path, f"{meaning}{pointer}", "", scalar, labels)


def _scalars(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _scalars(inner, f"{pointer}/{name}")
    elif isinstance(value, list) and value:
        for at, inner in enumerate(value):
            yield from _scalars(inner, f"{pointer}/{at}")
    elif pointer:
        yield pointer, value


def text_of(value: Any) -> str:
    """Return a value as text by which equal values of any form are equal."""
    if isinstance(value, str):
        text = value.strip()
        if text[:1] in ("{", "["):
            try:
                return json.dumps(json.loads(text), sort_keys=True)
            except ValueError:
                pass
        return text
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)
