"""Response templates of transformers, read as descriptions of formats: a checkpoint that brings one needs no code here.

Source: https://huggingface.co/docs/transformers/main/chat_response_parsing
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire._surface import check_type
from toolwire.errors import DefinitionError
from toolwire.wire.pattern_parts import (
    PatternBlank,
    PatternChoice,
    PatternClass,
    PatternGroup,
    PatternPart,
    PatternText,
    pattern_parts,
)
from toolwire.wire.syntax import (
    Args,
    Call,
    JsonCall,
    Key,
    Lit,
    Name,
    Node,
    OneOf,
    Params,
    PyCalls,
    Span,
    Tag,
    TokenArgs,
    Value,
    WireFormat,
)

_OPENING_TAG = re.compile(r"(?s)(.*)<([^\s<>]+)\Z")
_ATTRIBUTE = re.compile(r"([\w-]+)=[\"']?\Z")


def format_of_response_template(template: Mapping[str, Any], *, name: str = "checkpoint") -> WireFormat:
    """Return the format that a response template describes, for parsing, rendering, prompts and grammars.

    Args:
        template: the value of `response_template` in a checkpoint's `tokenizer_config.json`.
        name: the name of the format, which its calls have in `ToolCall.format`.

    Raises:
        DefinitionError: it has no field `tool_calls`, or a pattern or a parser that no description can express; the
            message names the place.
    """
    check_type("template", template, Mapping, "a response template as a dict")
    fields = template.get("fields")
    if not isinstance(fields, Mapping) or not isinstance(fields.get("tool_calls"), Mapping):
        raise DefinitionError("the response template has no field tool_calls, so it describes no calls")
    calls = fields["tool_calls"]
    block = _block(calls)
    thinking = fields.get("thinking")
    spans = tuple(_spans(thinking)) if isinstance(thinking, Mapping) else ()
    content = fields.get("content")
    content = content if isinstance(content, Mapping) else {}
    drop = tuple(dict.fromkeys((*_texts(content.get("open")), *_texts(content.get("close")))))
    return WireFormat(
        name=name,
        title=str(calls.get("open_pattern") or calls.get("open")),
        blocks=(block,),
        spans=spans,
        drop=drop,
        detected=False,
    )


def _texts(value: Any) -> list[str]:
    """Return literal delimiters, which are one text or a list."""
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [text for text in values if isinstance(text, str) and text.strip()]


def _spans(field: Mapping[str, Any]) -> Iterator[Span]:
    opens, closes = _texts(field.get("open")), _texts(field.get("close"))
    for at, opener in enumerate(opens):
        if closes:
            yield Span(opener, closes[min(at, len(closes) - 1)])


def _block(field: Mapping[str, Any]) -> tuple[Node, ...]:
    """Return the nodes of one call."""
    before = _delimiter(field, "open")
    after = _delimiter(field, "close")
    if not before:
        raise DefinitionError("fields.tool_calls: nothing opens the calls")
    body = _body(field, named=_has_name(before))
    # A model may be cut off at its last marker, which the end of the answer then stands for.
    after = [replace(node, need="forgiven") if isinstance(node, Lit) else node for node in after]
    if isinstance(body, JsonCall | PyCalls):
        return (*before, body, *after)
    # Parameters end where the marker of the call does; JSON ends by itself.
    if isinstance(body, Params):
        return (Call((*before, body, *_closing_tags(before, after), *after[:1])), *after[1:])
    return (Call((*before, body)), *after)


def _closing_tags(before: Sequence[Node], after: Sequence[Node]) -> Iterator[Lit]:
    """Yield closing tags of what a pattern opens, the last one first, unless the next pattern has them.

    A template passes over all text between the last parameter and the marker that ends the call; that is these tags.
    """
    ends = " ".join(node.text for node in after if isinstance(node, Lit))
    for node in reversed(before):
        opened = re.match(r"<([\w:.-]+)", f"<{node.name}" if isinstance(node, Tag) else getattr(node, "text", ""))
        if opened is not None and f"</{opened[1]}>" not in ends:
            yield Lit(f"</{opened[1]}>", need="optional", before="\n")


def _has_name(nodes: Iterable[Node]) -> bool:
    return any(
        isinstance(node, Name | Tag) or (isinstance(node, OneOf) and all(map(_has_name, node.options)))
        for node in nodes
    )


def _delimiter(field: Mapping[str, Any], side: str) -> list[Node]:
    """Return the nodes that open or close a field."""
    if texts := [text.strip() for text in _texts(field.get(side))]:
        return [Lit(texts[0], also=tuple(texts[1:]))]
    pattern = field.get(f"{side}_pattern")
    if pattern is None:
        return []
    if not isinstance(pattern, str):
        raise DefinitionError(f"fields.tool_calls.{side}_pattern is not text")
    return list(_nodes(pattern, f"fields.tool_calls.{side}_pattern"))


def _nodes(pattern: str, place: str) -> Iterator[Node]:
    """Yield the nodes that a pattern stands for.

    Raises:
        DefinitionError: no nodes stand for a part of it.
    """
    yield from _nodes_of(pattern_parts(pattern, place), place)


def _nodes_of(parts: Sequence[PatternPart], place: str) -> Iterator[Node]:
    at = 0
    while at < len(parts):
        part = parts[at]
        at += 1
        match part:
            case PatternBlank():  # white space between nodes is free
                pass
            case PatternText(text):
                tag = _tag(text, parts[at:])
                if tag is None:
                    yield Lit(text.strip())
                    continue
                before, node, width = tag
                if before:
                    yield Lit(before)
                yield node
                at += width
                # What is behind the bracket of the tag belongs to the next part.
                if rest := _behind_bracket(parts[at - 1]):
                    yield Lit(rest)
            case PatternGroup("name") if _is_counted(parts[at:]):
                yield Name(is_id=True)
                at += 2
            case PatternGroup(name):
                yield _group(name, place)
            case PatternChoice():
                yield from _choice(part, place)
            case PatternClass(characters):
                raise DefinitionError(f"{place}: no description can express any text of [{characters}]")


def _is_counted(following: Sequence[PatternPart]) -> bool:
    """Return whether a number follows a name, which then is the call's id too: `functions.get_weather:0`."""
    match following:
        case [PatternText(":"), PatternClass("0-9" | "\\d"), *_]:
            return True
    return False


