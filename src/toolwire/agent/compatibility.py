"""Whether an agent is the one that a run began with: the same model, format and tools, told the same; members likewise.

A coach chooses formats anew in each turn, and a recorded answer says in which one it was written: that there is a coach
matters, and not what it has learned since.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from toolwire.agent.agent import Agent
from toolwire.agent.team import Member
from toolwire.config.tables import COACH
from toolwire.messages import digest
from toolwire.policy.fingerprint import definition_hash
from toolwire.policy.intent import TierGate
from toolwire.telemetry.coached_backend import CoachedBackend

MAY_CHANGE: Final = frozenset({"name", "budget", "silence", "answer_seconds"})
"""Settings of an agent that its runs do not depend on; by its name it is found."""


def configuration(agent: Agent) -> dict[str, Any]:
    """What an agent is, as far as its runs depend on it; budgets may change, and so may the code of its tools."""
    return _configuration(agent, ())


def _configuration(agent: Agent, within: tuple[Agent, ...]) -> dict[str, Any]:
    config, backend, within = agent.config, agent.backend, (*within, agent)
    coached = isinstance(backend, CoachedBackend)
    settings = {field.name: getattr(config, field.name) for field in fields(config) if field.name not in MAY_CHANGE}
    hooks = settings.pop("hooks")
    settings["hooks"] = [[_kind(hook) for hook in getattr(hooks, field.name)] for field in fields(hooks)]
    gate: TierGate = settings.pop("gate")
    if config.tier is None:  # else no gate is asked
        settings["gate"] = [int(gate.max_tier), int(gate.min_tier), gate.sticky, _kind(gate.detect)]
    members = {
        name: _configuration(member.agent, within)
        for name, member in _members(agent).items()
        if member.agent not in within
    }
    return {
        "model": backend.model,
        "api": "" if coached else backend.api,
        "format": COACH if coached else backend.format,
        "settings": {name: digest(value) for name, value in settings.items()},
        "tools": {
            definition.name: definition_hash(definition) for definition in agent.registry.definitions(hidden=True)
        },
        **({"members": members} if members else {}),
    }


def _members(agent: Agent) -> dict[str, Member]:
    members = {}
    for definition in agent.registry.definitions(hidden=True, servers=[""]):
        owner = getattr(agent.registry.lookup(definition.name).run, "__self__", None)
        if isinstance(owner, Member):
            members[definition.name] = owner
    return members


def _kind(step: object) -> str:
    """The name of a function, or of the class of what can be called."""
    return str(getattr(step, "__qualname__", type(step).__qualname__))


def changes(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """In which ways an agent is another one, in words."""
    differences = [
        f"the {name} was {was.get(name)!r} and is {now.get(name)!r}"
        for name in ("model", "api", "format")
        if was.get(name) != now.get(name)
    ]
    for name in ("settings", "tools", "members"):
        if not isinstance(was.get(name, {}), dict):  # by another version
            differences.append(f"its {name} were recorded in another form, so they cannot be compared")
            was, now = ({key: value for key, value in configured.items() if key != name} for configured in (was, now))
    before, after = was.get("settings", {}), now.get("settings", {})
    if other := sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)):
        differences.append(f"it is told other things, or works in another way ({', '.join(other)})")
    before, after = was.get("tools", {}), now.get("tools", {})
    both = before.keys() & after.keys()
    for verb, names in (
        ("gone", before.keys() - after.keys()),
        ("new", after.keys() - before.keys()),
        ("described in another way", {name for name in both if before[name] != after[name]}),
    ):
        differences += [f"the tool {name} is {verb}" for name in sorted(names)]
    before, after = was.get("members", {}), now.get("members", {})
    for verb, names in (
        ("no agent any more", before.keys() - after.keys()),
        ("an agent", after.keys() - before.keys()),
    ):
        differences += [f"the tool {name} is {verb}" for name in sorted(both & names)]
    for name in sorted(before.keys() & after.keys()):
        if not isinstance(before[name], dict):
            differences.append(f"the member {name} was recorded in another form, so it cannot be compared")
            continue
        differences += [f"of the member {name}: {difference}" for difference in changes(before[name], after[name])]
    return differences
