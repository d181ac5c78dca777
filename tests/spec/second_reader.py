"""A second reader of the exported descriptions of wire formats, which does only what `spec/README.md` says.

It is slow and simple: it takes whole texts, tries every way in which nodes can match, and repairs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.spec.second_literals import firsts
from tests.spec.second_nodes import Call, Node, NodeMatcher, State

VERSION = 1


@dataclass
class Reading:
    """Everything that was read in a text."""

    calls: list[Call] = field(default_factory=list)
    content: str = ""
    reasoning: str = ""


def read(document: dict[str, Any], name: str, text: str, tools: list[Any], **options: Any) -> Reading:
    """Read a text in one of the document's formats."""
    if document["version"] != VERSION:
        raise ValueError("unknown version")
    wire = next(wire for wire in document["formats"] if name == wire["name"] or name in wire["aliases"])
    functions = [tool.get("function", tool) for tool in tools]
    schemas = {function["name"]: function.get("parameters") or {} for function in functions}
    return MessageReader(wire, _shared_blocks(wire, document["formats"]), document["end_of_sequence"], schemas).read(
        text, **options
    )


def _opener(block: list[Node]) -> set[str]:
    """Return the spellings of the wrapper's opening marker that a block begins with."""
    first = block[0]
    if first["node"] != "Lit" or first["hint"] or first["prose"] or first["text"].startswith("```"):
        return set()
    return {first["text"], *first["also"]}


def _shared_blocks(wire: dict[str, Any], formats: list[dict[str, Any]]) -> list[list[Node]]:
    """Return the blocks that other formats write in the wrappers of this one, if they begin in another way."""
    shared: list[list[Node]] = []
    unwrapped: list[list[Node]] = []
    siblings = [other for other in formats if other["markers"] and other["detected"] and not other["strict"]]
    for block in [block for other in siblings if other is not wire and not wire["strict"] for block in other["blocks"]]:
        own = [mine for mine in wire["blocks"] if _opener(block) & _opener(mine)]
        read_before = set().union(*(_beginnings(mine) for mine in [*own, *shared]))
        if own and not _beginnings(block) <= read_before:
            spellings = sorted(_opener(block) & set().union(*map(_opener, own)))
            shared.append([{**block[0], "text": spellings[0], "also": spellings[1:], "need": "required"}, *block[1:]])
        if own and block[0]["need"] == "optional" and "" not in _beginnings(block):
            unwrapped.append(block[1:])
    return [*shared, *unwrapped]


def _beginnings(block: list[Node]) -> set[str]:
    """Return the texts that can follow the wrapper's opening marker; "" stands for a word."""
    return set(firsts(block[1:2])) or {""}