def _tag(text: str, following: Sequence[PatternPart]) -> tuple[str, Tag, int] | None:
    """Return the text before a tag, the tag, and the number of parts that it takes; None for other text."""
    opening = _OPENING_TAG.match(text)
    if opening is None:
        return None
    width = 0  # in parts
    while width < len(following) and isinstance(following[width], PatternBlank | PatternClass):
        width += 1
    attribute = following[width] if width < len(following) else None
    name = _ATTRIBUTE.match(attribute.text) if isinstance(attribute, PatternText) and width else None
    if name is None:
        return None
    rest = [*following[width + 1 :]]
    # A pattern for either quotation mark is a part of its own; one mark is the end of the text before the group.
    quotes = 1 if rest and isinstance(rest[0], PatternClass) else 0
    group = rest[quotes] if len(rest) > quotes else None
    end = next((at for at, part in enumerate(rest) if isinstance(part, PatternText) and ">" in part.text), None)
    if end is None or not isinstance(group, PatternGroup) or group.name not in ("name", "key"):
        return None
    role: Any = group.name
    return opening[1].strip(), Tag(opening[2], role, attribute=name[1]), width + 1 + end + 1


def _behind_bracket(part: PatternPart) -> str:
    return part.text.partition(">")[2].strip() if isinstance(part, PatternText) else ""


def _group(name: str, place: str) -> Node:
    match name:
        case "name":
            return Name()
        case "key":
            return Key(free=True)
        case "value":
            return Value("")  # the text behind the group closes it
    raise DefinitionError(f"{place}: the group {name!r} is neither name, key nor value")


def _choice(choice: PatternChoice, place: str) -> Iterator[Node]:
    """Yield the marker that one of several texts is, or the alternatives."""
    options = [tuple(_nodes_of(option, place)) for option in choice.options]
    optional = choice.optional or () in options
    options = [option for option in options if option]
    if all(len(option) == 1 and isinstance(option[0], Lit) for option in options):
        markers = [node for (node,) in options if isinstance(node, Lit)]
        spellings = list(dict.fromkeys(text for node in markers for text in (node.text, *node.also)))
        optional = optional or any(node.need == "optional" for node in markers)
        if spellings:
            yield Lit(spellings[0], also=tuple(spellings[1:]), need="optional" if optional else "required")
        return
    if optional:
        raise DefinitionError(f"{place}: no description can express alternatives that may all be missing")
    yield OneOf(tuple(options))


def _body(field: Mapping[str, Any], *, named: bool) -> Node:
    """Return the node of the arguments, or of whole calls.

    Raises:
        DefinitionError: no node reads them so.
    """
    kind = field.get("content", "text")
    quirks = field.get("content_args")
    quirks = quirks if isinstance(quirks, Mapping) else {}
    match kind:
        case "json":
            tokens = quirks.get("string_delims")
            if named and isinstance(tokens, list) and tokens:
                return TokenArgs(str(tokens[0][0]))
            return Args() if named else _json_call(field)
        case "xml-inline":
            return _parameters(quirks)
        case "python-call-list":
            return PyCalls()
    raise DefinitionError(f"fields.tool_calls.content: no description can express {kind!r}")


def _json_call(field: Mapping[str, Any]) -> JsonCall:
    """Return the node for calls that are JSON objects, with the keys that the transform takes them from."""
    array: Any = "always" if field.get("transform_each") else "never"
    transform = field.get("transform")
    function = transform.get("function") if isinstance(transform, Mapping) else None
    if function in ("{content}", None):
        return JsonCall(array=array)
    if not isinstance(function, Mapping):
        raise DefinitionError("fields.tool_calls.transform: its function is neither the content nor an object")
    keys = [str(function.get(key, "")).strip("{}").removeprefix("content.") for key in ("name", "arguments")]
    if not all(keys) or any("." in key for key in keys):
        raise DefinitionError("fields.tool_calls.transform: the name and the arguments are not members of the content")
    return JsonCall(name=(keys[0],), args=(keys[1],), array=array)


def _parameters(quirks: Mapping[str, Any]) -> Params:
    place = "fields.tool_calls.content_args.tag_pattern"
    pattern = quirks.get("tag_pattern")
    if not isinstance(pattern, str):
        raise DefinitionError(f"{place} is missing")
    nodes = list(_nodes(pattern, place))
    if len(nodes) < 3 or not isinstance(nodes[-2], Value) or not isinstance(nodes[-1], Lit):
        raise DefinitionError(f"{place}: the value is not the last group, with a marker behind it")
    newline = re.search(r"\\[sn][*?]\(\?P<value>", pattern) is not None
    return Params((*nodes[:-2], Value(nodes[-1].text, newline=newline)))
