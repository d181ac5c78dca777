"""Definitions of tools as MCP servers send them: untrusted content that models will read.

A tool that cannot be used is quarantined with the reason, and the others work. Invisible characters are removed from
text, and its length is bounded. Text is never used as a template, a command or an address.
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
from toolwire.text.json_text import equal_json
from toolwire.text.truncate import truncate
from toolwire.tools import Tier, ToolDefinition

MAX_NAME = 128
"""Maximum length of a tool's name, in characters."""
MAX_TITLE = 200
MAX_DESCRIPTION = 16_000
"""Maximum length of a tool's description, in characters; the rest is left out."""
MAX_SCHEMA = 256 << 10
"""Maximum length of one schema of a tool, in characters of JSON."""
MAX_SCHEMA_DEPTH = 64
MAX_TOOLS = 1_000
MAX_SHOWN = 200_000
"""Maximum length of a tool as it is shown, in characters: who approves it has to see all of it."""
MAX_LINES = 5_000
"""Maximum length of a tool as it is shown, in lines."""
MAX_EXPANDED = 20_000
"""Maximum number of schemas within a schema, each counted as often as references lead to it."""
MAX_CHAIN = 200
"""Maximum number of references and levels between a schema and the deepest one within it."""

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
OUTPUT = "outputSchema"
"""The annotation that contains the schema of a tool's result."""

