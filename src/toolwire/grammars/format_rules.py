"""The third reading of a wire format: rules for all texts in which a model may write calls of given tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from toolwire.errors import DefinitionError, RenderError
from toolwire.grammars.algebra import (
    EMPTY,
    SPACE,
    Expression,
    Lexeme,
    char_range,
    chars,
    chars_except,
    choice,
    escape,
    factored,
    free_space,
    literal,
    optional,
    repeat,
    sequence,
    space,
    union,
)
from toolwire.grammars.element_rules import ElementRules
from toolwire.grammars.prose import prose
from toolwire.grammars.schema_values import NO_VALUE, ValueReader
from toolwire.grammars.value_rules import (
    JSON,
    JSON_IN_TEXT,
    KEY_CHARACTERS,
    NAME_CHARACTERS,
    PYTHON,
    Rules,
    ValueDialect,
    ValueRules,
    between_tokens,
    keyword_key,
    other_name,
)
from toolwire.grammars.value_types import (
    IMPOSSIBLE,
    Constants,
    Members,
    StringValue,
    Values,
    fixed_members,
    flat_values,
    joined,
    values_by_type,
)
from toolwire.messages import ToolCall
from toolwire.text.json_text import json_text
from toolwire.tools import ToolDefinition
from toolwire.wire.renderer import render_calls
from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    Elements,
    Header,
    Ident,
    JsonCall,
    Key,
    KeywordArgs,
    Lit,
    Many,
    Mark,
    Name,
    Node,
    OneOf,
    Params,
    PyCalls,
    Server,
    Tag,
    TokenArgs,
    ToolBody,
    ToolTag,
    Value,
    WireFormat,
    as_written,
    holds_all_calls,
)
from toolwire.wire.xml_scanners import quote_attribute

_COUNT = Lexeme(repeat(char_range("0", "9"), 1, 3))
"""The number of a call in its message."""
_IDENT = Lexeme(repeat(union(NAME_CHARACTERS, chars("-")), 1, 40))
"""An id of a call."""
_PLAIN_NAME = re.compile("[A-Za-z_][A-Za-z0-9_-]*")
"""Names that every format can write."""
_UNWRITABLE = "the name {!r} cannot be written in this format"
_BARE_START = chars_except(f"<{{[\"'`{SPACE}\t\r")
"""The first character of an argument that is written as it is in place of JSON."""
_JSON_ESCAPES = {'"': '\\"', "\\": "\\\\"}
_XML_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True, slots=True)
class GrammarTool:
    """A tool, and the values of its arguments."""

    definition: ToolDefinition
    arguments: Members
    reader: ValueReader

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name


class FormatRules:
    """The reading of one format for given tools.

    Attributes:
        rules: the rules that the expressions refer to.
        wire: the format.
        tools: the tools that may be called.
        parallel: a message may contain several calls.
        widened_values: what the values of the arguments offer beyond the schemas, in words, however they are written.
    """

    def __init__(
        self, wire: WireFormat, tools: Iterable[ToolDefinition], *, parallel: bool = True, whole_names: bool = False
    ) -> None:
        """Read the tools' schemas.

        Args:
            wire: the format.
            tools: the tools that may be called.
            parallel: a message may contain several calls.
            whole_names: each name is one literal, so that a lexer can tell it from text that begins alike.

        Raises:
            DefinitionError: the schema of a tool admits no arguments.
        """
        self.rules = Rules()
        self.wire = wire
        self.parallel = parallel
        self._choice = choice if whole_names else factored
        self.tools = [self._read(tool, at) for at, tool in enumerate(tools) if self._has_name(tool)]
        self.widened_values = tuple(self.rules.widened)
        self._markup = _markers(wire.blocks[0] if wire.blocks else ())

    def _read(self, tool: ToolDefinition, at: int) -> GrammarTool:
        reader = ValueReader(tool.parameters, prefix=f"{at}.")
        try:
            values = reader.read({"type": "object"})
        except DefinitionError as error:
            raise DefinitionError(NO_VALUE, tool=tool.name, pointer=error.pointer) from None
        for pointer in reader.widened:
            self.rules.widened[f"{tool.name}: {pointer or '/'} has no effect"] = None
        members: list[Members] = []
        for inner in flat_values(values, reader.named):
            match inner:
                case Members():
                    members.append(inner)
                case Constants(constants):
                    members += map(fixed_members, constants)
        if len(members) > 1:  # alternatives of the whole: their members are offered together, and none is required
            self.rules.widened[f"{tool.name}: the alternatives of the arguments are not told apart"] = None
        arguments = joined(members)
        properties: list[tuple[str, Values, bool]] = []
        for name, inner, needed in arguments.properties:
            if _can_write(self.wire, tool.name, name):
                properties.append((name, inner, needed))
            else:
                self.rules.widened[f"{tool.name}: {arguments.pointer or '/'}: {_UNWRITABLE.format(name)}"] = None
                properties += [(name, IMPOSSIBLE, True)] if needed else []
        return GrammarTool(tool, replace(arguments, properties=tuple(properties)), reader)

    def _has_name(self, tool: ToolDefinition) -> bool:
        """Return whether the format can write a tool's name, and record it if not."""
        if writable := _can_write(self.wire, tool.name):
            return writable
        self.rules.widened[f"{tool.name}: no call of it can be written in this format"] = None
        return False

    def calls(self) -> Expression:
        """Return the expression of a message of calls and nothing else, in the form that is written."""
        nodes = self.wire.blocks[0]
        # The header names the tool, so everything behind it depends on the tool.
        if any(isinstance(node, Header) for node in nodes):
            block = self._choice(self._sequence(nodes, tool) for tool in self.tools)
        else:
            block = self._sequence(nodes, None)
        block = self.rules.share(block)
        if not self.parallel or holds_all_calls(nodes):
            return block
        join = self.wire.join
        between = literal(join) if join.strip() else free_space(join)
        return sequence(block, repeat(sequence(between, block)))

    def _sequence(self, nodes: Iterable[Node], tool: GrammarTool | None) -> Expression:
        parts: list[Expression] = []
        after_name = False
        for node in nodes:
            parts.append(self._node(node, tool, after_name))
            # White space is part of a name unless it ends it.
            after_name = isinstance(node, (Name, Header))
        return sequence(*parts)

    def _node(self, node: Node, tool: GrammarTool | None, after_name: bool = False) -> Expression:
        match node:
            case Lit():
                if not node.written:
                    return EMPTY
                before = space(node.before) if after_name else free_space(node.before)
                return sequence(before, literal(node.text), free_space(node.after))
            case Many(nodes, _, between):
                inside = self._sequence(nodes, tool)
                if not self.parallel or not node.together:
                    return inside
                # The first repetition and all others refer to one rule, whose text is written once.
                inside = self.rules.share(inside)
                return sequence(inside, repeat(sequence(free_space(between), inside)))
            case OneOf(options):
                # A model was trained on the form that is written; the others are only read.
                return self._sequence(options[0], tool)
            case AnyOrder(groups):
                return sequence(*(self._sequence(group, tool) for group in groups))
            case Call(nodes):
                return self.rules.share(
                    self._choice(self._sequence(nodes, each) for each in ([tool] if tool else self.tools))
                )
            case JsonCall():
                return self._json_calls(node, [tool] if tool else self.tools)
            case PyCalls():
                return self._python_calls(node)
            case _:
                if tool is None:
                    raise DefinitionError(f"the format {self.wire.name!r} has a part of a call outside calls")
                return self._part(node, tool)

    def _part(self, node: Node, tool: GrammarTool) -> Expression:
        """Return the expression of one part of a call."""
        values = self._values(tool, JSON)
        match node:
            case Name(prefix, is_id, after=after):
                name = literal(prefix + tool.name)
                return sequence(name, literal(":"), _COUNT) if is_id else sequence(name, space(after))
            case Header():
                return literal(tool.name)
            case Ident():
                return _IDENT
            case Server(default):
                return literal(tool.definition.server or default)
            case Tag():
                return self._tag(node, literal(quote_attribute(tool.name)))
            case Params():
                return sequence(*self._parameters(node, tool))
            case Elements():
                return ElementRules(values, node).members(tool.arguments)
            case ToolTag():
                return literal(f"<{tool.name}>")
            case ToolBody(elements):
                inside = ElementRules(values, elements).members(tool.arguments)
                return sequence(inside, free_space("\n"), literal(f"</{tool.name}>"))
            case Args():
                return self._arguments(node, tool)
            case TokenArgs(token):
                return self._object(tool, between_tokens(token))
            case KeywordArgs():
                return self._keywords(tool)
            case _:
                raise AssertionError(node)

    def _values(self, tool: GrammarTool, dialect: ValueDialect) -> ValueRules:
        return ValueRules(self.rules, dialect, tool.reader, tool.name)

    def _object(self, tool: GrammarTool, dialect: ValueDialect) -> Expression:
        name = f"{dialect.name} arguments {id(tool)}"
        return self.rules.rule(name, lambda: self._values(tool, dialect).value(tool.arguments))

    def _keywords(self, tool: GrammarTool) -> Expression:
        return self._values(tool, PYTHON).members(tool.arguments, literal("("), literal(")"), keyword_key)

    def _arguments(self, node: Args, tool: GrammarTool) -> Expression:
        written = self._object(tool, JSON)
        # In an element the JSON is text of XML, and its closing tag is part of the node.
        if node.element:
            return sequence(self._escaped(written, _XML_ESCAPES, "xml"), literal(f"</{node.element}>"))
        key = tool.definition.shape.lone_property if node.until else ""
        options: list[Expression] = [written]
        for lone in (values for name, values, _ in tool.arguments.properties if name == key):
            for kind in flat_values(lone, tool.reader.named):
                if isinstance(kind, StringValue):
                    self._values(tool, JSON).widen_text(kind)
                    # White space at the end belongs to the closing marker; a lexer could not give it back.
                    options.append(Lexeme(sequence(_BARE_START, repeat(chars_except("<")))))
                elif isinstance(kind, Constants):
                    texts = (value for value in kind.values if isinstance(value, str) and value == value.strip())
                    options += [
                        literal(text) for text in texts if text and text[0] not in "<{[\"'`" and "<" not in text
                    ]
        return choice(options)

    def _escaped(self, part: Expression, escapes: dict[str, str], suffix: str) -> Expression:
        """Return an expression with its characters escaped, and with it the rules that it refers to."""

        def rule(name: str) -> str:
            copy = f"{name} {suffix}"
            self.rules.rule(copy, lambda: escape(self.rules.rules[name], escapes, rule))
            return copy

        return escape(part, escapes, rule)

    # Calls that are JSON or Python

    def _json_calls(self, node: JsonCall, tools: Sequence[GrammarTool]) -> Expression:
        call = self.rules.share(self._choice(self._json_call(node, tool) for tool in tools))
        comma = sequence(literal(","), JSON.space)
        more = sequence(comma, call)
        several = repeat(more) if self.parallel else EMPTY
        items = sequence(literal("["), JSON.space, call, several, JSON.space, literal("]"))
        if node.nested and node.lists:
            return _json_object([(node.lists[0], items)])
        if node.array == "always":
            return items
        # One call without a list, several in one, as the renderer writes them.
        if node.array == "several":
            return choice([call, items]) if self.parallel else call
        if node.between and self.parallel:
            return sequence(call, repeat(sequence(literal(node.between.rstrip()), free_space(node.between), call)))
        return call

    def _json_call(self, node: JsonCall, tool: GrammarTool) -> Expression:
        arguments = self._object(tool, JSON_IN_TEXT if node.text else JSON)
        if node.keyed:
            return _json_object([(tool.name, arguments)])
        if node.text:
            arguments = sequence(literal('"'), self._escaped(arguments, _JSON_ESCAPES, "in a string"), literal('"'))
        members: list[tuple[str, Expression]] = []
        if node.server:
            members.append((node.server[0], literal(json_text(tool.definition.server or "local"))))
        members += [(node.name[0], literal(json_text(tool.name))), (node.args[0], arguments)]
        after: Expression = EMPTY
        if node.id:
            key = literal(f'"{node.id[0]}":')
            after = optional(sequence(literal(","), JSON.space, key, JSON.space, literal('"'), _IDENT, literal('"')))
        call = _json_object(members, after)
        return _json_object([(node.inside[0], call)]) if node.nested and node.inside else call

    def _python_calls(self, node: PyCalls) -> Expression:
        call = self.rules.share(self._choice(sequence(literal(tool.name), self._keywords(tool)) for tool in self.tools))
        between = sequence(literal(","), PYTHON.space) if node.open else Lexeme(literal("\n"))
        several = repeat(sequence(between, call)) if self.parallel else EMPTY
        return sequence(literal(node.open), call, several, literal(node.close))

    # Parameters in tags of their own

    @staticmethod
    def _tag(node: Tag, value: Expression, kind: str = "") -> Expression:
        """Return a tag with the value of its attribute, in quotes."""
        head = sequence(literal(f"{node.open}{node.name} {node.attribute}="), value)
        if node.mark is not None:
            head = sequence(head, literal(f' {node.mark.attribute}="{node.mark.of(kind)}"'))
        if node.counted:
            head = sequence(head, literal(f' {node.counted}="'), _COUNT, literal('"'))
        return sequence(head, literal(node.close), free_space(node.after))

    def _parameters(self, node: Params, tool: GrammarTool) -> Iterator[Expression]:
        for name, values, needed in tool.arguments.properties:
            written = self._parameter(node, tool, literal(name), literal(quote_attribute(name)), values)
            yield written if needed else optional(written)
        if (additional := tool.arguments.additional) is not None:
            names = [name for name, _, _ in tool.arguments.properties]
            free_name = Lexeme(other_name(names, KEY_CHARACTERS, KEY_CHARACTERS))
            quoted = sequence(literal('"'), free_name, literal('"'))
            yield repeat(self._parameter(node, tool, free_name, quoted, additional))

    def _parameter(
        self, node: Params, tool: GrammarTool, name: Expression, quoted: Expression, values: Values
    ) -> Expression:
        """Return the expression of one parameter, whose name may be in quotes."""
        nodes = [inner for inner, _ in as_written(node.nodes)]
        # A value that has lost its closing marker would go on in the next parameter, whose markers come first: where
        # there are too many, the last ones are permitted.
        banned = {**_markers(nodes), **self._markup}
        # A mark says how the value is written, so each type of value has a parameter of its own.
        marked = any(isinstance(inner, Mark) or (isinstance(inner, Tag) and inner.mark) for inner in nodes)
        kinds = values_by_type(values, tool.reader.named) if marked else {"": values}
        options: list[Expression] = []
        for kind, inside in kinds.items():
            parts: list[Expression] = []
            for inner in nodes:
                match inner:
                    case Key():
                        parts.append(name)
                    case Mark():
                        parts.append(literal(inner.of(kind)))
                    case Tag():
                        parts.append(self._tag(inner, quoted, kind))
                    case Value():
                        parts += [self._raw_value(inner, tool, inside, banned), free_space(inner.after)]
                    case _:
                        parts.append(self._node(inner, tool))
            options.append(sequence(*parts))
        return choice(options)

    def _raw_value(self, node: Value, tool: GrammarTool, values: Values, banned: Iterable[str]) -> Expression:
        """Return the expression of a value between tags, without banned markers, the closing marker included."""
        edge = "\n" if node.newline else ""
        rules = self._values(tool, JSON)
        kinds = list(flat_values(values, tool.reader.named))
        texts = [kind for kind in kinds if isinstance(kind, StringValue)]
        for string in texts:
            rules.widen_text(string)
        if texts:
            # Text that looks like another type is that type where the schema admits it; all of it is text here.
            text = prose((node.close,), _without_brackets(banned, node.close)).until
            name = f"raw {node.close}"
            return sequence(literal(edge), self.rules.rule(name, lambda: text))
        options: list[Expression] = []
        for kind in kinds:
            if isinstance(kind, Constants):
                # The closing marker is part of the literal: a lexer would take a longer constant that begins alike.
                for constant in kind.values:
                    written = constant if isinstance(constant, str) else json_text(constant)
                    if node.cdata and "<" in written and "]]>" not in written:
                        written = f"<![CDATA[{written}]]>"
                    options.append(literal(f"{edge}{written}{edge}{node.close}"))
            else:
                options.append(sequence(literal(edge), rules.value(kind), free_space(edge), literal(node.close)))
        return choice(options)


