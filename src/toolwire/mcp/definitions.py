"""What a server says of its tools, read with suspicion: strangers wrote it, and models will read it.

A tool that cannot be used is set aside with the reason, and the others work. Text loses what a reader would not see,
and its length is bounded; nothing in it is a template, a command or a place to go to.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

from toolwire.errors import DefinitionError
from toolwire.mcp.servers import McpServer
from toolwire.schema.pointer import follow_pointer
from toolwire.schema.validation import check_schema
from toolwire.text.escape import is_invisible, strip_invisible
from toolwire.text.truncate import truncate
from toolwire.tools import Tier, ToolDefinition

MAX_NAME = 128
MAX_TITLE = 200
MAX_DESCRIPTION = 16_000
"""Characters of a tool's description that are read."""
MAX_SCHEMA = 256 << 10
"""Characters of a tool's schemas, as JSON."""
MAX_SCHEMA_DEPTH = 64
MAX_TOOLS = 1_000
MAX_SHOWN = 200_000
"""Characters that it takes to show a tool; who is asked about it has to be able to see all of them."""
MAX_LINES = 5_000
MAX_EXPANDED = 20_000
"""Schemas within a schema, each counted as often as references lead to it."""
MAX_CHAIN = 200
"""References and levels between a schema and the deepest one within it."""

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
OUTPUT = "outputSchema"
"""The annotation that holds the schema of what a tool gives back."""

ROOT_TYPE = "/type"
"""Where `check_schema` finds that a schema which is fine otherwise is not that of an object."""

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_TEXT_KEYS = frozenset({"title", "description", "$comment"})
_NOT_IN_NAMES = re.compile(r"""[\s<>{}()\[\]"'=,]""")


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool as its server describes it.

    Attributes:
        name: its name on the server.
        definition: the description, under a name that every format can carry; the same name always gives the same.
    """

    name: str
    definition: ToolDefinition

    @property
    def output(self) -> dict[str, Any] | None:
        """The schema of what it gives back, if it has one."""
        schema = self.definition.annotations.get(OUTPUT)
        return schema if isinstance(schema, dict) else None

    def stored(self) -> dict[str, Any]:
        """The description as JSON; `from_stored` reads it."""
        one = self.definition
        return {
            "name": self.name,
            "description": one.description,
            "parameters": one.parameters,
            "annotations": one.annotations,
        }


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool that is not used.

    Attributes:
        name: as far as it can be shown.
        reason: why, for the user.
    """

    name: str
    reason: str


def read_tools(given: Iterable[Any], server: McpServer, others: Iterable[str] = ()) -> tuple[
    list[Declared], list[Quarantined]
]:  # fmt: skip
    """The tools of a server's list, and those of them that cannot be used.

    Args:
        given: the list as it came.
        server: whose it is.
        others: the names of the other servers; a tool must not look like one of theirs.
    """
    listed = list(given)
    found: dict[str, Declared] = {}
    bad: list[Quarantined] = []
    twice = {name for name, count in Counter(map(_name, listed)).items() if count > 1}
    foreign = [f"{name}." for name in others if name != server.name]
    for at, one in enumerate(listed[:MAX_TOOLS]):
        shown = cleaned(_name(one), MAX_NAME) or f"(number {at + 1})"
        try:
            declared = _read(one, server)
            if declared.name in twice:
                raise DefinitionError("the server has several tools of this name")
            if any(declared.name.startswith(prefix) for prefix in foreign):
                raise DefinitionError("it looks like a tool of another server")
            if declared.definition.name in found:
                raise DefinitionError(f"written safely, its name is that of {found[declared.definition.name].name!r}")
            found[declared.definition.name] = declared
        except DefinitionError as error:
            bad.append(Quarantined(shown, cleaned(str(error).removeprefix("definition: "), MAX_TITLE)))
    if len(listed) > MAX_TOOLS:
        bad.append(Quarantined("(more)", f"{len(listed) - MAX_TOOLS} tools beyond the first {MAX_TOOLS} are not read"))
    return list(found.values()), bad


