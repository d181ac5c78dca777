"""Agents that call one another: a member is a tool of whoever coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from toolwire.agent.agent import Agent
from toolwire.agent.parent_run import CURRENT_CALL, MAX_DEPTH
from toolwire.agent.run_events import MemberEvent, RunEnded
from toolwire.errors import DefinitionError, ToolError
from toolwire.tools import Tier, ToolDefinition


@dataclass(frozen=True, slots=True)
class Member:
    """An agent as others know it.

    Attributes:
        agent: with its own model, format, tools, tier and budget; its name is that of its configuration.
        description: what it is good for, for whoever calls it.
        tier: the tier from which it may be called; what it may do itself is its own configuration's.
    """

    agent: Agent
    description: str
    tier: Tier = Tier.CRAWL

    async def work(self, task: str) -> str:
        """The member's answer to a task.

        Raises:
            ToolError: it has none; it says why.
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

    A member is called with a task and gives back its answer; it sees nothing of the coordinator's conversation. What
    members tell is told by the coordinator as `MemberEvent`, and what they use counts in its budget as they use it.

    Text of strangers that one of them has read, both have. The task is a model's words: unless a member's tier is fixed
    it unlocks no more than the coordinator has, and no rule takes the words for the user's.

    Args:
        coordinator: gets the members as tools, besides its own.
        members: whom it may call.

    Raises:
        DefinitionError: two members have one name, or a tool has it; or a member shares its tools with the coordinator,
            which gets more of them.
        TypeError: a member is none.
    """

    def __init__(self, coordinator: Agent, members: Sequence[Member]) -> None:
        self.coordinator = coordinator
        self.members = tuple(members)
        for member in members:
            if not isinstance(member, Member):
                raise TypeError(f"members are Member(agent, description), not {member!r:.80}")
            name = member.agent.config.name
            if not member.description:
                raise DefinitionError("a member needs a description: nobody knows what to call it for", tool=name)
            if member.agent.registry is coordinator.registry:
                raise DefinitionError("a member needs a registry of its own: it would be a tool of itself", tool=name)
            schema = {
                "type": "object",
                "properties": {"task": {"type": "string", "description": "What to do, with all that has to be known."}},
                "required": ["task"],
                "additionalProperties": False,
            }
            definition = ToolDefinition(name, member.description, schema, tier=member.tier)
            # Its own calls are recorded one by one, so a member that was stopped goes on where it was.
            coordinator.registry.register(definition, run=member.work, idempotent=True)
        self.run = coordinator.run
        self.ask = coordinator.ask
