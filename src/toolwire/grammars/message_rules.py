"""Rules for whole messages: reasoning, prose and calls, in the order and number that the tool choice allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolwire.errors import DefinitionError
from toolwire.grammars.algebra import (
    EMPTY,
    NOTHING,
    Expression,
    choice,
    free_space,
    literal,
    optional,
    sequence,
    without_prefix,
    without_prefixes,
)
from toolwire.grammars.format_rules import FormatRules
from toolwire.grammars.free_text import FreeText, Opener
from toolwire.grammars.prose import prose
from toolwire.tools import ToolDefinition
from toolwire.wire.node_markers import first
from toolwire.wire.syntax import Header, Lit, Name, Node, PyCalls, Tag, ToolTag, WireFormat, as_written

_BRACKETS = frozenset("{[")


@dataclass(frozen=True, slots=True)
class MessageRules:
    """The rules of one message.

    Attributes:
        rules: expressions by name.
        calls: a message of calls, and of the text behind them if that is allowed; NOTHING if there are no tools.
        text: text without calls, and around them.
        reasoning: reasoning before everything else; EMPTY for none.
        may_skip_reasoning: there may be no reasoning.
        allows_text: text may come instead of calls, and before those that have an opener.
        primed: the end of the prompt, with which the text begins that is read.
    """

    rules: Mapping[str, Expression]
    calls: Expression
    text: FreeText
    reasoning: Expression
    may_skip_reasoning: bool
    allows_text: bool
    primed: str

    @property
    def root(self) -> Expression:
        """The expression of the whole message, without the end of the prompt."""
        if not self.primed:
            return sequence(self.reasoning_or_none, self._message(""))
        if self.reasoning == EMPTY:
            return self._message(self.primed)
        # The reasoning continues the end of the prompt, so that the calls behind it begin anew.
        following = self._message("")
        if not self.may_skip_reasoning:
            return sequence(self.reasoning, following)
        return choice([sequence(self._primed(self.reasoning, self.primed), following), self._message(self.primed)])

    def _message(self, primed: str) -> Expression:
        """Return the message behind reasoning, without what was written before it."""
        if not self.allows_text:
            return self._primed(self.calls, primed)
        if self.text.opener is None or self.calls == NOTHING:
            return choice([self._primed(self.calls, primed), self._primed(self.text.alone(), primed)])
        # A message is read as one text with the end of the prompt. What the prompt has begun already is taken away from
        # the finished expression, so that a beginning of a marker in the prompt counts.
        return self._primed(self.text.before(self.calls), primed)

    @property
    def reasoning_or_none(self) -> Expression:
        """The reasoning, which may be missing if it may be skipped."""
        return optional(self.reasoning) if self.may_skip_reasoning else self.reasoning

    @property
    def openers(self) -> dict[str, Expression]:
        """The rest of calls behind each text by which they begin."""
        if self.text.opener is None or self.calls == NOTHING:
            return {}
        return without_prefixes(self.calls, self.text.opener.texts, self.rules)

    def permitted_markers(self, *, engine_excludes: bool = False) -> tuple[str, ...]:
        """Return the markers that text may contain, although a reader takes them for the beginning of a call.

        Args:
            engine_excludes: the engine keeps the banned markers out of text, however they overlap.
        """
        if not self.allows_text:
            return ()
        return (*self.text.inside_opener, *(() if engine_excludes else self.text.permitted))

    @property
    def primed_calls(self) -> Expression:
        """The calls, without the end of the prompt."""
        return self._primed(self.calls, self.primed)

    def _primed(self, part: Expression, primed: str) -> Expression:
        """Return what follows the end of the prompt, if the expression can begin with it."""
        rest = without_prefix(part, primed, self.rules)
        return part if rest == NOTHING else rest

    @property
    def free_text(self) -> Expression:
        """Text without any call, which may be empty, without the end of the prompt."""
        return self._primed(self.text.alone(), self.primed)


def message_rules(
    wire: WireFormat,
    tools: Sequence[ToolDefinition],
    *,
    choice_of: str,
    parallel: bool,
    reasoning: str,
    primed: str,
    text_after: bool = False,
) -> tuple[MessageRules, FormatRules]:
    """Return the rules of a message.

    Args:
        wire: the format.
        tools: the tools that may be called.
        choice_of: "auto", "required" or "none".
        parallel: several calls are possible.
        reasoning: "none", "allowed" before everything else, or "open" if the prompt has started it.
        primed: the end of the prompt, which is part of the text that is read.
        text_after: text may follow the calls.

    Raises:
        DefinitionError: the format or a tool has no grammar.
    """
    if not wire.blocks:
        raise DefinitionError(f"the format {wire.name!r} has no calls, so it has no grammar")
    opener = _opener(wire, tools)
    # Where names open calls, text may begin as one of them does.
    reading = FormatRules(wire, tools, parallel=parallel, whole_names=opener is not None and bool(opener.names))
    offered = bool(tools) and choice_of != "none"
    calls = reading.calls() if offered else NOTHING
    if offered and calls == NOTHING:
        raise DefinitionError(f"the format {wire.name!r} cannot write a call of any of these tools")
    markers = _call_markers(wire)
    # A lexer takes the longest match: text that may begin as reasoning does would always be longer.
    start = wire.spans[0].open if wire.spans and reasoning == "allowed" else ""
    text = FreeText(opener, markers, _closed_start(wire), reading.rules, reasoning_start=start)
    message = MessageRules(
        reading.rules.rules,
        text.after(calls) if text_after and offered else calls,
        text,
        _reasoning(wire, reasoning, markers),
        reasoning == "allowed",
        choice_of != "required",
        primed,
    )
    return message, reading


def _opener(wire: WireFormat, tools: Iterable[ToolDefinition]) -> Opener | None:
    """Return the text by which the first block begins calls for certain; None where calls have no marker."""
    marker = ""
    names: list[str] = []
    for node, _ in as_written(wire.blocks[0]):
        match node:
            case Lit(text=text, before=before, after=after, hint=hint):
                written = (before if marker else "") + text
                if names:  # one character ends the name; the rest is not needed
                    return Opener(marker, tuple(name + written[0] for name in names))
                if not hint:
                    # A shorter spelling begins a call too, so text has to end at it already.
                    shortest = min((spelling for spelling in node.spellings if text.startswith(spelling)), key=len)
                    return Opener(marker + written.removesuffix(text) + shortest)
                marker += written + after
            case Tag() if not names:
                return Opener(f"{marker}{node.open}{node.name} ")
            case ToolTag():
                return Opener(f"{marker}<", tuple(f"{tool.name}>" for tool in tools))
            case PyCalls(open=bracket) if marker + bracket:
                return Opener(marker + bracket, tuple(f"{tool.name}(" for tool in tools))
            case Name(prefix=prefix, after=after):
                marker += prefix
                names = [tool.name + after for tool in tools]
                if after:
                    break
            case Header():
                names = [tool.name for tool in tools]
            case _:
                break
    return Opener(marker, tuple(names)) if marker else None


def _call_markers(wire: WireFormat) -> tuple[str, ...]:
    """Return the markers by which the blocks of a format may begin, each once."""
    return tuple(dict.fromkeys(marker for block in wire.blocks for marker in sorted(_block_markers(block))))


def _block_markers(block: tuple[Node, ...]) -> set[str]:
    """Return the spellings of the markers that a block may begin with, where they make a call for certain."""
    markers: set[str] = set()
    for node, _ in as_written(block):
        if not isinstance(node, Lit) or node.hint:
            break
        markers |= node.spellings
        if node.need != "optional":  # a model may leave it out, and begin with the next one
            break
    return markers


def _closed_start(wire: WireFormat) -> str:
    if wire.markers or wire.at == "anywhere":
        return ""
    begins = frozenset().union(*(first(block)[0] for block in wire.blocks))
    return "{[` \n\t" if begins & _BRACKETS else ""


def _reasoning(wire: WireFormat, mode: str, markers: tuple[str, ...]) -> Expression:
    if mode == "none":
        return EMPTY
    if not wire.spans:
        raise DefinitionError(f"the format {wire.name!r} has no reasoning")
    span = wire.spans[0]
    # Where a marker of calls inside reasoning begins a call, the call would have no grammar.
    banned = markers if wire.ends_reasoning else ()
    rest = sequence(prose((span.close,), banned).until, free_space("\n"))
    return rest if mode == "open" else sequence(literal(span.open), rest)
