"""The closed set of nodes that describe wire formats.

A format is a value: blocks, each a sequence of nodes, and the spans and tokens around them. The parser and the renderer
both work from this value. Both end in `assert_never`, so a node that one of them forgets is a type error.

Rules for every description:

- White space before a `Lit`, a tag or a JSON value is free.
- The literal that comes next decides choices (`OneOf`, `Many`, a literal that may be missing); the longest wins.
- A call is complete where its `Call`, `JsonCall` or `PyCalls` ends. Everything after it is wrapper, and may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, assert_never

from toolwire.errors import DefinitionError


class _Shown:
    """Base class that shows a part of a description without the fields that have their defaults."""

    __slots__ = ()

    def __rich_repr__(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield name, value and default of each field, for rich."""
        for field in fields(self):  # type: ignore[arg-type]
            yield field.name, getattr(self, field.name), field.default


@dataclass(frozen=True, slots=True)
class Lit(_Shown):
    """A literal marker.

    Attributes:
        text: the spelling that is written.
        also: other spellings that are read.
        need: "required"; "forgiven" (its absence is recorded as a repair); "optional" (it may be left out).
        repeats: a model may write it more than once.
        hint: prose may contain it too; a block that gets no further than this is not reported as a problem.
        prose: the marker is ordinary words, and begins a block only where the format is named.
        written: the renderer writes it; else it is only read.
        before, after: white space written around it.
    """

    text: str
    also: tuple[str, ...] = ()
    need: Literal["required", "forgiven", "optional"] = "required"
    repeats: bool = False
    hint: bool = False
    prose: bool = False
    written: bool = True
    before: str = ""
    after: str = ""

    def __post_init__(self) -> None:
        """Raise DefinitionError for a marker that could never be read."""
        if not all(spelling.strip() for spelling in self.spellings):
            raise DefinitionError("a marker cannot be empty or blank: white space between markers is free")
        if any(spelling != spelling.lstrip() for spelling in self.spellings):
            raise DefinitionError(f"the marker {self.text!r} begins with white space, which is free: use `before`")
        if self.need not in ("required", "forgiven", "optional"):
            raise DefinitionError(f"a marker is required, forgiven or optional, not {self.need!r}")

    @property
    def spellings(self) -> frozenset[str]:
        """All texts that are read as this marker."""
        return frozenset((self.text, *self.also))


@dataclass(frozen=True, slots=True)
class Name(_Shown):
    """The tool's name as plain text.

    Attributes:
        prefix: text before the name that belongs to the format; may be missing.
        is_id: the text ends in `:INDEX` and is also the call's id.
        phrase: the name may contain blanks, because a marker ends it; after a slash, that marker ends the call.
        known: only the name of a known tool counts.
        after: white space written after it.
    """

    prefix: str = ""
    is_id: bool = False
    phrase: bool = False
    known: bool = False
    after: str = ""


@dataclass(frozen=True, slots=True)
class Header(_Shown):
    """The tool's name in a message's header, as plain text; the name in the call counts."""


@dataclass(frozen=True, slots=True)
class Ident(_Shown):
    """The call's id as plain text."""


@dataclass(frozen=True, slots=True)
class Server(_Shown):
    """The server's name as plain text; `default` is written for a call without one."""

    default: str = "local"


@dataclass(frozen=True, slots=True)
class Key(_Shown):
    """A parameter's name as plain text.

    Attributes:
        phrase: the name may contain blanks, because a marker ends it.
        free: the name may contain anything but that marker.
    """

    phrase: bool = False
    free: bool = False


@dataclass(frozen=True, slots=True)
class Mark(_Shown):
    """A mark that says whether a parameter's value is raw text or JSON.

    Attributes:
        attribute: the attribute of the parameter's tag; "" for plain text.
        flag: the mark is "true" for raw text and "false" for JSON; else it is JSON Schema's name of the type, "string"
            for raw text.
    """

    attribute: str = ""
    flag: bool = False

    def of(self, kind: str) -> str:
        """Return the mark of a value of this JSON Schema type."""
        return kind if not self.flag else "true" if kind == "string" else "false"


