"""Response templates of transformers: the descriptions of formats, written as `response_template` of a checkpoint.

A response template is JSON in `tokenizer_config.json`: fields with the text that opens and closes each, how what is
between them is parsed, and the shape that it becomes. transformers reads answers by it, and so do vLLM and SGLang.

Source: https://huggingface.co/docs/transformers/main/chat_response_parsing
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from toolwire.errors import DefinitionError
from toolwire.wire.format_registry import get_format
from toolwire.wire.syntax import (
    END_OF_SEQUENCE,
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
    Value,
    WireFormat,
)

_VERSION = 1
_NAME = r"[^\s<>(){}\[\]\"'`,|:=]+"
"""A tool's name, wherever a format writes it."""
_KEY = r"[^\n]+?"
_TEXT = {"content": "text", "content_args": {"strip": False}, "repeats": True, "join": ""}
"""Text may be in several places around calls, and a field that does not repeat keeps only the last."""
MAX_SHAPES = 32
"""The number of shapes of a block that are looked at."""
_VALUE = r"(?:)"
"""The place where a raw value begins: white space behind it is part of the value."""


def response_template(
    format: str | WireFormat, *, start: str = "<|im_start|>assistant\n", end: Sequence[str] = ("<|im_end|>",)
) -> dict[str, Any]:
    """Return the response template of a format, by which transformers, vLLM and SGLang read its calls.

    It reads calls that are well-formed; what the parser repairs, it does not. Give `parse_response` the tools too: the
    template leaves values as text where only the schema decides their types.

    Args:
        format: a format's name or alias, or a `WireFormat`.
        start: the text in the prompt behind which the answer begins.
        end: texts that end an answer, one of which the model writes as its last token.

    Raises:
        UnknownFormat: no such format.
        DefinitionError: the format has no calls, or calls that a template cannot describe; the message says why.
    """
    wire = get_format(format)
    if not wire.blocks:
        raise DefinitionError(f"the format {wire.name!r} has no calls, so it has no response template")
    fields: dict[str, Any] = {}
    if wire.spans:
        spans = wire.spans
        fields["thinking"] = {
            "open": _one_or_all([span.open for span in spans]),
            "close": _one_or_all([span.close for span in spans]),
            **_TEXT,
        }
    fields["tool_calls"] = _calls(wire, end)
    fields["content"] = {"close": _one_or_all(list(end)), **_TEXT}
    return {"version": _VERSION, "start_anchor": start, "defaults": {"role": "assistant"}, "fields": fields}