def from_stored(given: Mapping[str, Any], server: McpServer) -> Declared | None:
    """A description that was stored; None if it is not one."""
    try:
        name = given["name"]
        return Declared(
            name, _definition(name, given["description"], given["parameters"], given["annotations"], server)
        )
    except (KeyError, TypeError, DefinitionError):
        return None


def effective(declared: Declared, server: McpServer, *, ask: bool = False) -> ToolDefinition:
    """The definition by which calls are decided about.

    What the user says of the tool counts. Else its hints count: those that ask for more care always, those that ask for
    less where the user trusts the server.

    Args:
        declared: the tool.
        server: with what the user says.
        ask: its description has not been agreed to, so each call asks.
    """
    own, hints = server.settings(declared.name), declared.definition.annotations
    destructive = hints.get("destructiveHint") is True
    harmless = server.trusted and hints.get("readOnlyHint") is True and not destructive
    tier = next((tier for tier in (own.tier, server.tier) if tier is not None), Tier.WALK if harmless else Tier.RUN)
    confirm = destructive if own.confirm is None else own.confirm
    return replace(declared.definition, tier=tier, requires_confirmation=confirm or ask)


def repeatable(declared: Declared, server: McpServer) -> bool:
    """Whether a call that was cut short may run again: the tool hints it, or that it only reads, and is believed."""
    hints = declared.definition.annotations
    reads = hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True
    return server.trusted and (reads or hints.get("idempotentHint") is True)


def difference(before: Declared, after: Declared) -> str:
    """How a description has changed, line by line, as a diff; all of it."""
    return "\n".join(difflib.unified_diff(_lines(before), _lines(after), "agreed to", "now", n=2, lineterm=""))


def described(declared: Declared) -> str:
    """A whole description, for somebody who is asked about it."""
    return "\n".join(_lines(declared))


def _lines(declared: Declared) -> list[str]:
    """What models read stands first, what is longest and matters least last."""
    one = declared.definition
    hints = {key: value for key, value in one.annotations.items() if key != OUTPUT}
    body = {
        "name": declared.name,
        "description": one.description.split("\n"),
        "annotations": hints,
        "parameters": one.parameters,
        OUTPUT: declared.output,
    }
    made: list[str] = []
    for key, value in body.items():
        made += f"{key}: {json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)}".split("\n")
    return made


def cleaned(text: str, limit: int) -> str:
    """Text without characters that a reader would not see, and with at most so many characters."""
    return strip_invisible(truncate(text, limit))


def _name(given: Any) -> str:
    name = given.get("name") if isinstance(given, Mapping) else None
    return name if isinstance(name, str) else ""


def _read(given: Any, server: McpServer) -> Declared:
    if not isinstance(given, Mapping):
        raise DefinitionError("it is no object")
    name, parameters, output = _name(given), given.get("inputSchema"), given.get(OUTPUT)
    _check_name(name)
    if parameters is None:
        raise DefinitionError("it has no inputSchema")
    description, hints = given.get("description"), given.get("annotations")
    if not isinstance(description, str | None):
        raise DefinitionError("its description is no text")
    check_schema(schema := _schema(parameters), name)
    known: dict[str, Any] = {
        key: hints[key] for key in HINTS if isinstance(hints, Mapping) and isinstance(hints.get(key), bool)
    }
    titles = (given.get("title"), hints.get("title") if isinstance(hints, Mapping) else None)
    if title := next((one for one in titles if isinstance(one, str)), ""):
        known["title"] = cleaned(title, MAX_TITLE)
    if output is not None:
        known[OUTPUT] = _schema(output)
        _check_output(known[OUTPUT])
    made = Declared(name, _definition(name, cleaned(description or "", MAX_DESCRIPTION), schema, known, server))
    lines = _lines(made)
    if len(lines) > MAX_LINES or sum(map(len, lines)) > MAX_SHOWN:
        raise DefinitionError("it is too long to be shown to anybody")
    return made


def _definition(
    name: str, description: str, parameters: dict[str, Any], annotations: dict[str, Any], server: McpServer
) -> ToolDefinition:
    return ToolDefinition(
        _NOT_IN_NAMES.sub(lambda match: quote(match.group(), safe=""), name.replace("%", "%25")),
        description,
        parameters,
        Tier.RUN,
        server=server.name,
        annotations=annotations,
        untrusted=True,
    )


