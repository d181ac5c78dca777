"""Whether an agent is the one that a run began with: the same model, format and tools, told the same."""

from __future__ import annotations

from typing import Any

from toolwire.agent.loop import Agent
from toolwire.hashing import definition_hash
from toolwire.messages import digest


def configuration(agent: Agent) -> dict[str, Any]:
    """What an agent is, as far as its runs depend on it; budgets may change, and so may the code of its tools."""
    config, backend, chains = agent.config, agent.backend, agent.config.chains
    steps = [
        [getattr(step, "__qualname__", type(step).__qualname__) for step in chain]
        for chain in (chains.prompt, chains.response, chains.invocation, chains.result)
    ]
    settings = [config.system, config.tier, config.require_tool_call, config.context, config.temperature, steps]
    return {
        "model": backend.model,
        "api": backend.api,
        "format": backend.format,
        "settings": digest(settings),
        "tools": {one.name: definition_hash(one) for one in agent.registry.definitions(hidden=True)},
    }


def changes(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """In which ways an agent is another one, in words."""
    said = [
        f"the {name} was {was.get(name)!r} and is {now.get(name)!r}"
        for name in ("model", "api", "format")
        if was.get(name) != now.get(name)
    ]
    if was.get("settings") != now.get("settings"):
        said.append("it is told other things, or works in another way")
    before, after = was.get("tools", {}), now.get("tools", {})
    for verb, names in (
        ("gone", before.keys() - after.keys()),
        ("new", after.keys() - before.keys()),
        ("described in another way", {name for name in before.keys() & after.keys() if before[name] != after[name]}),
    ):
        said += [f"the tool {name} is {verb}" for name in sorted(names)]
    return said
