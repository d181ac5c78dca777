"""Recovery from faults of the model: finding them, explaining them to it, and noticing when there are too many.

Nothing here is part of the conversation: an explanation is for the next prompt alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolwire.execution.outcomes import Outcome
from toolwire.messages import FinishReason, ParsedResponse, ToolCall, ToolResult
from toolwire.text.truncate import truncate
from toolwire.wire.content_markers import FENCES

FaultKind = Literal[
    "no_call", "malformed", "missing_name", "unknown_tool", "tool_failed", "invalid_arguments", "truncated", "denied",
    "invalid_output", "too_many_calls",
]  # fmt: skip

OFFENCE = 300
"""Maximum number of characters that are quoted from faulty text."""
MAX_MESSAGE = 3 * OFFENCE
"""Maximum length of the explanation of one fault, in characters."""
PATIENCE = 5
"""Number of successive failures of one kind and tool that end a run."""
WITHOUT = 2
"""Factor by which successive turns with failures of several kinds may be more, before they end a run."""
LONGEST_CYCLE = 8
"""Maximum length of a cycle, in turns."""

NO_CALL = "You called no tool, but this answer has to call one. If there is a tool to finish with, it counts too."
EMPTY = "You wrote nothing. Answer, or call a tool."
ECHO = "You repeated a hint that was meant for you. Answer the question in your own words, or call a tool."
SPLIT = (
    "Your call was cut off because the answer became too long, and it did not run. Do it in several smaller calls: "
    "write or change a part at a time."
)
TOO_MANY = (
    "You made {calls} calls in one answer. Only the first {maximum} count; the others were dropped and did not run. "
    "Make those that are still needed in your next answers."
)
HIDDEN = "A call inside a code fence is only shown and does not run. Write it without the fence if you want it to run."
REPEATED = (
    "You have made the same calls before and got the same results. Doing it again changes nothing: do something else, "
    "or answer with what you know."
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with a turn.

    Attributes:
        kind: kind of the fault.
        tool: name of the tool that it concerns, or "".
        message: explanation for the model.
        reported: whether a result already shows it to the model.
    """

    kind: FaultKind
    tool: str
    message: str
    reported: bool = False


_KINDS: dict[str, FaultKind] = {
    "malformed": "malformed",
    "truncated": "truncated",
    "missing_name": "missing_name",
    "invalid_arguments": "invalid_arguments",
    "unknown_tool": "unknown_tool",
    "no_call": "no_call",
    "hidden_by_fence": "malformed",
}


_SHOWN_BY_EXAMPLE: frozenset[FaultKind] = frozenset(
    ("malformed", "missing_name", "invalid_arguments", "truncated", "unknown_tool", "invalid_output")
)
"""Faults that a correct call of the tool explains."""


def faults_of(
    response: ParsedResponse, *, require_call: bool = False, max_calls: int | None = None, hint: str = ""
) -> list[Fault]:
    """Return the faults of an answer before any call runs: text that could not be parsed, and missing calls.

    Args:
        response: the answer.
        require_call: whether an answer without a call is a fault.
        max_calls: the number of calls above which an answer has too many; None for no maximum.
        hint: the note at the end of the prompt; small models repeat it in place of an answer.
    """
    faults: list[Fault] = []
    broken = [call.name for call in response.incomplete]
    for problem in response.problems:
        kind = _KINDS.get(problem.kind)
        if kind is None:
            # An error of the provider, about which the model can do nothing, or a call that was read all the same.
            continue
        tool = broken.pop(0) if problem.index is not None and broken else ""
        message = problem.message
        if kind == "truncated" and response.finish_reason is FinishReason.LENGTH:
            message = SPLIT
        elif kind == "truncated":
            kind = "malformed"  # not by its length: an opening marker has no closing one
        elif problem.kind == "hidden_by_fence" and problem.raw.lstrip().startswith(FENCES):
            message = HIDDEN  # a call in a result or in somebody else's turn is not one that the model wanted
        faults.append(Fault(kind, tool, message))
    if not faults and response.incomplete and response.finish_reason is FinishReason.LENGTH:
        faults.append(Fault("truncated", response.incomplete[0].name, SPLIT))
    if max_calls is not None and (calls := len(response.all_calls)) > max_calls:
        faults.append(Fault("too_many_calls", "", TOO_MANY.format(calls=calls, maximum=max_calls)))
    if not faults and not response.all_calls:
        if require_call:
            faults.append(Fault("no_call", "", NO_CALL))
        elif (text := response.content.strip()) in ("", hint.strip()):
            faults.append(Fault("no_call", "", ECHO if text else EMPTY))
    return faults


