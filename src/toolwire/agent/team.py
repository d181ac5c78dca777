"""Teams of agents: each member is a tool of the agent that coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from toolwire._surface import check_items, check_type
from toolwire.agent.agent import Agent
from toolwire.agent.parent_run import CURRENT_CALL, MAX_DEPTH
from toolwire.agent.run_events import MemberEvent, RunEnded
from toolwire.errors import DefinitionError, ToolError
from toolwire.tools import TIER, Tier, ToolDefinition


@dataclass(frozen=True, slots=True)
class Member:
    """An agent that another agent can call.

    Attributes:
        agent: the agent, with a model, format, tools, tier and budget of its own. Its configuration names the tool.
        description: what the agent can do, for the model that calls it.
        tier: the tier that a call of this member requires. What the member itself may do is up to its configuration.
    """

    agent: Agent
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


class AgentTeam:
    """A coordinator and its members.

    A member is called with a task and returns its answer; it sees nothing of the coordinator's conversation. The
    coordinator emits the events of members as `MemberEvent`. What members use counts in its budget at once.

    Untrusted content that one of them has read counts as read by both. A task for a member is written by a model:
    unless the member has a fixed tier, the task unlocks no more than the coordinator has, and no rule takes its words
    for the user's.

    Args:
        coordinator: gets the members as tools, in addition to its own.
        members: the agents that it may call.

    Raises:
        DefinitionError: two members have one name, or a tool has it; or a member shares the coordinator's registry,
            to which the members are added.
        TypeError: a member is not a `Member`.
    """

    def __init__(self, coordinator: Agent, members: Sequence[Member]) -> None:
        check_type("coordinator", coordinator, Agent, "an Agent")
        check_items("members", members, Member, "a sequence of Member(agent, description)")
        self.coordinator = coordinator
        self.members = tuple(members)
        for member in members:
            name = member.agent.config.name
            if not member.description:
                raise DefinitionError("a member needs a description, by which a model can choose it", tool=name)
            if member.agent.registry is coordinator.registry:
                raise DefinitionError("a member needs a registry of its own: it would be a tool of itself", tool=name)
            schema = {
                "type": "object",
                "properties": {"task": {"type": "string", "description": "What to do, with all that has to be known."}},
                "required": ["task"],
                "additionalProperties": False,
            }
            definition = ToolDefinition(name, member.description, schema, tier=member.tier)
            # Idempotent: its own calls are recorded one by one, so a member that was stopped continues where it was.
            coordinator.registry.register(definition, run=member.work, idempotent=True)
        self.run = coordinator.run
        self.ask = coordinator.ask