def _one_or_all(texts: list[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else list(dict.fromkeys(texts))


@dataclass(slots=True)
class _Parts:
    """A block, taken apart around the arguments of its call.

    Attributes:
        before: the patterns of everything before the arguments, or before the calls if those are one node.
        body: the node that has the arguments; None until it is reached.
        after: the patterns of everything behind them, each with whether it may be missing.
    """

    before: list[str] = field(default_factory=list)
    body: Node | None = None
    after: list[tuple[str, bool]] = field(default_factory=list)

    def add(self, pattern: str, *, optional: bool = False) -> None:
        """Add a pattern on the side of the arguments that was reached."""
        if self.body is None:
            self.before.append(rf"(?:(?:{pattern})\s*)?" if optional else pattern)
        else:
            self.after.append((pattern, optional))

    @property
    def open(self) -> str:
        """The pattern that opens a call."""
        return r"\s*".join(self.before)

    @property
    def needs_close(self) -> bool:
        """True if a marker that is always written ends the call."""
        return any(not optional for _, optional in self.after)

    @property
    def close(self) -> str:
        """The pattern that ends a call; "" if nothing is written behind its arguments.

        One marker has to be there, because a pattern that matches no text would end the call at once. A call that is
        without it ends with the answer.
        """
        if not self.after:
            return ""
        needed = next((at for at, (_, optional) in enumerate(self.after) if not optional), 0)
        patterns = [
            pattern if at == needed else rf"(?:(?:{pattern})\s*)?" if at < needed else rf"(?:\s*(?:{pattern}))?"
            for at, (pattern, _) in enumerate(self.after)
        ]
        return r"\s*".join(patterns[: needed + 1]) + "".join(patterns[needed + 1 :])


_JSON_BODIES = (Args, TokenArgs, JsonCall, PyCalls)
_BEHIND_BRACKET = r"(?<=[}\])]\s*)"
"""JSON that contains a marker in a string does not end there, unless a bracket comes before it."""


def _calls(wire: WireFormat, end: Iterable[str]) -> dict[str, Any]:
    """Return the field for calls of the shape that is written, and of others that differ in their markers alone."""
    first, *more = [parts for block in wire.blocks for parts in _taken_apart(wire, block)]
    alike = [first, *(parts for parts in more if parts.body == first.body and parts.before)]
    if not first.before:
        return _whole_message(wire, first.body)
    opens = list(dict.fromkeys(parts.open for parts in alike))
    closes = list(dict.fromkeys(parts.close for parts in alike if parts.close))
    ahead = _BEHIND_BRACKET if isinstance(first.body, _JSON_BODIES) else ""
    if not any(parts.needs_close for parts in alike) and ahead:
        # The next call, or the end of the answer, ends a call without a closing marker. The pattern looks at it, and
        # leaves it there.
        ends = [*map(re.escape, dict.fromkeys((*end, *END_OF_SEQUENCE))), *opens]
        closes.append(rf"(?=\s*{_any_of(ends).replace('(?P<name>', '(?:')})")
    written = {"open_pattern": _any_of(opens)}
    if closes:
        written["close_pattern"] = ahead + _any_of(closes)
    return {**written, "repeats": True, **_content(wire, first.body)}


def _any_of(patterns: list[str]) -> str:
    return patterns[0] if len(patterns) == 1 else rf"(?:{'|'.join(patterns)})"


def _taken_apart(wire: WireFormat, block: Sequence[Node]) -> Iterator[_Parts]:
    """Yield the shapes of a block that a template can describe, the written one first.

    Raises:
        DefinitionError: that is the first block, and its written shape is not one of them.
    """
    for at, nodes in enumerate(islice(_shapes(block), MAX_SHAPES)):
        parts = _Parts()
        try:
            _collect(wire, nodes, parts, around=False)
        except DefinitionError:
            # Others are shapes that models write by mistake.
            if at == 0 and block is wire.blocks[0]:
                raise
            continue
        yield parts


def _shapes(nodes: Sequence[Node]) -> Iterator[tuple[Node, ...]]:
    """Yield the sequences without alternatives that nodes can be, the written one first."""
    if not nodes:
        yield ()
        return
    node, *rest = nodes
    heads: Iterator[tuple[Node, ...]]
    match node:
        case OneOf(options):
            heads = (shape for option in options for shape in _shapes(option))
        case Many(inner):
            heads = ((replace(node, nodes=shape),) for shape in _shapes(inner))
        case Call(inner):
            heads = ((Call(shape),) for shape in _shapes(inner))
        case _:
            heads = iter([(node,)])
    for head in heads:
        for tail in _shapes(rest):
            yield (*head, *tail)


def _whole_message(wire: WireFormat, body: Node | None) -> dict[str, Any]:
    """Return the field for a call that is the whole message, in a format without markers.

    Raises:
        DefinitionError: the call has no beginning and end that patterns could take away.
    """
    if not isinstance(body, JsonCall) or body.array == "always" or body.keyed or body.text or body.nested:
        raise DefinitionError(f"calls of the format {wire.name!r} have no marker, so nothing would open them")
    name, arguments = (rf"\"(?:{'|'.join(map(re.escape, keys))})\"" for keys in (body.name, body.args))
    return {
        "open_pattern": rf"^\s*\{{\s*{name}\s*:\s*\"(?P<name>[^\"]+)\"\s*,\s*{arguments}\s*:\s*",
        "close_pattern": r"(?<=\}\s*)\}\s*\Z",
        "repeats": True,
        "content": "json",
        **_function("{name}", "{content}"),
    }


def _content(wire: WireFormat, body: Node | None) -> dict[str, Any]:
    """Return how the text of a call is parsed, and the shape that it becomes."""
    match body:
        case JsonCall():  # the name and the arguments are members of the content
            return _json_calls(body)
        case PyCalls(open="[", close="]", method=""):
            # The brackets are part of the text that is parsed, so what opens the field leaves them there.
            return {"repeats": False, "content": "python-call-list", **_function("{name}", "{arguments}", each=True)}
        case Args(element="", until=""):
            return {"content": "json", **_function("{name}", "{content}")}
        case TokenArgs(token):
            quirks = {"unquoted_keys": True, "string_delims": [[token, token]]}
            return {"content": "json", "content_args": quirks, **_function("{name}", "{content}")}
        case Params(nodes):
            pattern = _parameter(wire, nodes)
        case Elements():
            pattern = _element(body)
        case _:
            raise DefinitionError(f"a response template has no parser for the arguments of the format {wire.name!r}")
    return {"content": "xml-inline", "content_args": {"tag_pattern": pattern}, **_function("{name}", "{content}")}


def _function(name: str, arguments: str, *, each: bool = False) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "transform": {"type": "function", "function": {"name": name, "arguments": arguments}},
    }
    return {**shape, "transform_each": True} if each else shape


def _json_calls(node: JsonCall) -> dict[str, Any]:
    if node.keyed or node.text:
        raise DefinitionError("a response template cannot describe calls with the name as the key or arguments as text")
    name, arguments = node.name[0], node.args[0]
    if node.array == "always":
        return {"repeats": False, "content": "json", **_function(f"{{{name}}}", f"{{{arguments}}}", each=True)}
    inner = f"content.{node.inside[0]}" if node.nested and node.inside else "content"
    return {"content": "json", **_function(f"{{{inner}.{name}}}", f"{{{inner}.{arguments}}}")}


def _collect(wire: WireFormat, nodes: Iterable[Node], parts: _Parts, *, around: bool) -> None:
    """Add nodes to the parts.

    Args:
        wire: the format.
        nodes: the nodes.
        parts: what they are added to.
        around: they are around several calls, so that they may be missing at any one of them.

    Raises:
        DefinitionError: a template cannot describe the nodes.
    """
    nodes = tuple(nodes)
    several = next((at for at, node in enumerate(nodes) if isinstance(node, Many)), None)
    for at, node in enumerate(nodes):
        may_miss = around or (several is not None and at != several)
        match node:
            case Many(nodes=inner):
                _collect(wire, inner, parts, around=False)
            case Call(nodes=inner):
                _collect(wire, inner, parts, around=around)
            case OneOf(options):
                _collect(wire, options[0], parts, around=around)
            case AnyOrder(groups):
                for group in groups:
                    _collect(wire, group, parts, around=around)
            case Lit(need=need, written=written):
                # Behind the arguments, a marker that may be forgotten still has to be there: it ends them.
                forgiven = need == "optional" or not written or (need == "forgiven" and parts.body is None)
                parts.add(_spellings(node), optional=may_miss or forgiven)
            case Name():
                prefix = rf"(?:{re.escape(node.prefix)})?" if node.prefix else ""
                parts.add(rf"{prefix}(?P<name>{_NAME}){r':[0-9]+' if node.is_id else ''}")
            case Tag(role="name"):
                parts.add(_tag(node, "name"))
            case Ident() | Server() | Header():  # a response template has no place for what they say
                parts.add(_NAME)
            case Args() | TokenArgs() | KeywordArgs() | JsonCall() | PyCalls() | Params() | Elements():
                parts.body = node
            case _:
                raise DefinitionError(f"a response template has no pattern for the calls of the format {wire.name!r}")


def _spellings(node: Lit) -> str:
    spellings = sorted(node.spellings, key=len, reverse=True)
    pattern = "|".join(map(re.escape, spellings))
    return rf"(?:{pattern})" if len(spellings) > 1 else pattern


def _parameter(wire: WireFormat, nodes: Sequence[Node]) -> str:
    """Return the pattern of a parameter in tags of its own."""
    return r"\s*".join(_parameter_parts(wire, nodes)).replace(rf"\s*{_VALUE}", _VALUE)


def _parameter_parts(wire: WireFormat, nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        match node:
            case Lit():
                pattern = _spellings(node)
                yield pattern if node.need == "required" else rf"(?:{pattern})?"
            case Key():
                yield rf"(?P<key>{_KEY})"
            case Tag():
                yield _tag(node, "key")
            case Mark():
                yield r"[^<>]*?"
            case OneOf(options):
                yield from _parameter_parts(wire, options[0])
            case Value(close=close, newline=newline, cdata=cdata):
                edge = r"\n?" if newline else ""
                value = _cdata("(?P<value>.*?)") if cdata else "(?P<value>.*?)"
                yield rf"{_VALUE}{edge}{value}{edge}{re.escape(close)}"
            case _:
                raise DefinitionError(f"a parameter of the format {wire.name!r} has a part that no pattern describes")


def _tag(node: Tag, group: str) -> str:
    head = rf"{re.escape(node.open + node.name)}\s[^<>]*?{re.escape(node.attribute)}="
    return rf"{head}[\"'](?P<{group}>[^\"'<>]+)[\"'][^<>]*?{re.escape(node.close)}"


def _cdata(value: str) -> str:
    return rf"(?:<!\[CDATA\[)?{value}(?:\]\]>)?"


def _element(node: Elements) -> str:
    """Return the pattern of an element."""
    token = re.escape(node.token)
    value = "(?P<value>.*?)" if node.literal or node.token else _cdata("(?P<value>.*?)")
    if node.tag:
        opening = rf"{token}<{node.tag}\s[^<>]*?name=[\"'](?P<key>[^\"'<>]+)[\"'][^<>]*?>"
        return rf"{opening}{value}{token}</{node.tag}>"
    return rf"{token}<(?P<key>[\w.-]+)(?:\s[^<>]*)?>{value}{token}</(?P=key)>"