@lru_cache(4000)
def _can_write(wire: WireFormat, tool: str, key: str = "") -> bool:
    """Return whether a format has a way to write the name of a tool, or of a parameter of it."""
    if _PLAIN_NAME.fullmatch(key or tool):
        return True
    # The renderer reads everything that it writes, so it knows which names are read as themselves.
    parameters = {"type": "object", "properties": {key: {"type": "string"}} if key else {}}
    definition = ToolDefinition(tool, parameters=parameters)
    try:
        render_calls(wire, [ToolCall(tool, {key: "x"} if key else {})], {tool: definition})
    except RenderError:
        return False
    return True


def _json_object(members: Iterable[tuple[str, Expression]], after: Expression = EMPTY) -> Expression:
    parts: list[Expression] = []
    for key, value in members:
        comma = [literal(","), JSON.space] if parts else []
        parts += [*comma, literal(f"{json_text(key)}:"), JSON.space, value]
    return sequence(literal("{"), JSON.space, *parts, after, JSON.space, literal("}"))


def _without_brackets(markers: Iterable[str], close: str) -> tuple[str, ...]:
    """Return the texts that a value cannot contain: all markers but the closing one, without their last bracket.

    A model that may not write a marker writes it with a blank before that bracket, and then no end of the value.
    """
    excluded: dict[str, None] = {}
    for mark in markers:
        text = mark.removesuffix(">")
        if mark != close:
            excluded[mark if close.startswith(text) else text] = None
    return tuple(excluded)


def _markers(nodes: Iterable[Node]) -> dict[str, None]:
    """Return the markers that nodes are written with, in their order.

    One character is not a marker: text is full of such characters.
    """
    markers: dict[str, None] = {}
    for node, _ in as_written(nodes):
        if isinstance(node, Lit) and len(node.text) > 1 and not node.text[0].isalnum():
            markers[node.text] = None
        elif isinstance(node, Tag):
            markers[f"{node.open}{node.name} "] = None
    return markers