ROOT_TYPE = "/type"
"""The pointer of the error by which `check_schema` refuses a valid schema that is not an object's."""

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_TEXT_KEYS = frozenset({"title", "description", "$comment"})
_NOT_IN_NAMES = re.compile(r"""[\s<>{}()\[\]"'=,]""")


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool as its server declares it.

    Attributes:
        name: its name on the server.
        definition: its definition, under a name that every format can express; it depends on `name` alone.
    """

    name: str
    definition: ToolDefinition

    @property
    def output(self) -> dict[str, Any] | None:
        """The schema of its result, if it has one."""
        schema = self.definition.annotations.get(OUTPUT)
        return schema if isinstance(schema, dict) else None

    def stored(self) -> dict[str, Any]:
        """Return the definition as JSON, for `from_stored`."""
        definition = self.definition
        return {
            "name": self.name,
            "description": definition.description,
            "parameters": definition.parameters,
            "annotations": definition.annotations,
        }


@dataclass(frozen=True, slots=True)
class QuarantinedTool:
    """A tool that is not used.

    Attributes:
        name: its name, as far as it can be shown.
        reason: the cause, for the user.
    """

    name: str
    reason: str


def read_tools(listed: Iterable[Any], server: McpServer, others: Iterable[str] = ()) -> tuple[
    list[DeclaredTool], list[QuarantinedTool]
]:  # fmt: skip
    """Return the tools of a server's list, and those of them that cannot be used.

    Args:
        listed: the list as received.
        server: the server that sent it.
        others: the names of all servers; a tool must not look like one of another server.
    """
    listed = _without_repetitions(listed)
    tools: dict[str, DeclaredTool] = {}
    quarantined: list[QuarantinedTool] = []
    duplicates = {name for name, count in Counter(map(_name, listed)).items() if count > 1}
    foreign = [f"{name}." for name in others if name != server.name]
    for index, entry in enumerate(listed[:MAX_TOOLS]):
        shown = clean(_name(entry), MAX_NAME) or f"(number {index + 1})"
        try:
            declared = _read_tool(entry, server)
            if declared.name in duplicates:
                raise DefinitionError("the server has several tools of this name")
            if any(declared.name.startswith(prefix) for prefix in foreign):
                raise DefinitionError("it looks like a tool of another server")
            if declared.definition.name in tools:
                raise DefinitionError(f"written safely, its name is that of {tools[declared.definition.name].name!r}")
            tools[declared.definition.name] = declared
        except DefinitionError as error:
            quarantined.append(QuarantinedTool(shown, clean(str(error), MAX_TITLE)))
    if len(listed) > MAX_TOOLS:
        quarantined.append(
            QuarantinedTool("(more)", f"{len(listed) - MAX_TOOLS} tools beyond the first {MAX_TOOLS} are not read")
        )
    return list(tools.values()), quarantined


def _without_repetitions(listed: Iterable[Any]) -> list[Any]:
    """Return a list without tools that are listed again word for word: pages overlap if a server's tools change.

    Tools of one name that differ stay, for no name may mean two tools.
    """
    first: dict[str, Any] = {}
    distinct: list[Any] = []
    for entry in listed:
        name = _name(entry)
        if not name or name not in first or not equal_json(first[name], entry):
            distinct.append(entry)
            first.setdefault(name, entry)
    return distinct


def from_stored(given: Mapping[str, Any], server: McpServer) -> DeclaredTool | None:
    """Return the tool that `DeclaredTool.stored` made JSON of; None if it cannot be read."""
    try:
        name = given["name"]
        return DeclaredTool(
            name, _definition(name, given["description"], given["parameters"], given["annotations"], server)
        )
    except (KeyError, TypeError, DefinitionError):
        return None


def effective(declared: DeclaredTool, server: McpServer, *, ask: bool = False) -> ToolDefinition:
    """Return the definition by which calls are decided about.

    The user's settings come first, then the tool's hints. A hint that is absent has the default of MCP's specification:
    the tool changes things, and may destroy some. A hint that gives a tool a lower tier counts if the user trusts the
    server.

    Args:
        declared: the tool.
        server: its server, with the user's settings.
        ask: ask before each call, because the description is not approved.
    """
    settings, hints = server.settings(declared.name), declared.definition.annotations
    reads, destroys = hints.get("readOnlyHint") is True, hints.get("destructiveHint")
    harmless = server.trusted and reads and destroys is not True
    user_tier = server.tier if settings.tier is None else settings.tier
    tier = user_tier if user_tier is not None else Tier.WALK if harmless else Tier.RUN
    if settings.confirm is not None:
        confirm = settings.confirm
    elif server.ask != "hints":
        confirm = server.ask == "always"
    elif destroys is None:
        confirm = not reads and tier is Tier.RUN  # a lower tier is the user's word that it changes nothing
    else:
        confirm = destroys
    return replace(declared.definition, tier=tier, requires_confirmation=confirm or ask)


def repeatable(declared: DeclaredTool, server: McpServer) -> bool:
    """Return whether an interrupted call may run again: a trusted server calls the tool idempotent or read-only."""
    hints = declared.definition.annotations
    reads = hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True
    return server.trusted and (reads or hints.get("idempotentHint") is True)


def difference(before: DeclaredTool, after: DeclaredTool) -> str:
    """Return the whole change of a definition, as a diff of lines."""
    return "\n".join(difflib.unified_diff(_lines(before), _lines(after), "approved", "now", n=2, lineterm=""))


def describe(declared: DeclaredTool) -> str:
    """Return the whole definition as text to be approved."""
    return "\n".join(_lines(declared))


def _lines(declared: DeclaredTool) -> list[str]:
    """Return the definition as lines: first the parts that models read, last the longest and least important."""
    definition = declared.definition
    hints = {key: value for key, value in definition.annotations.items() if key != OUTPUT}
    body = {
        "name": declared.name,
        "description": definition.description.split("\n"),
        "annotations": hints,
        "parameters": definition.parameters,
        OUTPUT: declared.output,
    }
    lines: list[str] = []
    for key, value in body.items():
        lines += f"{key}: {json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)}".split("\n")
    return lines


def clean(text: str, limit: int) -> str:
    """Return text without invisible characters, truncated to a limit."""
    return strip_invisible(truncate(text, limit))


def _name(given: Any) -> str:
    name = given.get("name") if isinstance(given, Mapping) else None
    return name if isinstance(name, str) else ""


def _read_tool(given: Any, server: McpServer) -> DeclaredTool:
    if not isinstance(given, Mapping):
        raise DefinitionError("it is not an object")
    name, parameters, output = _name(given), given.get("inputSchema"), given.get(OUTPUT)
    _check_name(name)
    if parameters is None:
        raise DefinitionError("it has no inputSchema")
    description, hints = given.get("description"), given.get("annotations")
    if not isinstance(description, str | None):
        raise DefinitionError("its description is not a text")
    check_schema(schema := _schema(parameters), name)
    annotations: dict[str, Any] = {
        key: hints[key] for key in HINTS if isinstance(hints, Mapping) and isinstance(hints.get(key), bool)
    }
    titles = (given.get("title"), hints.get("title") if isinstance(hints, Mapping) else None)
    if title := next((title for title in titles if isinstance(title, str)), ""):
        annotations["title"] = clean(title, MAX_TITLE)
    if output is not None:
        annotations[OUTPUT] = _schema(output)
        _check_output(annotations[OUTPUT])
    tool = DeclaredTool(name, _definition(name, clean(description or "", MAX_DESCRIPTION), schema, annotations, server))
    lines = _lines(tool)
    if len(lines) > MAX_LINES or sum(map(len, lines)) > MAX_SHOWN:
        raise DefinitionError("it is too long to be shown")
    return tool


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
    """Refuse a schema that cannot be used; it need not be an object's, as parameters are."""
    try:
        check_schema(schema)
    except DefinitionError as error:
        if error.pointer != ROOT_TYPE:
            raise DefinitionError(f"its outputSchema cannot be used: {error}") from error


