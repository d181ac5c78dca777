"""Teams of agents: each member is a tool of the agent that coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic

from typing_extensions import TypeVar

from toolwire._surface import check_items, check_type
from toolwire.agent.agent import Agent
from toolwire.agent.parent_run import CURRENT_CALL, MAX_DEPTH
from toolwire.agent.prices import check_prices
from toolwire.agent.run_events import MemberEvent, RunEnded
from toolwire.errors import ConfigurationError, DefinitionError, ToolError
from toolwire.tools import TIER, Tier, ToolDefinition

_OutputT_co = TypeVar("_OutputT_co", default=str, covariant=True)


@dataclass(frozen=True, slots=True)
class _OtherAgent:
    """An agent that another agent's model can ask for by a tool."""

    agent: Agent[Any]
    description: str
    tier: Tier = Tier.CRAWL

    def __post_init__(self) -> None:
        """Check the types.

        Raises:
            TypeError: a value is of another type.
        """
        check_type("agent", self.agent, Agent, "an Agent")
        check_type("description", self.description, str, "text")
        check_type("tier", self.tier, Tier, TIER)


@dataclass(frozen=True, slots=True)
class Member(_OtherAgent):
    """An agent that another agent can call.

    Attributes:
        agent: the agent, with a model, format, tools, tier and budget of its own. Its configuration names the tool.
        description: what the agent can do, for the model that calls it.
        tier: the tier that a call of this member requires. What the member itself may do is up to its configuration.
    """

    async def work(self, task: str) -> str:
        """Return the member's answer to a task.

        Raises:
            ToolError: the member has no answer; the error says why.
        """
        name = self.agent.config.name
        parent = CURRENT_CALL.get()
        if parent is not None and parent.depth > MAX_DEPTH:
            raise ToolError(f"{name} was not called: {MAX_DEPTH} members are nested in each other already")
        end: RunEnded | None = None
        run_id, journal = ("", None) if parent is None else (f"{parent.place}.{name}", parent.journal)
        async with aclosing(self.agent.run(task, run_id=run_id, journal=journal, parent=parent)) as events:
            async for event in events:
                if parent is not None:
                    parent.emit(MemberEvent(name, event))
                if isinstance(event, RunEnded):
                    end = event
        assert end is not None
        if not end.good:
            raise ToolError(f"{name} has no answer ({end.reason}): {end.detail or end.answer}")
        return end.answer


@dataclass(frozen=True, slots=True)
class Handoff(_OtherAgent):
    """An agent that continues another agent's conversation.

    The model hands over with the tool `transfer_to_NAME`. From then on the other agent works, with its own system
    prompt, model, tools and policy, and its answer is that of the run.

    Attributes:
        agent: the other agent. Its configuration has the name.
        description: what the agent is for, for the model that hands over.
        tier: the tier that the hand-off requires.
    """

    @property
    def tool(self) -> str:
        """The name of the tool that hands over."""
        return f"transfer_to_{self.agent.config.name}"

    async def accept(self) -> str:
        """Return the result of the call that hands over; the run does the rest."""
        return f"{self.agent.config.name} continues the conversation."


