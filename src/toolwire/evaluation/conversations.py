"""Conversations of several turns with simulated services, and what a right one comes to.

The rules are those of the leaderboard's checker: after each turn the services of the answer must have the state that
the right calls give them, and everything that the right calls returned must have been returned to the model by then.
Other calls are allowed, if they change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolwire.evaluation.call_scoring import CallFault
from toolwire.messages import Message
from toolwire.tools import ToolDefinition

MAX_STEPS = 20
"""Maximum number of answers with calls in one turn; with one more the conversation ends, and it is wrong."""
NamedArguments = tuple[str, Mapping[str, Any]]
"""The name of a tool, and the arguments of a call."""


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A turn of the user.

    Attributes:
        messages: the messages that begin it.
        tools: the tools that are offered from this turn on, in addition to those before.
        right_calls: calls that do what the user wants; none if the model lacks a tool or a detail for it.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    right_calls: tuple[NamedArguments, ...]


@dataclass(frozen=True, slots=True)
class ScriptedConversation:
    """A conversation in which the model's calls run.

    Attributes:
        services: the names of the services.
        setups: the state in which each begins, by its name.
        turns: the turns.
        long_context: whether the services contain much text that is not needed.
    """

    services: tuple[str, ...]
    setups: Mapping[str, Any] = field(repr=False)
    turns: tuple[ConversationTurn, ...]
    long_context: bool = False


class SimulatedServices(Protocol):
    """The services of one conversation, in the state that the calls so far gave them."""

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a call; return its result, or its error in words."""
        ...

    def state(self) -> Mapping[str, Any]:
        """Return the state of each service by its name, as values that can be compared."""
        ...


Steps = Sequence[Sequence[NamedArguments]]
"""The calls of one turn: those of each answer of the model."""


def conversation_fault(
    conversation: ScriptedConversation,
    turns: Sequence[Steps],
    services: SimulatedServices,
    right_services: SimulatedServices,
) -> CallFault | None:
    """Return the reason why a conversation is not right; None if it is.

    Args:
        conversation: the conversation.
        turns: the calls that the model made, by turn and answer.
        services: fresh services, for the model's calls.
        right_services: fresh services, for the right calls.
    """
    if len(turns) != len(conversation.turns):
        return CallFault("call_count", f"it made calls in more than {MAX_STEPS} answers of turn {len(turns)}")
    returned: Counter[str] = Counter()
    for number, (turn, steps) in enumerate(zip(conversation.turns, turns, strict=True), 1):
        calls = [call for step in steps for call in step]
        returned.update(services.run(name, arguments) for name, arguments in calls)
        right_results = [right_services.run(name, arguments) for name, arguments in turn.right_calls]
        if not turn.right_calls:
            continue
        if not calls:
            return CallFault("no_call", f"it calls no tool in turn {number}")
        for name, difference in _differences(services.state(), right_services.state()):
            return CallFault(
                "state", f"after turn {number}, {name} of its calls is not that of the right ones: {difference}"
            )
        if missing := Counter(right_results) - returned:
            return CallFault("result", f"up to turn {number}, no call returned {next(iter(missing))!r:.200}")
    return None


def _differences(state: Mapping[str, Any], right_state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the paths of values that differ, with the two values."""
    for service, right_values in right_state.items():
        for name, right_value in right_values.items():
            if (value := state[service][name]) != right_value:
                yield f"{service}.{name}", f"{value!r:.100} and not {right_value!r:.100}"