def _check_name(name: str) -> None:
    """Refuse a name that a reader could mistake for another."""
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
        raise DefinitionError("a schema is not an object")
    try:
        size = len(json.dumps(given))
    except RecursionError:
        size = MAX_SCHEMA + 1
    if size > MAX_SCHEMA:
        raise DefinitionError(f"its schema has more than {MAX_SCHEMA} characters")
    schema = _without_invisible(given, "", 0)
    assert isinstance(schema, dict)
    _check_expanded(schema)
    return schema


def _check_expanded(schema: dict[str, Any]) -> None:
    """Refuse a schema that is large once its references are followed: checking a value takes as long as that."""
    anchors: dict[str, Any] = {"": schema}
    _collect_anchors(schema, anchors)
    sizes: dict[int, int] = {}
    above: set[int] = set()

    def size(value: Any, depth: int) -> int:
        if not isinstance(value, dict | list):
            return 0
        if (size_before := sizes.get(id(value))) is not None:
            return size_before
        if id(value) in above:
            return 1  # it is recursive; how often it is used depends on the value
        if depth > MAX_CHAIN:
            raise DefinitionError(f"its schema leads through more than {MAX_CHAIN} levels and references")
        above.add(id(value))
        total = int(isinstance(value, dict))
        inner = value.items() if isinstance(value, dict) else ((None, member) for member in value)
        for key, member in inner:
            if key in _REFERENCES and isinstance(member, str):
                total += size(_target(member, schema, anchors), depth + 1)
            else:
                total += size(member, depth + 1)
        above.discard(id(value))
        sizes[id(value)] = total
        if total > MAX_EXPANDED:
            raise DefinitionError(f"with its references followed, its schema contains more than {MAX_EXPANDED} schemas")
        return total

    size(schema, 0)


def _collect_anchors(value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for key in ("$anchor", "$dynamicAnchor", "$id", "id"):
            if isinstance(name := value.get(key), str):
                found[name.removeprefix("#")] = value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _collect_anchors(inner, found)


def _target(reference: str, schema: dict[str, Any], anchors: dict[str, Any]) -> Any:
    """Return the schema that a reference leads to; None if there is none here."""
    base, _, fragment = reference.partition("#")
    at: Any = anchors.get(base, schema)
    fragment = unquote(fragment)
    if not fragment.startswith("/"):
        return anchors.get(fragment) if fragment else at
    return follow_pointer(at, fragment)


def _without_invisible(value: Any, key: str, depth: int) -> Any:
    """Return a copy with cleaned descriptions; refuse invisible characters in any other text."""
    if depth > MAX_SCHEMA_DEPTH:
        raise DefinitionError(f"its schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
    match value:
        case dict():
            for name in value:
                _check_visible(name)
            return {name: _without_invisible(inner, name, depth + 1) for name, inner in value.items()}
        case list():
            return [_without_invisible(inner, key, depth + 1) for inner in value]
        case str() if key in _TEXT_KEYS:
            return clean(value, MAX_DESCRIPTION)
        case str():
            _check_visible(value)
    return value


def _check_visible(text: str) -> None:
    if text.isascii() and text.isprintable():
        return
    if any(is_invisible(character) for character in text if character not in "\t\n\r"):
        raise DefinitionError("its schema has characters that cannot be seen")