class MessageReader(NodeMatcher):
    """A message: reasoning, blocks of calls, tokens that are dropped, and content."""

    def __init__(
        self, wire: dict[str, Any], shared: list[list[Node]], end_tokens: list[str], schemas: dict[str, Any]
    ) -> None:
        super().__init__(wire, schemas)
        self.shared = shared
        self.end_tokens = end_tokens
        self.reading = Reading()

    def read(self, text: str, *, reasoning_started: bool = False, primed: str | None = None) -> Reading:
        start = self.wire["primed"] if primed is None else primed
        self.text = start + text
        self.tail = self._tail()
        at = 0
        fence = ""
        if reasoning_started:
            closers = [span["close"] for span in self.wire["spans"]]
            at = self._reasoning(closers, len(start))
        while at < len(self.text):
            if not fence and (step := self._step(at)) is not None:
                at = step
                continue
            if not fence and any(self.starts(marker, at) for marker in self.wire["stop"]):
                self.reading.content += self.text[at:]
                break
            end = at + 1
            if self.wire["fences"]:
                fence, end = self._fence(at, fence)
            self.reading.content += self.text[max(at, len(start)) : end]
            at = end
        return self.reading

    def _tail(self) -> int:
        """Return where nothing follows but white space and tokens that end a sequence."""
        bare = self.text.rstrip()
        while token := next((token for token in self.end_tokens if bare.endswith(token)), ""):
            bare = bare[: -len(token)].rstrip()
        return len(bare)

    def _step(self, at: int) -> int | None:
        """Read what begins here, the longest marker first; return its end, or None for content."""
        choices: list[tuple[int, int, Any]] = []
        untouched = not self.reading.content.strip()
        for span in self.wire["spans"]:
            if self.starts(span["open"], at):
                choices.append((-len(span["open"]), 0, span))
            if untouched and self.starts(span["close"], at):
                choices.append((-len(span["close"]), 3, span["close"]))
        for block in self.wire["blocks"]:
            lengths = [len(marker) for marker in firsts(block) if self.starts(marker, at)]
            choices.append((-max(lengths, default=0), 1, block))
        choices += [(0, 4, block) for block in self.shared]
        choices += [(-len(token), 2, token) for token in self.wire["drop"] if self.starts(token, at)]
        if at >= self.tail:
            choices += [(0, 5, token) for token in self.end_tokens if self.starts(token, at)]
        for _, kind, choice in sorted(choices, key=lambda item: item[:2]):
            if kind == 0:
                return self._reasoning([choice["close"]], at + len(choice["open"]))
            if kind in (2, 3, 5):
                return at + len(choice)
            if (end := self._block(choice, at, shared=kind == 4)) is not None:
                return end
        return None

    def _block(self, block: list[Node], at: int, *, shared: bool = False) -> int | None:
        if self.text[at].isspace() or (self._at_start_only(block) and self.reading.content.strip()):
            return None
        unmarked = block[0]["node"] in ("JsonCall", "PyCalls") or (shared and "" in _beginnings(block))
        self.openings = firsts(block)
        self.only_known = unmarked or not self.wire["markers"]
        for state in self.match([*block, {"node": "EndBlock"}], State(at)):
            pseudo = [call for call in state.calls if call.name in self.wire["pseudo"]]
            calls = [call for call in state.calls if call not in pseudo]
            if not calls and any(call.arguments for call in pseudo):
                return None
            self.reading.calls += calls
            return self._repeated_closers(block, state.at)
        return None

    def _repeated_closers(self, block: list[Node], at: int) -> int:
        last = block[-1]
        while last["node"] == "Call":
            last = last["nodes"][-1]
        closers = [last["text"], *last["also"]] if last["node"] == "Lit" else []
        while closer := next((text for text in closers if self.starts(text, self.skip_space(at))), None):
            at = self.skip_space(at) + len(closer)
        return at

    def _at_start_only(self, block: list[Node]) -> bool:
        first = block[0]
        bare = first["node"] in ("JsonCall", "PyCalls")
        fenced = first["node"] == "Lit" and first["text"].startswith("```")
        return {"anywhere": False, "start": True, "mixed": bare, "markers": bare or fenced}[self.wire["at"]]

    def _reasoning(self, closers: list[str], at: int) -> int:
        while at < len(self.text):
            if closer := next((closer for closer in closers if self.starts(closer, at)), ""):
                return at + len(closer)
            if self.wire["ends_reasoning"]:
                for block in self.wire["blocks"]:
                    if (end := self._block(block, at)) is not None:
                        return end
            self.reading.reasoning += self.text[at]
            at += 1
        return at

    def _fence(self, at: int, fence: str) -> tuple[str, int]:
        """Return the fence that is open behind a place, and the end of what is certain to be content.

        A fence opens and closes where a line begins. Backticks that are closed in their line hide what is between.
        """
        line_start = self.text.rfind("\n", 0, at) + 1
        line = self.text[at:].partition("\n")[0]
        match = re.match(r"`{3,}|~{3,}", line)
        if match is None or self.text[line_start:at].strip():
            return fence, at + 1
        run = match.group()
        if fence:
            closes = run.startswith(fence) and not line[match.end() :].strip()
            return "" if closes else fence, at + len(run)
        if run[0] == "`" and "`" in line[len(run) :]:
            closed = line.find(run, len(run))
            return "", at + (closed + len(run) if closed > 0 else len(run))
        return run, at + len(run)
