"""Nodes of the exported descriptions, matched against a text: part of the second reader.

A list of nodes always includes everything that follows, so that a name can end where the next literal begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.spec.second_elements import element_members, elements, entities_decoded
from tests.spec.second_literals import firsts
from tests.spec.second_values import (
    ALIASES,
    NoMatchError,
    Schema,
    Values,
    fitted,
    json_at,
    json_value,
    nesting,
    raw_value,
    word_value,
)

Node = dict[str, Any]
MAX_NESTING = 200
NewCall = tuple[str, dict[str, Any], str]


@dataclass(frozen=True)
class Call:
    """One call: its name, its arguments, and its id if the text gives one."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


@dataclass(frozen=True)
class State:
    """A position, the complete calls so far, and the parts of the call that is being read."""

    at: int
    calls: tuple[Call, ...] = ()
    name: str = ""
    id: str = ""
    arguments: tuple[tuple[str, Any], ...] = ()
    key: str = ""
    mark: str = ""
    open: bool = False


class NodeMatcher:
    """Nodes matched against a text. Every method yields the states in which all the rest has matched, too."""

    def __init__(self, wire: dict[str, Any], schemas: dict[str, Any]) -> None:
        self.wire = wire
        self.schemas = schemas
        self.text = ""
        self.tail = 0
        self.openings: list[str] = []
        self.only_known = not wire["markers"]

    def match(self, nodes: list[Node], state: State) -> Iterator[State]:
        node, rest = nodes[0], nodes[1:]
        ended = self.ended(state.at)
        if node["node"] == "EndBlock" or (ended and state.calls and not state.open):
            if state.calls:
                yield state
            return
        method = getattr(self, "_match_" + node["node"], None)
        if method is None:
            raise LookupError(f"unknown node {node['node']}")
        yield from method(node, rest, state)

    # literals and words

    def _match_Lit(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        at = self.skip_space(state.at)
        spellings = [text for text in (node["text"], *node["also"]) if self.starts(text, at)]
        if spellings:
            after = replace(state, at=at + len(max(spellings, key=len)))
            if node["repeats"]:
                yield from self.match([node, *rest], after)
            yield from self.match(rest, after)
        elif node["need"] != "required":
            if not state.open or self._continues(rest, at):
                yield from self.match(rest, state)
        elif state.open and not state.arguments and state.name and node["text"] == ">":
            yield from self._closed_by_itself(rest, state)

    def _match_Name(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        at, end = self._word(rest, state.at, phrase=node["phrase"])
        name = call_id = self.text[at:end].rstrip()
        if node["phrase"] and name.endswith("/"):
            name = name[:-1].rstrip()
            end = at + len(name)
        if node["is_id"]:
            name = re.sub(r":?\d+$", "", name) if re.fullmatch(r"(.*:)?\d+", name) else name
        name = name.removeprefix(node["prefix"])
        if name and not re.search("[<>]" if node["phrase"] else r"""["'<>{}()\[\]]""", name):
            yield from self.match(rest, replace(state, at=end, name=name, id=call_id if node["is_id"] else state.id))

    def _match_Header(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        at, end = self._word(rest, state.at, phrase=False)
        if not re.search("[<>]", self.text[at:end]):
            yield from self.match(rest, replace(state, at=end))

    def _match_Server(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        _, end = self._word(rest, state.at, phrase=False)
        yield from self.match(rest, replace(state, at=end))

    def _match_Ident(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        at, end = self._word(rest, state.at, phrase=False)
        yield from self.match(rest, replace(state, at=end, id=self.text[at:end]))

    def _match_Key(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        at, end = self._word(rest, state.at, phrase=True)
        key = self.text[at:end].strip()
        if key and (node["free"] or not re.search("[<>]", key)):
            yield from self.match(rest, replace(state, at=end, key=key, mark=""))

    def _match_Mark(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        at, end = self._word(rest, state.at, phrase=True)
        yield from self.match(rest, replace(state, at=end, mark=_mark(node, self.text[at:end].strip())))

    def _match_Tag(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        attributes = r"""((?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))+)\s*(/?)"""
        pattern = re.escape(node["open"] + node["name"]) + attributes + re.escape(node["close"])
        flags = re.IGNORECASE if self.wire["nocase"] else 0
        match = re.compile(pattern, flags).match(self.text, self.skip_space(state.at))
        if match is None:
            return
        pairs = re.findall(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""", match.group(1))
        values = {name: double or single for name, double, single in pairs}
        value = values.get(node["attribute"], "").strip()
        if not value:
            return
        mark = _mark(node["mark"], values.get(node["mark"]["attribute"], "")) if node["mark"] else ""
        state = replace(state, at=match.end(), mark=mark)
        if node["role"] == "key":
            yield from self.match(rest, replace(state, key=value))
        elif match.group(2):
            yield from self._closed_by_itself(rest, replace(state, at=match.start(2), name=value))
        else:
            yield from self.match(rest, replace(state, name=value))

    def _closed_by_itself(self, rest: list[Node], state: State) -> Iterator[State]:
        """Read `/>`: a call without arguments, whose other nodes are missing."""
        at = self.skip_space(state.at)
        if self.starts("/>", at):
            index = next(index for index, node in enumerate(rest) if node["node"] == "EndCall")
            yield from self.match(rest[index:], replace(state, at=at + 2))

    # groups

    def _match_Many(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        again = {"node": "Again", "many": node, "at": state.at}
        yield from self.match([*node["nodes"], again, *rest], state)
        yield from self.match(rest, state)

    _match_Params = _match_Many

    def _match_Again(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        if state.at > node["at"]:
            yield from self._match_Many(node["many"], rest, state)

    def _match_OneOf(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        at = self.skip_space(state.at)
        begun = [any(self.starts(first, at) for first in firsts(option)) for option in node["options"]]
        for option in sorted(range(len(begun)), key=lambda index: not begun[index]):
            yield from self.match([*node["options"][option], *rest], state)

    def _match_AnyOrder(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        for index, group in enumerate(node["groups"]):
            remaining = {"node": "AnyOrder", "groups": node["groups"][:index] + node["groups"][index + 1 :]}
            yield from self.match([*group, remaining, *rest], state)
        yield from self.match(rest, state)

    # calls

    def _match_Call(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        fresh = replace(state, name="", id="", arguments=(), open=True)
        yield from self.match([*node["nodes"], {"node": "EndCall"}, *rest], fresh)

    def _match_EndCall(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        if state.name:
            yield from self._calls(rest, state, [(state.name, dict(state.arguments), state.id)])

    def _calls(self, rest: list[Node], state: State, calls: list[NewCall]) -> Iterator[State]:
        if any(nesting(arguments) > MAX_NESTING for _, arguments, _ in calls):
            return
        if self.only_known and not all(name in self.schemas for name, _, _ in calls):
            return
        ready = tuple(Call(name, fitted(arguments, self.schema(name)), call_id) for name, arguments, call_id in calls)
        yield from self.match(rest, replace(state, calls=state.calls + ready, open=False))

    def _match_JsonCall(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        at = self.skip_space(state.at)
        calls: list[NewCall] = []
        while True:
            try:
                value, end = json_at(self.text, at)
                found = self._json_calls(node, value)
                if self.only_known and not all(name in self.schemas for name, _, _ in found):
                    break
                calls += found
            except NoMatchError:
                break
            state = replace(state, at=end)
            at = self.skip_space(end)
            if isinstance(value, list):
                break
            if (separator := node["between"].strip()) and self.starts(separator, at):
                at = self.skip_space(at + len(separator))
        if calls:
            yield from self._calls(rest, state, calls)

    def _json_calls(self, node: Node, value: Any) -> list[NewCall]:
        """Return the calls in a JSON value; raise if it is something else."""
        if isinstance(value, list) and value:
            return [call for item in value for call in self._json_calls(node, item)]
        if not isinstance(value, dict):
            raise NoMatchError
        for key in node["lists"]:
            if isinstance(value.get(key), list):
                return self._json_calls(node, value[key])
        inner = value
        while inside := next((inner[key] for key in node["inside"] if isinstance(inner.get(key), dict)), None):
            inner = inside
        if node["keyed"]:
            if len(inner) != 1:
                raise NoMatchError
            ((name, arguments),) = inner.items()
            return [(name, self._json_arguments(node, name, arguments), "")]
        name = next((inner[key] for key in node["name"] if isinstance(inner.get(key), str)), "")
        given = [inner[key] for key in node["args"] if key in inner]
        if not name or (node["needs_args"] and not given):
            raise NoMatchError
        arguments = self._json_arguments(node, name, given[0] if given else None)
        call_id = next((str(part[key]) for part in (inner, value) for key in node["id"] if key in part), "")
        return [(name, arguments, call_id)]

    def _json_arguments(self, node: Node, name: str, given: Any) -> dict[str, Any]:
        schema = self.schema(name)
        arguments = given if given is not None else {}
        if isinstance(given, str):
            arguments = json_value(given)
            if not isinstance(arguments, dict) and node["lone"] and (key := schema.lone()):
                arguments = {key: raw_value(given, schema.member(key))}
        if not isinstance(arguments, dict):
            raise NoMatchError
        stated = arguments.get("type")
        is_definition = isinstance(stated, str) and ALIASES.get(stated, stated) == "object"
        if is_definition and "type" not in schema.properties and not self.wire["markers"]:
            raise NoMatchError
        return arguments

    def _match_PyCalls(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        values = Values(self.text, state.at)
        listed = bool(node["open"]) and values.take(node["open"])
        calls: list[NewCall] = []
        if listed or node["bare"] or not node["open"]:
            end = values.at
            try:
                while not (listed and values.take(node["close"])):
                    name, arguments = values.call()
                    calls.append((self._method(node, name), arguments, ""))
                    end = values.at
                    separated = values.take(",") or (not listed and values.take(";"))
                    if listed and not separated:
                        values.need(node["close"])
                        break
                end = values.at
            except NoMatchError:
                calls = [] if listed else calls
            if calls:
                yield from self._calls(rest, replace(state, at=end), calls)
        if not calls and node["json"]:
            yield from self._match_JsonCall(node["json"], rest, state)

    def _method(self, node: Node, name: str) -> str:
        name = name.removesuffix("." + node["method"]) if node["method"] else name
        if name not in self.schemas and self.only_known:
            raise NoMatchError
        return name

    # arguments

    def _match_Value(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        schema = self.schema(state.name).member(state.key)
        end, after = self._value_end(node, rest, state, schema)
        raw = self.text[state.at : end]
        if node["newline"]:
            raw = re.sub(r"\A\r?\n|\r?\n\Z", "", raw)
        if node["cdata"] and (match := re.fullmatch(r"\s*<!\[CDATA\[(.*)\]\]>\s*", raw, re.DOTALL)):
            raw = match.group(1)
        if state.mark == "string":
            value: Any = raw
        elif state.mark:
            value = json_value(raw)
            value = raw if value is None and raw.strip() != "null" else value
        try:
            arguments = _added(state, value if state.mark else raw_value(raw, schema), schema)
        except NoMatchError:
            return
        if end >= 0:
            yield from self.match(rest, replace(state, at=after, arguments=arguments))

    def _value_end(self, node: Node, rest: list[Node], state: State, schema: Schema) -> tuple[int, int]:
        """Return where a value and its closing text end, or -1.

        A closing text counts where it is outside a JSON value, and the next node begins directly behind it.
        """
        at = state.at
        if schema.types and schema.types <= {"object", "array", "null"}:
            try:
                _, at = json_at(self.text, self.skip_space(at))
            except NoMatchError:
                at = state.at
        following = firsts(rest)
        for end in range(at, len(self.text)):
            after = end + len(node["close"])
            if self.starts(node["close"], end):
                then = self.skip_space(after)
                if self.ended(then) or any(self.starts(first, then) for first in following):
                    return end, after
            elif self._begins_parameter(node, rest[0], end):
                return end, end
        return -1, -1

    def _begins_parameter(self, node: Node, again: Node, at: int) -> bool:
        """Return whether the next parameter begins here, where the closing text may be missing."""
        begins = any(self.starts(first, at) for first in firsts(again["many"]["nodes"]))
        return begins and (node["missing"] == "anywhere" or (node["missing"] == "line" and self.text[at - 1] == "\n"))

    def _match_Elements(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        try:
            found, at = elements(self.text, state.at, node, nocase=self.wire["nocase"])
            arguments = element_members(found, node, self.schema(state.name))
        except NoMatchError:
            return
        yield from self.match(rest, replace(state, at=at if found else state.at, arguments=tuple(arguments.items())))

    def _match_Args(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        if node["element"]:
            yield from self._element_args(node, rest, state)
            return
        at = self.skip_space(state.at)
        try:
            value, end = json_at(self.text, at)
        except NoMatchError:
            value, end = ({} if self._continues(rest, at) else None), state.at
        value = json_value(value) if isinstance(value, str) else value
        closes = not node["until"] or self.starts(node["until"], self.skip_space(end))
        if isinstance(value, dict) and closes and (end > state.at or not node["lone"]):
            yield from self.match(rest, replace(state, at=end, arguments=tuple(value.items())))
        elif node["lone"]:
            yield from self._lone(node, rest, state, at)

    def _element_args(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        """Read an object of JSON as the text of an element, of which the opening tag was read before."""
        closing = f"</{node['element']}>"
        end = self.find(closing, state.at)
        value = json_value(entities_decoded(self.text[state.at : end])) if end >= 0 else None
        if isinstance(value, dict):
            yield from self.match(rest, replace(state, at=end + len(closing), arguments=tuple(value.items())))

    def _lone(self, node: Node, rest: list[Node], state: State, at: int) -> Iterator[State]:
        """Read a text that is the value of the tool's only parameter."""
        if not node["until"] and "\n" in self.text[state.at : at]:
            return
        end = self.find(node["until"] or "\n", at)
        end = self.tail if end < 0 else end
        text = self.text[at:end].strip()
        if node["until"] and any(self.find(marker, at) in range(at, end) for marker in self.openings):
            return
        schema = self.schema(state.name)
        quoted = json_value(text) if not node["until"] else None
        text = quoted if isinstance(quoted, str) else text
        if key := schema.lone():
            arguments = ((key, raw_value(text, schema.member(key))),)
            yield from self.match(rest, replace(state, at=end, arguments=arguments))

    def _match_TokenArgs(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        values = Values(self.text, state.at, node["token"])
        try:
            values.need("{")
            members = values.members()
        except NoMatchError:
            return
        arguments = {key: word_value(value, self.schema(state.name).member(key)) for key, value in members.items()}
        yield from self.match(rest, replace(state, at=values.at, arguments=tuple(arguments.items())))

    def _match_KeywordArgs(self, node: Node, rest: list[Node], state: State) -> Iterator[State]:
        values = Values(self.text, state.at)
        try:
            arguments = values.keywords()
        except NoMatchError:
            return
        yield from self.match(rest, replace(state, at=values.at, arguments=tuple(arguments.items())))

    # small parts

    def schema(self, name: str) -> Schema:
        return Schema(self.schemas.get(name), self.schemas.get(name))

    def ended(self, at: int) -> bool:
        """Return whether nothing follows but white space and tokens that end a sequence."""
        return self.skip_space(at) >= self.tail

    def starts(self, marker: str, at: int) -> bool:
        piece = self.text[at : at + len(marker)]
        return piece == marker or (self.wire["nocase"] and piece.lower() == marker.lower())

    def find(self, marker: str, at: int) -> int:
        if self.wire["nocase"]:
            return self.text.lower().find(marker.lower(), at)
        return self.text.find(marker, at)

    def skip_space(self, at: int) -> int:
        while self.text[at : at + 1].isspace():
            at += 1
        return at

    def _continues(self, rest: list[Node], at: int) -> bool:
        """Return whether the text goes on with the next literal, so that something before it may be missing."""
        return any(self.starts(first, self.skip_space(at)) for first in firsts(rest) if first)

    def _word(self, rest: list[Node], at: int, *, phrase: bool) -> tuple[int, int]:
        """Return the bounds of a word: up to white space, unless it is a phrase, or the next literal."""
        at = end = self.skip_space(at)
        markers = [marker for marker in firsts(rest) if marker]
        while end < len(self.text) and not any(self.starts(marker, end) for marker in markers):
            if not phrase and self.text[end].isspace():
                break
            end += 1
        return at, end


def _mark(node: Node, value: str) -> str:
    if node["flag"]:
        return {"true": "string", "false": "json"}.get(value, "")
    return value


def _added(state: State, value: Any, schema: Schema) -> tuple[tuple[str, Any], ...]:
    """Return the arguments with one more; a parameter that occurs again adds items to its list."""
    arguments = dict(state.arguments)
    if state.key in arguments:
        if not schema.is_array:
            raise NoMatchError
        earlier = arguments.pop(state.key)
        if not isinstance(earlier, list) or not isinstance(value, list):
            raise NoMatchError
        value = [*earlier, *value]
    arguments[state.key] = value
    return tuple(arguments.items())
