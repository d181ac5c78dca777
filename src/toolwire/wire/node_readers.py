"""The reading of each kind of node: a generator per kind, which asks for leaves and builds the calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolwire.schema.kinds import TYPE_NAMES
from toolwire.wire.block_reader import BlockReader, Control, Reading
from toolwire.wire.call_builder import Unreadable
from toolwire.wire.compiled_format import Step
from toolwire.wire.content_markers import FENCES
from toolwire.wire.json_calls import escaped_args, json_calls, only_args, token_args
from toolwire.wire.leaf_scanners import NextMarker, RemainingText
from toolwire.wire.marker_sets import marker_set
from toolwire.wire.parameters import elements, params, token_elements
from toolwire.wire.python_calls import keyword_args, python_calls
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
)
from toolwire.wire.tool_tag_readers import tool_body, tool_tag
from toolwire.wire.xml_scanners import Attributes


class NodeReader(BlockReader):
    """A block reader that reads every kind of node."""

    def node(self, step: Step) -> Reading:
        """Read one node."""
        node = step.node
        return READERS[type(node)](self, step, node)

    # -- markers and names ---------------------------------------------------------------------------------------

    def _lit(self, step: Step, node: Lit) -> Reading:
        if self.closed:  # this marker, or one after it
            self.closed = "" if self.closed in step.first else self.closed
            return ()
        marker = self.marker_here(step.first_set)
        if not marker or node.repeats:
            return self._lit_in_pieces(step, node, marker)
        self._take_lit(node, marker)
        return ()

    def _take_lit(self, node: Lit, marker: str) -> None:
        """Note that a literal was read."""
        self.committed = self.committed or not node.hint
        if marker.startswith(FENCES):
            self.fence = "" if self.fence else marker[:3]

    def _lit_in_pieces(self, step: Step, node: Lit, marker: str | None) -> Control:
        """Read a literal that is repeated, missing, or not certain yet; `marker` is as `marker_here` returned it."""
        cut = False
        if marker is None:
            marker, cut = yield from self.marker(step.first_set)
        if marker:
            self._take_lit(node, marker)
            while node.repeats and (yield from self.marker(step.first_set))[0]:
                pass
        elif self.call is not None and self.call.payload:
            # After a complete call everything is wrapper, and a wrapper that is missing takes no call away.
            # A closer without its opener is still markup, but its absence is not worth a repair.
            if node.need != "optional" and not (self.unwrapped and step.ends_block):
                self.missing_close()
            # A text that is cut inside the marker ends with half of it, which is markup too.
            if cut:
                yield RemainingText()
        elif cut and (node.need == "required" or self.call is not None):
            yield from self.cut_here()
        elif step.ends_call and node.need == "required":
            yield from self._unclosed(step, node)
        elif node.need == "required":
            raise Unreadable(f"{node.text} is missing")
        elif self.call is None:
            self.unwrapped = True
        elif node.need == "forgiven":
            # The marker is the call's own closer. Without it only what follows the call shows that it is over.
            following = NextMarker(step.follow_set, consume=False)
            if not (yield following):
                if following.cut:
                    yield from self.cut_here()
                raise Unreadable(f"{node.text} is missing")
            self.call.record_repair("missing_close", f"{node.text} is missing")

    def _unclosed(self, step: Step, node: Lit) -> Control:
        """End a call whose closing marker is missing, if the end of its wrapper or another call comes next."""
        call = self.building()
        following = NextMarker(marker_set(step.around.beyond, self.state.wire.nocase), consume=False)
        follows = yield following
        if following.cut:
            yield from self.cut_here()
        # A name alone may be prose, unless it is the name of a tool.
        if not follows or not (call.has_arguments or call.name in self.state.options.tools):
            raise Unreadable(f"{node.text} is missing")
        call.record_repair("missing_close", f"{node.text} is missing")

    def _tag(self, step: Step, node: Tag) -> Control:
        yield from self.expect(step.first_set, f"the tag <{node.name} {node.attribute}=...> is missing")
        self.committed = True
        leaf = Attributes(node.close, nocase=self.state.wire.nocase)
        if not self.is_done_here(leaf):
            yield leaf
        attributes, self.tag_closed = leaf.value
        value = attributes.get(node.attribute)
        if value is None:
            raise Unreadable(f"the attribute {node.attribute!r} of <{node.name}> is missing")
        value = value.strip()
        written = attributes.get(node.mark.attribute) if node.mark is not None else None
        is_raw = _is_raw(node.mark, written) if node.mark is not None and written is not None else None
        meaningful = {node.attribute, "id"}
        if node.mark is not None and is_raw is not None:
            meaningful.add(node.mark.attribute)
        if attributes.get(node.counted, "").isdecimal():
            meaningful.add(node.counted)
        self.building().members.update((key, item) for key, item in attributes.items() if key not in meaningful)
        if node.role == "key":
            self.parameter = value
            self.mark = is_raw
            return
        call = self.building()
        if "id" in attributes:
            call.id = attributes["id"]
        self.set_name(call, value)

    def _name(self, _: Step, node: Name) -> Control:
        text = yield from self.word("the name of the tool", "missing_name", phrase=node.phrase)
        # Before the bracket of a tag, a slash means that the tag closes itself.
        if node.phrase and text.endswith("/"):
            text = text[:-1].rstrip()
            self.tag_closed = True
        call = self.building()
        name = text.removeprefix(node.prefix)
        if node.is_id:
            head, colon, number = name.rpartition(":")
            # A mere index is the end of an id whose name the model left out.
            name = head if colon and number.isdecimal() else "" if name.isdecimal() else name
            call.id = text
        if node.known and not self.state.known_tool(name):
            raise Unreadable(f"{name[:60]!r} is not a known tool")
        self.set_name(call, name)

    def _key(self, step: Step, node: Key) -> Control:
        stops = step.follow_set if node.free else None
        written = yield from self.word("the name of a parameter", phrase=node.phrase, stops=stops)
        # `<parameter="city">`: no schema has quotes around the name of a parameter.
        bare = written[1:-1] if written[0] in "\"'" and written[-1] == written[0] else written
        self.parameter = bare if bare in self.building().shape.property_names else written
        self.mark = None

    def _mark(self, _: Step, node: Mark) -> Control:
        written = yield from self.word("the type of a parameter")
        self.mark = _is_raw(node, written)
        if self.mark is None:
            self.building().members[written] = ""

    def _header(self, _: Step, node: Header) -> Control:
        yield from self.word("the name in the header")

    def _ident(self, _: Step, node: Ident) -> Control:
        self.building().id = yield from self.word("the id of the call")

    def _server(self, _: Step, node: Server) -> Control:
        self.building().server = yield from self.word("the name of the server")

    # -- nodes that contain others -------------------------------------------------------------------------------

    def _many(self, step: Step, _: Many) -> Control:
        any_read = False
        while True:
            marker, cut = yield from self.marker(step.either_set, consume=False)
            if marker and marker in step.first:
                yield from self.sequence(step.groups[0])
                any_read = True
                if self.closed:
                    return
                continue
            if any_read:
                return
            if marker:
                self.empty = True
                return
            if cut:
                yield from self.cut_here()
            raise Unreadable("a tool call should begin here")

    def _one_of(self, step: Step, _: OneOf) -> Control:
        marker, cut = yield from self.marker(step.first_set, consume=False)
        for group, begins in zip(step.groups, step.group_firsts, strict=True):
            if marker in begins:
                if cut:
                    yield from self.cut_here()
                yield from self.sequence(group)
                return
        if cut:
            yield from self.cut_here()
        if step.empty_group is None:
            raise Unreadable("what follows is not a tool call")
        yield from self.sequence(step.groups[step.empty_group])

    def _any_order(self, step: Step, _: AnyOrder) -> Control:
        read: set[int] = set()
        while True:
            marker, cut = yield from self.marker(step.either_set, consume=False)
            if cut:
                yield from self.cut_here()
            at = next((i for i, begins in enumerate(step.group_firsts) if marker in begins and i not in read), None)
            if at is None:
                if not marker and not read:
                    raise Unreadable(f"{' or '.join(sorted(step.first))} should begin here")
                return
            read.add(at)
            yield from self.sequence(step.groups[at])

    def _one_call(self, step: Step, _: Call) -> Control:
        call = self.begin_call()
        self.tag_closed = False
        self.late.clear()
        for inner in step.groups[0]:
            yield from self.node(inner)
            if self.tag_closed and not isinstance(inner.node, Name):  # the tag's bracket follows the name
                break
        if not call.name:
            raise Unreadable("the name of the tool is missing", "missing_name")
        self.announce(call)
        call.use_waiting_arguments()
        # The name types the arguments, so elements that came before it are only read now.
        for read_elements in self.late:
            read_elements()
        call.use_members()
        call.complete_payload()


READERS: Mapping[type[Node], Callable[[NodeReader, Step, Any], Reading]] = {
    Lit: NodeReader._lit,
    Tag: NodeReader._tag,
    Name: NodeReader._name,
    Header: NodeReader._header,
    Ident: NodeReader._ident,
    Server: NodeReader._server,
    Key: NodeReader._key,
    Mark: NodeReader._mark,
    Params: lambda reader, step, _: params(reader, step),
    Elements: lambda reader, step, node: (token_elements if node.token else elements)(reader, step, node),
    Args: lambda reader, step, node: (
        escaped_args(reader, step, node) if node.element else only_args(reader, node, step.around.openers)
    ),
    TokenArgs: lambda reader, _, node: token_args(reader, node),
    KeywordArgs: lambda reader, _, node: keyword_args(reader),
    JsonCall: json_calls,
    PyCalls: python_calls,
    ToolTag: lambda reader, _, node: tool_tag(reader),
    ToolBody: lambda reader, _, node: tool_body(reader, node),
    Many: NodeReader._many,
    OneOf: NodeReader._one_of,
    AnyOrder: NodeReader._any_order,
    Call: NodeReader._one_call,
}
"""The reader of each kind of node, but of values, which are read with the parameters that they belong to."""


def _is_raw(mark: Mark, written: str) -> bool | None:
    """Return whether a mark says that a value is raw text; None if it says nothing, as no such mark is known."""
    if mark.flag:
        return {"true": True, "false": False}.get(written.lower())
    kind = TYPE_NAMES.get(written.lower())
    return None if kind is None else kind == "string"