@dataclass(frozen=True, slots=True)
class Tag(_Shown):
    """An opening tag with one attribute that matters: `<invoke name="...">`.

    Attributes:
        name: the tag's name, a namespace prefix included.
        role: the meaning of the attribute: the name of the tool, or of a parameter.
        attribute: the attribute's name.
        mark: a second attribute, which says how the value is written; may be missing.
        counted: an attribute that numbers the calls of a message from 1; it is written, and may be missing.
        open, close: the tag's brackets.
        after: white space written after it.
    """

    name: str
    role: Literal["name", "key"]
    attribute: str = "name"
    mark: Mark | None = None
    counted: str = ""
    open: str = "<"
    close: str = ">"
    after: str = ""


@dataclass(frozen=True, slots=True)
class Value(_Shown):
    """A parameter's value as raw text up to a closing marker; the tool's schema decides its type.

    Attributes:
        close: the closing marker.
        newline: one newline after the opening and one before the closing marker belong to the format.
        missing: where the next parameter's opener may take the place of the closing marker.
        cdata: CDATA sections are literal, and their wrapper is not part of the value.
        after: white space written after the closing marker.
    """

    close: str
    newline: bool = False
    missing: Literal["never", "line", "anywhere"] = "never"
    cdata: bool = False
    after: str = ""