class AgentTeam(Generic[_OutputT_co]):
    """A coordinator, the members that it calls, and the agents to which it hands over.

    A member is called with a task and returns its answer; it sees nothing of the coordinator's conversation. The
    coordinator emits the events of members as `MemberEvent`. What members use counts in its budget at once.

    Untrusted content that one of them has read counts as read by both. A task for a member is written by a model:
    unless the member has a fixed tier, the task unlocks no more than the coordinator has, and no rule takes its words
    for the user's.

    After a hand-off the other agent continues the same conversation in the same run: `AgentChanged` says so, and
    session, approvals and the coordinator's budget stay. A team of that agent decides to whom it can hand on; in one
    run there are at most 8 hand-offs.

    Args:
        coordinator: gets the members as tools, in addition to its own.
        members: the agents that it may call.
        handoffs: the agents to which it may hand the conversation over.

    Raises:
        ConfigurationError: the coordinator's budget limits money, and nobody says what the model of another agent
            costs. Or another agent defers approvals and the coordinator does not, so nobody could resume its run. Or
            the coordinator has an output type, and an agent to which it hands over has another one, or none.
        DefinitionError: two tools have one name; or another agent shares the coordinator's registry, to which the
            tools for members and hand-offs are added; or a hand-off goes to an agent with the coordinator's name.
        TypeError: a value is of another type.
    """

    def __init__(
        self, coordinator: Agent[_OutputT_co], members: Sequence[Member] = (), *, handoffs: Sequence[Handoff] = ()
    ) -> None:
        check_type("coordinator", coordinator, Agent, "an Agent")
        check_items("members", members, Member, "a sequence of Member(agent, description)")
        check_items("handoffs", handoffs, Handoff, "a sequence of Handoff(agent, description)")
        if coordinator.config.budget.money is not None:
            for agent in [*(member.agent for member in members), *(handoff.agent for handoff in handoffs)]:
                # What another agent spends counts in the coordinator's budget, so it has to be counted too.
                check_prices(agent.backend, agent.config.budget.prices, limited=True)
        # All of them are checked before the coordinator is changed by the first.
        for member in members:
            self._check(coordinator, member, member.agent.config.name, "a member")
        for handoff in handoffs:
            self._check(coordinator, handoff, handoff.tool, "a hand-off")
            if handoff.agent.config.name == coordinator.config.name:
                raise DefinitionError(
                    "an agent cannot hand over to its own name: give one of them another AgentConfig(name=...)",
                    tool=handoff.tool,
                )
            output, other = coordinator.output, handoff.agent.output
            if output is not None and (other is None or other.schema != output.schema):
                # `ask` would return a value of another type than type checkers infer.
                name = handoff.agent.config.name
                raise ConfigurationError(f"{name} may give the answer, so it needs the output_type of its coordinator")
        tools: list[tuple[ToolDefinition, Callable[..., Any]]] = []
        tools += [(_member_tool(member), member.work) for member in members]
        tools += [(_handoff_tool(handoff), handoff.accept) for handoff in handoffs]
        for index, (definition, run) in enumerate(tools):
            try:
                # Idempotent: a member's calls are recorded one by one, so one that was stopped continues where it was.
                coordinator.registry.register(definition, run=run, idempotent=True)
            except DefinitionError:
                for earlier, _ in tools[:index]:
                    coordinator.registry.remove(earlier.name)
                raise
        coordinator.members |= {member.agent.config.name: member.agent for member in members}
        coordinator.handoffs |= {handoff.tool: handoff.agent for handoff in handoffs}
        self.coordinator = coordinator
        self.members = tuple(members)
        self.handoffs = tuple(handoffs)
        self.run = coordinator.run
        self.ask = coordinator.ask
        self.run_to_end = coordinator.run_to_end
        self.run_sync = coordinator.run_sync
        self.run_to_end_sync = coordinator.run_to_end_sync
        self.ask_sync = coordinator.ask_sync
        self.stream_text = coordinator.stream_text
        self.stream_text_sync = coordinator.stream_text_sync
        self.resume = coordinator.resume
        self.ask_resumed = coordinator.ask_resumed
        self.resume_sync = coordinator.resume_sync
        self.ask_resumed_sync = coordinator.ask_resumed_sync

    @staticmethod
    def _check(coordinator: Agent[Any], other: _OtherAgent, tool: str, role: str) -> None:
        if not other.description:
            raise DefinitionError(f"{role} needs a description, by which a model can choose it", tool=tool)
        if other.agent.registry is coordinator.registry:
            raise DefinitionError(
                f"{role} needs an agent with a registry of its own: it would be a tool of itself", tool=tool
            )
        if other.agent.defers and not coordinator.defers:
            raise ConfigurationError(f'{other.agent.config.name} has confirm="defer", so its coordinator needs it too')


def _member_tool(member: Member) -> ToolDefinition:
    """Return the tool with which a coordinator calls a member."""
    schema = {
        "type": "object",
        "properties": {"task": {"type": "string", "description": "What to do, with all that has to be known."}},
        "required": ["task"],
        "additionalProperties": False,
    }
    return ToolDefinition(member.agent.config.name, member.description, schema, tier=member.tier)


def _handoff_tool(handoff: Handoff) -> ToolDefinition:
    """Return the tool with which an agent hands the conversation over."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    return ToolDefinition(handoff.tool, handoff.description, schema, tier=handoff.tier)