def _check_output(schema: dict[str, Any]) -> None:
    """Refuse a schema that cannot be used; it need not be that of an object."""
    try:
        check_schema(schema)
    except DefinitionError as error:
        if error.pointer != ROOT_TYPE:
            raise DefinitionError(f"its outputSchema cannot be used: {error}") from error


def _check_name(name: str) -> None:
    """Refuse a name that a reader could take for another."""
    if not name or len(name) > MAX_NAME:
        raise DefinitionError("it has no name" if not name else f"its name has {len(name)} characters")
    if not name.isprintable() or any(is_invisible(character) for character in name):
        raise DefinitionError("its name has characters that cannot be seen")
    if unicodedata.normalize("NFKC", name) != name:
        raise DefinitionError("its name has characters that look like others")
    letters = [character for character in name if character.isalpha()]
    if any(letter.isascii() for letter in letters) and not all(letter.isascii() for letter in letters):
        raise DefinitionError("its name mixes letters of several scripts")


def _schema(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise DefinitionError("a schema is no object")
    try:
        size = len(json.dumps(given))
    except RecursionError:
        size = MAX_SCHEMA + 1
    if size > MAX_SCHEMA:
        raise DefinitionError(f"its schema has more than {MAX_SCHEMA} characters")
    schema = _seen(given, "", 0)
    assert isinstance(schema, dict)
    _check_expanded(schema)
    return schema


def _check_expanded(schema: dict[str, Any]) -> None:
    """Refuse a short schema that is long once its references are followed: to check a value takes as long as that."""
    anchors: dict[str, Any] = {"": schema}
    _anchors(schema, anchors)
    sizes: dict[int, int] = {}
    above: set[int] = set()

    def size(value: Any, depth: int) -> int:
        if not isinstance(value, dict | list):
            return 0
        if (known := sizes.get(id(value))) is not None:
            return known
        if id(value) in above:
            return 1  # it describes itself; how often that counts depends on the value
        if depth > MAX_CHAIN:
            raise DefinitionError(f"its schema leads through more than {MAX_CHAIN} levels and references")
        above.add(id(value))
        total = int(isinstance(value, dict))
        inner = value.items() if isinstance(value, dict) else ((None, one) for one in value)
        for key, one in inner:
            if key in _REFERENCES and isinstance(one, str):
                total += size(_target(one, schema, anchors), depth + 1)
            else:
                total += size(one, depth + 1)
        above.discard(id(value))
        sizes[id(value)] = total
        if total > MAX_EXPANDED:
            raise DefinitionError(f"with its references followed, its schema holds more than {MAX_EXPANDED} schemas")
        return total

    size(schema, 0)


def _anchors(value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for key in ("$anchor", "$dynamicAnchor", "$id", "id"):
            if isinstance(name := value.get(key), str):
                found[name.removeprefix("#")] = value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _anchors(inner, found)


def _target(reference: str, schema: dict[str, Any], anchors: dict[str, Any]) -> Any:
    """What a reference leads to; None if that is nothing here."""
    base, _, fragment = reference.partition("#")
    at: Any = anchors.get(base, schema)
    fragment = unquote(fragment)
    if not fragment.startswith("/"):
        return anchors.get(fragment) if fragment else at
    return follow_pointer(at, fragment)


def _seen(value: Any, key: str, depth: int) -> Any:
    """A copy in which descriptions are cleaned; other text that holds something unseen is refused."""
    if depth > MAX_SCHEMA_DEPTH:
        raise DefinitionError(f"its schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
    match value:
        case dict():
            for name in value:
                _check_seen(name)
            return {name: _seen(inner, name, depth + 1) for name, inner in value.items()}
        case list():
            return [_seen(inner, key, depth + 1) for inner in value]
        case str() if key in _TEXT_KEYS:
            return cleaned(value, MAX_DESCRIPTION)
        case str():
            _check_seen(value)
    return value


def _check_seen(text: str) -> None:
    if text.isascii() and text.isprintable():
        return
    if any(is_invisible(character) for character in text if character not in "\t\n\r"):
        raise DefinitionError("its schema has characters that cannot be seen")
