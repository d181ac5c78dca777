"""Lint a policy: find names of tools and arguments that do not exist, so that a misspelled rule has no effect.

A policy may name tools that are not registered: those of other programs, or of servers that connect later. So a glob,
and a name on a server without tools yet, are only reported if they resemble the name of a registered tool. A glob is
never certain to be a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolwire.errors import ConfigurationError
from toolwire.policy.policy import Limit, Policy, Rule, full_name
from toolwire.text.suggest import closest, did_you_mean
from toolwire.tools import ToolDefinition

NEAR = 0.8
"""Minimum similarity (`difflib`, ignoring case) of a misspelled name and the name that was meant."""
BUILTIN = frozenset({"list_dir", "read_file", "search_files", "write_file", "apply_diff", "execute_command"}) | {
    "task_completion",
    "ask_question",
    "converse",
}
"""The built-in tools: a rule may name them wherever they are not in use."""

_NOTHING = {
    "allow": "so it allows nothing",
    "ask": "so it asks about nothing",
    "deny": "so it denies nothing",
    "limit": "so it limits nothing",
}


@dataclass(frozen=True, slots=True)
class Misnomer:
    """A name in a policy that names nothing.

    Attributes:
        where: the rule or the limit, as "policy.rules.0".
        name: the name in the policy.
        near: the existing name that it resembles; "" if there is none.
        certain: it is a mistake, and lets calls run: the rule was to deny or ask, or it is a limit, and a tool of
            this program was surely meant. Tools of servers never make it certain: their authors choose their names.
        message: a description of the problem.
    """

    where: str
    name: str
    near: str
    certain: bool
    message: str

    def __str__(self) -> str:
        """The message, with its place."""
        return f"{self.where}: {self.message}"


def misnomers(policy: Policy, tools: Iterable[ToolDefinition]) -> list[Misnomer]:
    """Return the names in a policy of tools, or of arguments of its tools, that do not exist.

    Args:
        policy: the rules.
        tools: all tools, also those that are hidden or disabled: `registry.known()`.
    """
    definitions = list(tools)  # gone through once for each rule
    problems: list[Misnomer] = []
    for at, rule in enumerate(policy.rules):
        problems += _of(f"policy.rules.{at}", rule, rule.effect, definitions)
    for at, limit in enumerate(policy.limits):
        problems += _of(f"policy.limits.{at}", limit, "limit", definitions)
    return problems


def checked(policy: Policy, tools: Iterable[ToolDefinition]) -> list[Misnomer]:
    """Return the misnomers of a policy, none of which is certain.

    Raises:
        ConfigurationError: one of them is certain.
    """
    problems = misnomers(policy, tools)
    for misnomer in problems:
        if misnomer.certain:
            raise ConfigurationError(str(misnomer))
    return problems


def _of(where: str, one: Rule | Limit, does: str, known: Sequence[ToolDefinition]) -> list[Misnomer]:
    targets = [tool for tool in known if one.names(tool)]
    if not targets:
        return _tool(where, one.tool, does, known)
    if isinstance(one, Limit):
        return []
    # Arguments are compared only where the tool is known: an unknown one is reported above already, by its name.
    problems = [_argument(where, key, one, targets) for key in one.arguments]
    if not one.confirm and all(tool.server for tool in targets):
        message = "confirm = false is for tools of this program; for a server's, say it at the server"
        problems.append(Misnomer(where, one.tool, "", False, message))
    return [misnomer for misnomer in problems if misnomer is not None]


def _tool(where: str, name: str, does: str, known: Sequence[ToolDefinition]) -> list[Misnomer]:
    if name.casefold() in BUILTIN or not known:
        return []
    full = [full_name(tool) for tool in known]
    same_name = [
        candidate for candidate in full if candidate.rpartition(".")[2].casefold() == name.casefold()
    ]  # it lacks its server
    bare = [] if does == "allow" else [tool.name for tool in known]
    nearest_own = _near(name, [tool.name for tool in known if not tool.server])
    near = same_name[0] if same_name else nearest_own or _near(name, [*full, *bare])
    server, dot, _ = name.partition(".")
    elsewhere = bool(dot) and not any(tool.server.casefold() == server.casefold() for tool in known)
    # It may be meant for tools that are registered later, so without a resemblance there is nothing to report.
    if not near and (_is_glob(name) or elsewhere):
        return []
    message = f"no tool is called {name!r}, {_NOTHING[does]}"
    return [
        Misnomer(
            where,
            name,
            near,
            bool(nearest_own) and does != "allow" and not _is_glob(name),
            message + did_you_mean([near]),
        )
    ]


def _argument(where: str, key: str, rule: Rule, meant: Sequence[ToolDefinition]) -> Misnomer | None:
    arguments: set[str] = set()
    for tool in meant:
        declared = tool.parameters.get("properties")
        additional = tool.parameters.get("additionalProperties")
        odd = bool(additional) or "patternProperties" in tool.parameters
        if declared is None:
            declared = {}
        open_ended = not declared and tool.parameters.get("additionalProperties") is not False
        # A tool that takes undeclared arguments may take this one, so nothing can be said about the rule.
        if odd or open_ended or not isinstance(declared, Mapping) or key in declared:
            return None
        arguments.update(declared)
    near = _near(key, sorted(arguments))
    if not near and _is_glob(rule.tool):
        return None
    closed = all(tool.parameters.get("additionalProperties") is False for tool in meant)
    strange = any(tool.server for tool in meant)
    # A misspelled rule that allows is safe: its calls ask or are denied. Only the others leave a door open.
    certain = rule.effect != "allow" and not _is_glob(rule.tool) and not strange and (bool(near) or closed)
    whose = f"{full_name(meant[0])} has" if len(meant) == 1 else f"the tools that {rule.tool!r} names have"
    message = f"{whose} no argument {key!r}, {_NOTHING[rule.effect]}"
    existing = f" (there {'is' if len(arguments) == 1 else 'are'} {', '.join(sorted(arguments))})"
    return Misnomer(where, key, near, certain, message + (did_you_mean([near]) or existing))


def _is_glob(name: str) -> bool:
    return any(c in name for c in "*?[")


def _near(name: str, known: Sequence[str]) -> str:
    return "".join(closest(name, known, similarity=NEAR))