def call_fault(outcome: Outcome) -> Fault | None:
    """Return what is wrong with a call that did not succeed; its result shows it to the model already."""
    name, message = outcome.call.name, outcome.result.text
    if outcome.issue is not None:
        match outcome.issue.kind:
            case "unknown_tool" | "invalid_arguments" as kind:
                return Fault(kind, name, message, reported=True)
            case "not_runnable":
                return Fault("tool_failed", name, message, reported=True)
            case "denied" | "confirmation":
                return Fault("denied", name, message, reported=True)
    return None if outcome.result.success else Fault("tool_failed", name, message, reported=True)


def advice(faults: Iterable[Fault], example: Callable[[str], str]) -> str:
    """Return the explanation for the next prompt; "" if the results of the turn show all faults already.

    Args:
        faults: faults of the turn.
        example: returns a correct call of a tool, as the model should write it; "" if there is none. For the tool "" it
            returns a call of any tool, since a model that called none may not know the format.
    """
    lines: dict[str, None] = {}
    explained, more = set[tuple[str, str]](), 0
    for fault in faults:
        if not fault.reported and (fault.kind, fault.tool) in explained:
            more += 1  # one explanation of each kind is enough
            continue
        if not fault.reported:
            explained.add((fault.kind, fault.tool))
            lines[truncate(fault.message, MAX_MESSAGE)] = None
        broken = fault.kind in _SHOWN_BY_EXAMPLE
        if (fault.tool and broken) or fault.message == NO_CALL:
            rendered = example(fault.tool)
            if rendered and not any(rendered in line for line in lines):
                lines[rendered] = None
    if more:
        lines[f"({more} more of your calls are wrong in the same way.)"] = None
    return "\n\n".join(lines)


@dataclass(slots=True)
class Breaker:
    """Counts successive failures of one kind and tool, whatever their messages are, and successive turns that fail.

    Attributes:
        patience: number of failures of one kind that end a run. Of turns that fail in several ways it takes `WITHOUT`
            times as many.
    """

    patience: int = PATIENCE
    _without: int = 0
    _counts: dict[tuple[FaultKind, str], int] = field(default_factory=dict)

    def turn(self, faults: Sequence[Fault], succeeded: Iterable[str]) -> Fault | None:
        """Count the faults of a turn, and return one that ends the run; None if none does.

        Args:
            faults: faults of the turn; several of one kind and tool count once.
            succeeded: names of tools that succeeded in the turn. If there are any, all counts begin anew.
        """
        if any(succeeded) or not faults:
            self._counts.clear()
            self._without = 0
            return None
        # Unknown tools count as one: a model that invents another name each time fails in the same way.
        now = {(fault.kind, "" if fault.kind == "unknown_tool" else fault.tool): fault for fault in faults}
        for key in [key for key in self._counts if not key[1] and key not in now]:
            del self._counts[key]
        self._without += 1
        tripped: Fault | None = None
        for key, fault in now.items():
            self._counts[key] = count = self._counts.get(key, 0) + 1
            if count >= self.patience and tripped is None:
                tripped = fault
        if tripped is None and self._without >= WITHOUT * self.patience:
            return faults[0]
        return tripped


@dataclass(slots=True)
class Repeats:
    """Notices turns that repeat in a cycle: the same calls with the same results."""

    _turns: list[str] = field(default_factory=list)
    _warned: bool = False

    def turn(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> Literal["", "warn", "end"]:
        """Add a turn, and return whether the model must be warned or the run must end; "" if neither."""
        if not calls:
            return ""
        contents = [(call.fingerprint, result.text, result.error) for call, result in zip(calls, results, strict=True)]
        self._turns.append(hashlib.sha256(json.dumps(contents).encode()).hexdigest())
        if not self._cycles():
            self._warned = self._warned and len(set(self._turns[-LONGEST_CYCLE:])) < LONGEST_CYCLE
            return ""
        if self._warned:
            return "end"
        self._warned = True
        return "warn"

    def _cycles(self) -> bool:
        turns = self._turns
        return any(
            len(turns) >= 2 * period and turns[-period:] == turns[-2 * period : -period]
            for period in range(1, LONGEST_CYCLE + 1)
        )
