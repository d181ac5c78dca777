"""Names in a policy that name nothing: a rule that denies a tool by a misspelt name denies nothing, and nobody hears.

A policy may know of tools that are not here: of other programs, or of servers that come later. So a glob, and a name
on a server without tools yet, are only told of if they are nearly the name of a tool that is here; and a glob is never
called a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolwire.errors import ConfigurationError
from toolwire.policy.policy import Limit, Policy, Rule, full_name
from toolwire.text.suggest import closest, did_you_mean
from toolwire.tools import ToolDefinition

NEAR = 0.8
"""From which likeness on (`difflib`, case aside) one name is taken for another that was misspelt."""
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
        name: what it names.
        near: what there is of nearly that name; "" if nothing is.
        certain: it is a mistake, and lets calls run: the rule was to deny or ask, or it is a limit, and a tool of
            this program was surely meant. No tool of a server makes it certain: strangers choose their names.
        message: all of it in words.
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
    """What in a policy names no tool, or no argument of the tools that it names.

    Args:
        policy: the rules.
        tools: all that there are, also those that are hidden or switched off: `registry.known()`.
    """
    known = list(tools)
    found: list[Misnomer] = []
    for at, rule in enumerate(policy.rules):
        found += _of(f"policy.rules.{at}", rule, rule.effect, known)
    for at, limit in enumerate(policy.limits):
        found += _of(f"policy.limits.{at}", limit, "limit", known)
    return found


def checked(policy: Policy, tools: Iterable[ToolDefinition]) -> list[Misnomer]:
    """`misnomers` of which none is certain.

    Raises:
        ConfigurationError: one is.
    """
    found = misnomers(policy, tools)
    for one in found:
        if one.certain:
            raise ConfigurationError(str(one))
    return found


def _of(where: str, one: Rule | Limit, does: str, known: Sequence[ToolDefinition]) -> list[Misnomer]:
    meant = [tool for tool in known if one.names(tool)]
    if not meant:
        return _tool(where, one.tool, does, known)
    if isinstance(one, Limit):
        return []
    found = [_argument(where, key, one, meant) for key in one.arguments]
    if not one.confirm and all(tool.server for tool in meant):
        said = "confirm = false is for tools of this program; for a server's, say it at the server"
        found.append(Misnomer(where, one.tool, "", False, said))
    return [misnomer for misnomer in found if misnomer is not None]


def _tool(where: str, name: str, does: str, known: Sequence[ToolDefinition]) -> list[Misnomer]:
    if name.casefold() in BUILTIN or not known:
        return []
    full = [full_name(tool) for tool in known]
    same = [one for one in full if one.rpartition(".")[2].casefold() == name.casefold()]  # it lacks its server
    bare = [] if does == "allow" else [tool.name for tool in known]
    own = _near(name, [tool.name for tool in known if not tool.server])
    near = same[0] if same else own or _near(name, [*full, *bare])
    server, dot, _ = name.partition(".")
    elsewhere = bool(dot) and not any(tool.server.casefold() == server.casefold() for tool in known)
    if not near and (_is_glob(name) or elsewhere):
        return []
    said = f"no tool is called {name!r}, {_NOTHING[does]}"
    return [
        Misnomer(where, name, near, bool(own) and does != "allow" and not _is_glob(name), said + did_you_mean([near]))
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
        if odd or open_ended or not isinstance(declared, Mapping) or key in declared:
            return None
        arguments.update(declared)
    near = _near(key, sorted(arguments))
    if not near and _is_glob(rule.tool):
        return None
    closed = all(tool.parameters.get("additionalProperties") is False for tool in meant)
    strange = any(tool.server for tool in meant)
    certain = rule.effect != "allow" and not _is_glob(rule.tool) and not strange and (bool(near) or closed)
    whose = f"{full_name(meant[0])} has" if len(meant) == 1 else f"the tools that {rule.tool!r} names have"
    said = f"{whose} no argument {key!r}, {_NOTHING[rule.effect]}"
    there = f" (there {'is' if len(arguments) == 1 else 'are'} {', '.join(sorted(arguments))})"
    return Misnomer(where, key, near, certain, said + (did_you_mean([near]) or there))


def _is_glob(name: str) -> bool:
    return any(c in name for c in "*?[")


def _near(name: str, known: Sequence[str]) -> str:
    return "".join(closest(name, known, similarity=NEAR))
