"""Rules for whole messages: reasoning, prose and calls, in the order and number that the tool choice allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolwire.errors import DefinitionError
from toolwire.grammars.algebra import (
    EMPTY,
    NOTHING,
    Expression,
    Lexeme,
    chars_except,
    choice,
    free_space,
    literal,
    optional,
    prose,
    sequence,
    without_prefix,
    without_prefixes,
)
from toolwire.grammars.format_rules import FormatRules
from toolwire.tools import ToolDefinition
from toolwire.wire.node_markers import first
from toolwire.wire.syntax import Call, Header, Lit, Name, Node, Tag, ToolTag, WireFormat, as_written

_BRACKETS = frozenset("{[")


@dataclass(frozen=True, slots=True)
class MessageRules:
    """The rules of one message.

    Attributes:
        rules: expressions by name.
        calls: a message of calls and nothing else; NOTHING if there are no tools.
        openers: what may follow prose: the marker that begins calls, and the rest of them.
        banned: markers that prose cannot contain, unless they overlap in too many ways.
        parts_of_openers: markers that prose can contain, because an opener contains them.
        closed_start: characters that prose cannot begin with, because a call would begin so.
        reasoning: reasoning before everything else; EMPTY for none.
        prose: text may come instead of calls, and before those that have an opener.
        primed: the end of the prompt, with which the text begins that is read.
    """

    rules: Mapping[str, Expression]
    calls: Expression
    openers: Mapping[str, Expression]
    banned: tuple[str, ...]
    parts_of_openers: tuple[str, ...]
    closed_start: str
    reasoning: Expression
    prose: bool
    primed: str

    @property
    def root(self) -> Expression:
        """The expression of the whole message, without the end of the prompt."""
        if not self.prose:
            return sequence(self.reasoning, self.primed_calls)
        if not self.openers:
            return sequence(self.reasoning, choice([self.primed_calls, self._primed(self.free_text)]))
        # A message is read as one text with the end of the prompt. What the prompt has begun already is taken away from
        # the finished expression, so that a beginning of a marker in the prompt counts.
        text = prose(tuple(self.openers), self.banned)
        if len(self.openers) == 1:
            (rest,) = self.openers.values()
            started = sequence(self._primed(text.until()), rest)
            return sequence(self.reasoning, choice([started, self._primed(self.free_text)]))
        # Each opener has a rest of its own, so they cannot be parts of one lexeme. The text before them is cut where an
        # opener could begin, because a lexer never gives characters back.
        ends = [sequence(Lexeme(text.endings[opener]), rest) for opener, rest in self.openers.items()]
        message = sequence(text.pieces(), choice([*ends, Lexeme(text.rest)]))
        return sequence(self.reasoning, self._primed(message))

    def with_text_after(self, calls: Expression) -> Expression:
        """Return calls that text may follow, which begins with a blank or a letter and contains no further call."""
        if calls == NOTHING:
            return calls
        start = chars_except("<[{(`,;|")
        text = prose(tuple(self.openers), self.banned).text
        return sequence(calls, optional(Lexeme(sequence(start, text))))

    @property
    def openers_with_text_after(self) -> dict[str, Expression]:
        """The openers of calls that text may follow."""
        return {opener: self.with_text_after(rest) for opener, rest in self.openers.items()}

    def permitted_markers(self, *, engine_excludes: bool = False) -> tuple[str, ...]:
        """Return the markers that text may contain, although a reader takes them for the beginning of a call.

        Args:
            engine_excludes: the engine keeps the banned markers out of text, however they overlap.
        """
        if not self.prose:
            return ()
        left_out = () if engine_excludes else prose(tuple(self.openers), self.banned).permitted
        return (*self.parts_of_openers, *left_out)

    @property
    def primed_calls(self) -> Expression:
        """The calls, without the end of the prompt."""
        return self._primed(self.calls)

    def _primed(self, part: Expression) -> Expression:
        """Return what follows the end of the prompt, if the expression can begin with it."""
        rest = without_prefix(part, self.primed, self.rules)
        return part if rest == NOTHING else rest

    @property
    def free_text(self) -> Expression:
        """Text without any call, which may be empty."""
        text = prose(tuple(self.openers), self.banned).text
        if self.closed_start:
            text = sequence(chars_except(self.closed_start), text)
        return optional(Lexeme(text))


def message_rules(
    wire: WireFormat, tools: Sequence[ToolDefinition], *, choice_of: str, parallel: bool, reasoning: str, primed: str
) -> tuple[MessageRules, FormatRules]:
    """Return the rules of a message.

    Args:
        wire: the format.
        tools: the tools that may be called.
        choice_of: "auto", "required" or "none".
        parallel: several calls are possible.
        reasoning: "none", "allowed" before everything else, or "open" if the prompt has started it.
        primed: the end of the prompt, which is part of the text that is read.

    Raises:
        DefinitionError: the format or a tool has no grammar.
    """
    if not wire.blocks:
        raise DefinitionError(f"the format {wire.name!r} has no calls, so it has no grammar")
    reading = FormatRules(wire, tools, parallel=parallel)
    offered = bool(tools) and choice_of != "none"
    calls = reading.calls() if offered else NOTHING
    rules = reading.rules.rules
    if offered and calls == NOTHING:
        raise DefinitionError(f"the format {wire.name!r} cannot write a call of any of these tools")
    certain = _openers(wire, tools)
    openers = without_prefixes(calls, certain, rules) if choice_of == "auto" else {}
    banned = dict.fromkeys(marker for block in wire.blocks for marker in sorted(_block_marker(block)))
    banned |= dict.fromkeys(certain)
    start = _closed_start(wire)
    return (
        MessageRules(
            rules,
            calls,
            openers,
            tuple(mark for mark in banned if not any(mark in opener or mark.startswith(opener) for opener in openers)),
            tuple(mark for mark in banned if any(mark in opener and mark != opener for opener in openers)),
            start,
            _reasoning(wire, reasoning),
            choice_of != "required",
            primed,
        ),
        reading,
    )


def _openers(wire: WireFormat, tools: Iterable[ToolDefinition]) -> list[str]:
    """Return the texts by which the first block begins calls for certain; none where calls have no marker."""
    openers, named = [""], False
    for node, _ in as_written(wire.blocks[0]):
        match node:
            case Lit(text, before=before, after=after, hint=hint):
                written = (before if any(openers) else "") + text
                if named:  # one character ends the name; the rest is not needed
                    return [opener + written[0] for opener in openers]
                openers = [opener + written for opener in openers]
                if not hint:
                    return openers
                openers = [opener + after for opener in openers]
            case Tag():
                return [f"{opener}{node.open}{node.name} " for opener in openers]
            case ToolTag():
                return [f"{opener}<{tool.name}>" for tool in tools for opener in openers]
            case Name(prefix=prefix, after=after):
                openers, named = [f"{opener}{prefix}{tool.name}{after}" for tool in tools for opener in openers], True
                if after:
                    return openers
            case Header():
                openers, named = [opener + tool.name for tool in tools for opener in openers], True
            case _:
                break
    return [opener for opener in openers if opener]


def _block_marker(block: tuple[Node, ...]) -> frozenset[str]:
    """Return the spellings of the marker that a block begins with, if it makes a call for certain."""
    node = block[0].nodes[0] if isinstance(block[0], Call) else block[0]
    return node.spellings if isinstance(node, Lit) and not node.hint else frozenset()


def _closed_start(wire: WireFormat) -> str:
    if wire.markers or wire.at == "anywhere":
        return ""
    begins = frozenset().union(*(first(block)[0] for block in wire.blocks))
    return "{[` \n\t" if begins & _BRACKETS else ""


def _reasoning(wire: WireFormat, mode: str) -> Expression:
    if mode == "none":
        return EMPTY
    if not wire.spans:
        raise DefinitionError(f"the format {wire.name!r} has no reasoning")
    span = wire.spans[0]
    rest = sequence(prose((span.close,)).until(), free_space("\n"))
    return rest if mode == "open" else optional(sequence(literal(span.open), rest))
