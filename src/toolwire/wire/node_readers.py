"""The reading of each kind of node: a generator per kind, which asks for leaves and builds the calls."""

from __future__ import annotations

from typing import assert_never

from toolwire.wire.block_reader import BlockReader, Control
from toolwire.wire.call_builder import Unreadable
from toolwire.wire.compiled_format import Step
from toolwire.wire.json_calls import escaped_args, json_calls, only_args, token_args
from toolwire.wire.leaf_scanners import NextMarker
from toolwire.wire.parameters import elements, params, token_elements
from toolwire.wire.python_calls import python_calls
from toolwire.wire.syntax import (
    AnyOrder,
    Args,
    Call,
    Elements,
    Header,
    Ident,
    JsonCall,
    Key,
    Lit,
    Many,
    Mark,
    Name,
    OneOf,
    Params,
    PyCalls,
    Server,
    Tag,
    TokenArgs,
    Value,
)
from toolwire.wire.xml_scanners import Attributes


class NodeReader(BlockReader):
    """A block reader that reads every kind of node."""

    def node(self, step: Step) -> Control:
        """Read one node."""
        node = step.node
        match node:
            case Lit():
                return self._lit(step, node)
            case Params():
                return params(self, step)
            case Elements():
                return token_elements(self, step, node) if node.token else elements(self, step, node)
            case Args():
                return escaped_args(self, step, node) if node.element else only_args(self)
            case TokenArgs():
                return token_args(self, node)
            case JsonCall():
                return json_calls(self, step, node)
            case PyCalls():
                return python_calls(self, step, node)
            case Many():
                return self._many(step)
            case OneOf():
                return self._one_of(step)
            case AnyOrder():
                return self._any_order(step)
            case Call():
                return self._one_call(step)
            case _:
                return self._header_part(step, node)

    def _header_part(self, step: Step, node: Tag | Name | Header | Ident | Server | Key | Mark | Value) -> Control:
        """Read one part of the header of a call or of a parameter."""
        match node:
            case Tag():
                return self._tag(step, node)
            case Name():
                return self._name(node)
            case Header():
                return self._header()
            case Ident():
                return self._ident()
            case Server():
                return self._server()
            case Key():
                return self._key(step, node)
            case Mark():
                return self._mark(node)
            case Value():
                raise AssertionError("a value outside parameters")
            case _:
                assert_never(node)

    # -- markers and names ---------------------------------------------------------------------------------------

    def _lit(self, step: Step, node: Lit) -> Control:
        leaf = NextMarker(step.first_set)
        marker = yield leaf
        if marker:
            self.committed = self.committed or not node.hint
            while node.repeats and (yield NextMarker(step.first_set)):
                pass
        elif self.call is not None and self.call.payload:
            # After a complete call everything is wrapper, and a wrapper that is missing takes no call away.
            if node.need != "optional":
                self.missing_close()
        elif leaf.cut and (node.need == "required" or self.call is not None):
            yield from self.cut_here()
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

    def _tag(self, step: Step, node: Tag) -> Control:
        yield from self.expect(step.first_set, f"the tag <{node.name} {node.attribute}=...> is missing")
        self.committed = True
        attributes, self.tag_closed = yield Attributes(node.close, nocase=self.state.wire.nocase)
        value = attributes.get(node.attribute)
        if value is None:
            raise Unreadable(f"the attribute {node.attribute!r} of <{node.name}> is missing")
        if node.role == "key":
            self.parameter = value
            written = attributes.get(node.mark.attribute) if node.mark is not None else None
            self.mark = None if node.mark is None or written is None else node.mark.raw(written)
            return
        call = self.building()
        if "id" in attributes:
            call.id = attributes["id"]
        self.set_name(call, value)

    def _name(self, node: Name) -> Control:
        text = yield from self.word("the name of the tool", "missing_name", phrase=node.phrase)
        call = self.building()
        name = text.removeprefix(node.prefix)
        if node.is_id:
            head, colon, number = name.rpartition(":")
            name = head if colon and number.isdecimal() else name
            call.id = text
        self.set_name(call, name)

    def _key(self, step: Step, node: Key) -> Control:
        stops = step.follow_set if node.free else None
        self.parameter = yield from self.word("the name of a parameter", phrase=node.phrase, stops=stops)
        self.mark = None

    def _mark(self, node: Mark) -> Control:
        self.mark = node.raw((yield from self.word("the type of a parameter")))

    def _header(self) -> Control:
        yield from self.word("the name in the header")

    def _ident(self) -> Control:
        self.building().id = yield from self.word("the id of the call")

    def _server(self) -> Control:
        self.building().server = yield from self.word("the name of the server")

    # -- nodes that contain others -------------------------------------------------------------------------------

    def _many(self, step: Step) -> Control:
        count = 0
        while True:
            leaf = NextMarker(step.either_set, consume=False)
            marker = yield leaf
            if marker and marker in step.first:
                yield from self.sequence(step.groups[0])
                count += 1
                continue
            if count:
                return
            if marker:
                self.empty = True
                return
            if leaf.cut:
                yield from self.cut_here()
            raise Unreadable("a tool call should begin here")

    def _one_of(self, step: Step) -> Control:
        leaf = NextMarker(step.first_set, consume=False)
        marker = yield leaf
        for group, begins in zip(step.groups, step.group_firsts, strict=True):
            if marker in begins:
                if leaf.cut:
                    yield from self.cut_here()
                yield from self.sequence(group)
                return
        if leaf.cut:
            yield from self.cut_here()
        if step.empty_group is None:
            raise Unreadable("what follows is not a tool call")
        yield from self.sequence(step.groups[step.empty_group])

    def _any_order(self, step: Step) -> Control:
        read: set[int] = set()
        while True:
            leaf = NextMarker(step.either_set, consume=False)
            marker = yield leaf
            if leaf.cut:
                yield from self.cut_here()
            at = next((i for i, begins in enumerate(step.group_firsts) if marker in begins and i not in read), None)
            if at is None:
                if not marker and not read:
                    raise Unreadable(f"{' or '.join(sorted(step.first))} should begin here")
                return
            read.add(at)
            yield from self.sequence(step.groups[at])

    def _one_call(self, step: Step) -> Control:
        call = self.begin_call()
        self.tag_closed = False
        self.late.clear()
        for inner in step.groups[0]:
            yield from self.node(inner)
            if self.tag_closed:
                break
        if not call.name:
            raise Unreadable("the name of the tool is missing", "missing_name")
        self.announce(call)
        call.use_waiting_arguments()
        # The name types the arguments, so elements that came before it are only read now.
        for read_elements in self.late:
            read_elements()
        call.complete_payload()