@dataclass(frozen=True, slots=True)
class Params(_Shown):
    """Any number of parameters, each written as `nodes`; the last node is the `Value`."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Elements(_Shown):
    """Parameters as XML elements, nested for objects and lists, with entities and CDATA.

    Attributes:
        infer: read text without a type in the schema as a boolean, null or number where it looks like one.
        tag: the element with a parameter's name in its attribute `name`; "" if the element's own name is the name.
        nested: the only elements that are structure inside a parameter; empty if all are.
        indent: white space written before each element.
        token: text before every tag; with it, text is literal.
        literal: text is literal, without entities, CDATA and comments.
        numbered: elements inside a parameter may have numbers for names: `<0>a</0>`.
        trimmed: white space around text of one line is not part of it, except with CDATA.
    """

    infer: bool = False
    tag: str = ""
    nested: tuple[str, ...] = ()
    indent: str = "\n  "
    token: str = ""
    literal: bool = False
    numbered: bool = False
    trimmed: bool = False


@dataclass(frozen=True, slots=True)
class ToolTag(_Shown):
    """The opening tag of an element named after the tool: `<read_file>`. Its attributes are arguments.

    Only a known tool's tag counts, and none right behind a backtick, where it is quoted.
    """


@dataclass(frozen=True, slots=True)
class ToolBody(_Shown):
    """The inside of the element that a `ToolTag` opened, and its closing tag.

    Also read are arguments as a JSON object or as YAML, and plain text for the parameter that takes prose.

    Attributes:
        elements: the parameters as they are written.
    """

    elements: Elements = Elements(infer=True, indent="\n", numbered=True, trimmed=True)


@dataclass(frozen=True, slots=True)
class Args(_Shown):
    """All arguments as one JSON object, or as the XML-escaped text of `element`, closing tag included.

    Attributes:
        element: the element's name; "" for plain JSON.
        lone: a line that is not a JSON object is the one argument of a tool that needs or has only one.
        until: the marker that ends this text in place of the line's end; the node after it reads the marker.
    """

    element: str = ""
    lone: bool = False
    until: str = ""


@dataclass(frozen=True, slots=True)
class TokenArgs(_Shown):
    """All arguments as `{k:v}`, with strings between tokens: `{city:<|"|>Paris<|"|>,days:3}`."""

    token: str


@dataclass(frozen=True, slots=True)
class KeywordArgs(_Shown):
    """All arguments as the keyword arguments of a Python call, parentheses included: `(city="Paris", days=3)`."""


@dataclass(frozen=True, slots=True)
class JsonCall(_Shown):
    """Calls as JSON objects with the name and the arguments: one, several, or a list of them.

    Attributes:
        name, args, id, server: the keys, in any order; the first of each is written.
        inside: keys whose object contains the others (`{"function": {...}}`).
        lists: keys whose value is the list of calls (`{"tool_calls": [...]}`).
        nested: the first key of `inside` and of `lists` is written too, and not only read.
        array: whether a list is written: never, around several calls, or always.
        between: text written between objects without a list; may be missing.
        text: arguments are written as a JSON string.
        needs_args: an object without arguments is not a call.
        keyed: the only key is the name, and its value is the arguments.
        lone: a string in place of the arguments is the one argument of a tool that needs or has only one.
    """

    name: tuple[str, ...] = ("name",)
    args: tuple[str, ...] = ("arguments", "parameters")
    id: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    nested: bool = False
    array: Literal["never", "several", "always"] = "never"
    between: str = ""
    text: bool = False
    needs_args: bool = False
    keyed: bool = False
    lone: bool = False


@dataclass(frozen=True, slots=True)
class PyCalls(_Shown):
    """Calls as Python: `[f(a=1), g(b="x")]`.

    Attributes:
        open, close: the brackets; "" if none are written.
        bare: the brackets may be missing.
        json: a call inside the brackets may also be a JSON object.
        method: the tool may be written as an object, of which this method is called.
    """

    open: str = "["
    close: str = "]"
    bare: bool = False
    json: JsonCall | None = None
    method: str = ""


@dataclass(frozen=True, slots=True)
class Many(_Shown):
    """Any number of `nodes`, one after the other.

    Attributes:
        together: all calls of a message are written in one block.
        between: white space written between two of them.
    """

    nodes: tuple[Node, ...]
    together: bool = True
    between: str = ""


@dataclass(frozen=True, slots=True)
class OneOf(_Shown):
    """One of several sequences, which begin differently; one may be empty. The first is written."""

    options: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class AnyOrder(_Shown):
    """Sequences that are read in any order, each at most once, and written in this order."""

    groups: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Call(_Shown):
    """One call, complete where `nodes` end."""

    nodes: tuple[Node, ...]


Node = (
    Lit | Name | Header | Ident | Server | Key | Mark | Tag | ToolTag | ToolBody | Value | Params | Elements | Args
    | TokenArgs | KeywordArgs | JsonCall | PyCalls | Many | OneOf | AnyOrder | Call
)  # fmt: skip
"""A part of the description of a call."""


def as_written(nodes: Iterable[Node], *, always: bool = True) -> Iterator[tuple[Node, bool]]:
    """Yield the nodes that a sequence is written with, none of which contains others; of a choice, the first.

    With each comes whether it is always written: False inside an `AnyOrder`, where any may be missing.
    """
    for node in nodes:
        match node:
            case Many(nodes=inner) | Params(nodes=inner) | Call(nodes=inner):
                yield from as_written(inner, always=always)
            case OneOf(options):
                yield from as_written(options[0], always=always)
            case AnyOrder(groups):
                for group in groups:
                    yield from as_written(group, always=False)
            case ToolBody(elements):
                yield elements, always
            case (
                Lit() | Name() | Header() | Ident() | Server() | Key() | Mark() | Tag() | ToolTag() | Value()
                | Elements() | Args() | TokenArgs() | KeywordArgs() | JsonCall() | PyCalls()
            ):  # fmt: skip
                yield node, always
            case _:
                assert_never(node)


def holds_all_calls(nodes: Iterable[Node]) -> bool:
    """Return whether one block, as it is written, contains all calls of a message."""
    for node in nodes:
        match node:
            case Many(together=True) | JsonCall(array="several" | "always") | PyCalls():
                return True
            case JsonCall(between=between, nested=nested, lists=lists) if between or (nested and lists):
                return True
            case OneOf(options) if holds_all_calls(options[0]):
                return True
            case _:
                pass
    return False


@dataclass(frozen=True, slots=True)
class Span(_Shown):
    """Text between two markers that is not content: reasoning.

    Attributes:
        open, close: the markers.
        prose: the markers are ordinary words, which count only where the format is named.
    """

    open: str
    close: str
    prose: bool = False


THINK = Span("<think>", "</think>")
"""Reasoning between `<think>` and `</think>`."""
THINKING = Span("<thinking>", "</thinking>")
"""Reasoning between `<thinking>` and `</thinking>`."""


@dataclass(frozen=True, slots=True)
class Listing(_Shown):
    """The list of definitions in a prompt.

    Attributes:
        open, close: text around the list.
        between: text between two definitions.
        each: text around each definition.
        shape: "openai" (the object with `type` and `function`), "function" (that object's `function`), "elements"
            (XML), "declaration" (bare keys, strings between tokens) or "typescript".
        token: the token around strings of declarations.
    """

    open: str = "<tools>\n"
    close: str = "\n</tools>"
    between: str = "\n"
    each: tuple[str, str] = ("", "")
    shape: Literal["openai", "function", "elements", "declaration", "typescript"] = "openai"
    token: str = ""


END_OF_SEQUENCE = (
    "</s>", "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|end|>",
    "<｜end▁of▁sentence｜>", "<end_of_turn>", "<turn|>", "<eos>", "[EOS]", "<|END_OF_TURN_TOKEN|>", "<|return|>",
    "<|tool_response>", "<|plamo:tag|>",
)  # fmt: skip
"""Tokens that end a sequence and leak into the text; they are markup only where nothing else follows."""


@dataclass(frozen=True, slots=True)
class WireFormat(_Shown):
    """A description of the text in which one family of models writes tool calls.

    Attributes:
        name, aliases: the names for users.
        title: one line for the table of formats.
        models: families that were trained on it.
        blocks: alternatives that begin differently; the first is written.
        spans: reasoning markers; the first is the one that a prompt may already have opened.
        drop: markers around content that are not content themselves.
        answers: those of them that open the answer, in which text without markers of a call is never one.
        markers: False where a call has no marker of its own: only known tools count then, and failure is content.
        at: place where a block may begin: "anywhere" in content, only at the "start" of the message, "mixed", which is
            "start" for blocks that begin with a bracket, or "markers", which is "start" for code fences too.
        pseudo: names that stand for no call; a call of one without arguments is markup.
        stop: text after which a model makes up results, so no block begins behind it.
        ends_reasoning: an opener ends unclosed reasoning.
        nocase: markers are read in any case.
        fences: a Markdown code fence hides what is inside.
        strict: only its own shapes are read in its wrappers, even if other formats share them.
        detected: `auto` searches for it; False where the text is the same as in another format, or may be prose.
        primed: the end of the prompt in the format's own chat template.
        confidence: confidence of a call in this format.
        join: text between calls of one message.
        definitions: the list of definitions in a prompt.
        result: markers around one tool result, with the placeholders `{name}` and `{id}` for the call's.
        source: address of the format's description.
    """

    name: str
    title: str = ""
    aliases: tuple[str, ...] = ()
    models: str = ""
    blocks: tuple[tuple[Node, ...], ...] = ()
    spans: tuple[Span, ...] = (THINK,)
    drop: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    markers: bool = True
    at: Literal["anywhere", "start", "mixed", "markers"] = "anywhere"
    pseudo: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    ends_reasoning: bool = False
    nocase: bool = False
    fences: bool = True
    strict: bool = False
    detected: bool = True
    primed: str = ""
    confidence: float = 1.0
    join: str = "\n"
    definitions: Listing = Listing()
    result: tuple[str, str] = ("<tool_response>\n", "\n</tool_response>")
    source: str = ""
