"""Comparison of an agent with the one that began a run: model, format, settings, tools and members.

A coach chooses the format anew in each turn, and a recorded answer has the format in which it was written. So it
matters that there is a coach, but not what it has learned since.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from toolwire.agent.agent import Agent
from toolwire.config.tables import COACH
from toolwire.messages import digest
from toolwire.models.model_group import single_models
from toolwire.policy.fingerprint import definition_hash
from toolwire.telemetry.coached_backend import CoachedBackend

MAY_CHANGE: Final = frozenset(
    {"name", "budget", "silence", "answer_seconds", "timeout", "extra_headers", "output_retries"}
)
"""Settings that may differ when a run is resumed. The name is not compared, since the agent is found by it."""


def configuration(agent: Agent[Any]) -> dict[str, Any]:
    """Describe an agent, as far as its runs depend on it; its budget and the code of its tools may change."""
    return _configuration(agent, ())


def _configuration(agent: Agent[Any], ancestors: tuple[Agent[Any], ...]) -> dict[str, Any]:
    config, backend, ancestors = agent.config, agent.backend, (*ancestors, agent)
    models = list(single_models(backend))
    coached = [isinstance(model, CoachedBackend) for model in models]
    settings = {field.name: getattr(config, field.name) for field in fields(config) if field.name not in MAY_CHANGE}
    hooks = settings.pop("hooks")
    settings["hooks"] = [[_kind(hook) for hook in getattr(hooks, field.name)] for field in fields(hooks)]
    mode = settings.pop("output_mode")
    if agent.output is not None:
        settings["output"] = [mode, agent.output.schema]
    settings.pop("gate")
    compaction = settings.pop("compaction")
    if compaction is not None:
        model = "" if compaction.backend is None else compaction.backend.model
        settings["compaction"] = [model, compaction.keep, compaction.instructions]
    if (gate := config.tier_gate) is not None:
        settings["gate"] = [int(gate.max_tier), int(gate.min_tier), gate.sticky, _kind(gate.detect)]
    members = {
        name: _configuration(other, ancestors)
        for name, other in {**agent.members, **agent.handoffs}.items()
        if other not in ancestors  # teams may contain each other
    }
    return {
        "model": ", ".join(model.model for model in models),
        "api": ", ".join("" if coach else model.api for model, coach in zip(models, coached, strict=True)),
        "format": ", ".join(COACH if coach else model.format for model, coach in zip(models, coached, strict=True)),
        "settings": {name: digest(value) for name, value in settings.items()},
        "tools": {
            definition.name: definition_hash(definition) for definition in agent.registry.definitions(hidden=True)
        },
        **({"members": members} if members else {}),
    }


def _kind(hook: object) -> str:
    """Return the name of a function, or the name of the class of another callable."""
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))


def changes(recorded: dict[str, Any], current: dict[str, Any]) -> list[str]:
    """Return the differences between two descriptions of an agent, in words."""
    differences = [
        f"the {name} was {recorded.get(name)!r} and is {current.get(name)!r}"
        for name in ("model", "api", "format")
        if recorded.get(name) != current.get(name)
    ]
    for name in ("settings", "tools", "members"):
        if not isinstance(recorded.get(name, {}), dict):  # recorded by another version
            differences.append(f"its {name} were recorded in another form, so they cannot be compared")
            recorded, current = (
                {key: value for key, value in configured.items() if key != name} for configured in (recorded, current)
            )
    before, after = recorded.get("settings", {}), current.get("settings", {})
    if other := sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)):
        differences.append(f"its prompts or other settings differ ({', '.join(other)})")
    before, after = recorded.get("tools", {}), current.get("tools", {})
    both = before.keys() & after.keys()
    for state, names in (
        ("gone", before.keys() - after.keys()),
        ("new", after.keys() - before.keys()),
        ("described in another way", {name for name in both if before[name] != after[name]}),
    ):
        differences += [f"the tool {name} is {state}" for name in sorted(names)]
    before, after = recorded.get("members", {}), current.get("members", {})
    for state, names in (
        ("not an agent any more", before.keys() - after.keys()),
        ("an agent", after.keys() - before.keys()),
    ):
        differences += [f"the tool {name} is {state}" for name in sorted(both & names)]
    for name in sorted(before.keys() & after.keys()):
        if not isinstance(before[name], dict):
            differences.append(f"the member {name} was recorded in another form, so it cannot be compared")
            continue
        differences += [f"of the member {name}: {difference}" for difference in changes(before[name], after[name])]
    return differences
