"""Models, agents and teams in a TOML file.

    [profiles.coder]
    provider = "ollama"
    model = "qwen3-coder:30b"
    url = "http://localhost:11434"

    [profiles.coder.tools]
    definition_format = "openai"
    call_parser = "auto"
    result_format = "openai"

    [agents.reader]
    profile = "coder"
    system = "You answer questions about the files of a project."
    tier = "walk"
    tools = { builtin = ["."] }

    [teams.office]
    coordinator = "writer"
    members = { reader = "Reads files and answers questions about them." }

The tables are `ModelProfile`, `AgentTable` and `AgentTeamConfig`; `toolwire.agent.loading` makes agents of them. The
table `[policy]` says which calls may run; see `rules`. The tables `[mcp.servers.NAME]` name MCP servers; see
`toolwire.mcp.servers`, which reads them.

What is wrong in it is said with the file, the line and the key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from toolwire._surface import check_type
from toolwire.errors import ConfigurationError
from toolwire.policy.rule_tables import PolicyTable, TierName
from toolwire.providers.negotiation import FormatNegotiator, ToolsConfig, configured
from toolwire.text.suggest import closest, did_you_mean
from toolwire.tools import Tier


def _name(value: str) -> str:
    try:
        configured(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    return value


_Format = Annotated[str, AfterValidator(_name)]

COACH = "coach"
"""Stands for a format that is chosen from turn to turn, by what is known of the model; see `toolwire.telemetry`."""


def _name_or_coach(value: str) -> str:
    return value if value == COACH else _name(value)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tools(_Strict):
    """The table `tools` of a profile; see `ToolsConfig`."""

    definition_format: _Format | None = None
    call_parser: _Format | None = None
    result_format: _Format | None = None
    use_xml_tool_format: bool | None = None


class ModelProfile(_Strict):
    """One model: who serves it, where, and how tools are told to it.

    Attributes:
        provider: the API that it is asked through; "local": it runs in this process.
        model: its name; "local:1.5b", "local:PATH.gguf" and "local:hf:REPO/FILE" say "local" at once.
        url: the server's address, if it is not the provider's own.
        key_env: the environment variable that holds the key, if it is not the provider's usual one.
        tools: how tools are told to it.
    """

    provider: str = ""
    model: str = ""
    url: str = ""
    key_env: str = ""
    tools: Tools = Field(default_factory=Tools)

    def negotiator(self) -> FormatNegotiator:
        """What settles the formats of this model."""
        return FormatNegotiator(ToolsConfig(**self.tools.model_dump()))


class PriceTable(_Strict):
    """What a million tokens cost; see `toolwire.agent.Prices`."""

    input: Annotated[float, Field(ge=0)] = 0.0
    output: Annotated[float, Field(ge=0)] = 0.0
    cached: Annotated[float, Field(ge=0)] | None = None


class BudgetTable(_Strict):
    """What a run may use; see `toolwire.agent.Budget`."""

    rounds: Annotated[int, Field(ge=1)] = 20
    calls: Annotated[int, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    seconds: Annotated[float, Field(ge=0)] | None = None
    money: Annotated[float, Field(ge=0)] | None = None
    prices: PriceTable | None = None

    @model_validator(mode="after")
    def _counted(self) -> BudgetTable:
        if self.money is not None and self.prices is None:
            raise ValueError("money is counted by prices = { input = ..., output = ... }, for a million tokens each")
        return self


class GateTable(_Strict):
    """Which tiers a task can unlock by its words; see `toolwire.policy.intent.TierGate`."""

    max: TierName = Tier.RUN
    min: TierName = Tier.CRAWL
    sticky: bool = False

    @model_validator(mode="after")
    def _has_room(self) -> GateTable:
        if self.min > self.max:
            raise ValueError(f"min is {self.min.name.lower()}, above max, which is {self.max.name.lower()}")
        return self


class ToolSources(_Strict):
    """Where an agent's tools come from.

    Attributes:
        builtin: directories below which the built-in file tools and commands work, relative to the file.
        ending: the built-in tools that end a turn, too.
        python: Python files whose `@toolwire.tool` functions are taken, relative to the file; they are run.
        mcp: names of servers of `[mcp.servers]`.
    """

    builtin: tuple[str, ...] = ()
    ending: bool = False
    python: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()


class EnvelopeTable(_Strict):
    """Results in a Tool Envelope: for which agent, or in how many characters."""

    agent: str | None = None
    budget: Annotated[int, Field(ge=1_000)] | None = None
    preview: Annotated[int, Field(ge=1)] | None = None


def _enveloped(value: Any) -> Any:
    match value:
        case bool():
            return {} if value else None
        case str():
            return {"agent": value}
    return value


class AgentTable(_Strict):
    """One agent; what is left out is as in `toolwire.agent.AgentConfig`.

    Attributes:
        profile: its model, of `[profiles]`; it may be left out where there is one only.
        system: what the model is told beforehand; `{{tools}}` stands for the tools.
        tier: of every task; or `gate`, what the task's words can unlock.
        tools: what it may call.
        format: the wire format that the model is asked to write, an API's name for its own fields, or "coach".
        use_xml_tool_format: tools as XML in the text, whatever the model is; a team that says so or not wins.
        envelope: shape results; true, a reader's name, or a table.
    """

    profile: str = ""
    system: str = ""
    tier: TierName | None = None
    gate: GateTable | None = None
    tools: ToolSources = Field(default_factory=ToolSources)
    format: Annotated[str, AfterValidator(_name_or_coach)] | None = None
    use_xml_tool_format: bool | None = None
    budget: BudgetTable = Field(default_factory=BudgetTable)
    require_tool_call: bool = False
    after_results: str = ""
    after_failures: str = ""
    context: Annotated[int, Field(ge=100)] | None = None
    definitions: Annotated[int, Field(ge=0)] | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    timeout: Annotated[float, Field(gt=0)] | None = None
    envelope: Annotated[EnvelopeTable | None, BeforeValidator(_enveloped)] = None

    @model_validator(mode="after")
    def _one_gate(self) -> AgentTable:
        if self.tier is not None and self.gate is not None:
            raise ValueError("an agent has a tier or a gate, not both")
        return self


class MemberTable(_Strict):
    """A member of a team.

    Attributes:
        description: what it is good for, for the coordinator.
        tier: from which the coordinator may call it.
    """

    description: Annotated[str, Field(min_length=1)]
    tier: TierName = Tier.CRAWL


_Member = Annotated[
    MemberTable, BeforeValidator(lambda value: {"description": value} if isinstance(value, str) else value)
]


class AgentTeamConfig(_Strict):
    """A team: who coordinates, and whom it may call.

    Attributes:
        coordinator: an agent of `[agents]`.
        members: others, by name, each with a description; or with a table of description and tier.
        use_xml_tool_format: for all of them; None: each as it says itself.
    """

    coordinator: str
    members: Annotated[dict[str, _Member], Field(min_length=1)]
    use_xml_tool_format: bool | None = None


class Configuration(_Strict):
    """A whole file."""

    profiles: dict[str, ModelProfile] = Field(default_factory=dict)
    agents: dict[str, AgentTable] = Field(default_factory=dict)
    teams: dict[str, AgentTeamConfig] = Field(default_factory=dict)
    policy: PolicyTable = Field(default_factory=PolicyTable)
    mcp: dict[str, Any] = Field(default_factory=dict)

    def dangling(self) -> Iterator[tuple[list[str], str]]:
        """Names that stand for nothing: the keys that lead to each, and what is wrong."""
        for name, agent in self.agents.items():
            if agent.profile and agent.profile not in self.profiles:
                yield ["agents", name, "profile"], _missing("profile", agent.profile, self.profiles)
            elif not agent.profile and len(self.profiles) != 1:
                there = "there are several" if self.profiles else "there is none"
                yield ["agents", name], f"it names no profile, and {there}"
            servers = self.mcp.get("servers", {})
            for server in agent.tools.mcp:
                if server not in servers:
                    yield ["agents", name, "tools", "mcp"], _missing("MCP server", server, servers)
        for name, team in self.teams.items():
            for one in (team.coordinator, *team.members):
                if one not in self.agents:
                    key = "coordinator" if one == team.coordinator else "members"
                    yield ["teams", name, key], _missing("agent", one, self.agents)
            if team.coordinator in team.members:
                yield ["teams", name, "members"], f"{team.coordinator} coordinates, so it is no member"


def _missing(kind: str, name: str, known: Iterable[str]) -> str:
    there = ", ".join(known)
    return f"there is no {kind} {name!r}; there {'are ' + there if there else 'is none'}"


def load_configuration(path: str | PathLike[str]) -> Configuration:
    """Read a TOML file.

    Raises:
        ConfigurationError: it cannot be read, is no TOML, or holds a key or a value that is none; the message names the
            file, the line and the key.
    """
    text = read_text(path)
    data = read_toml(path, text)
    try:
        made = Configuration.model_validate(data)
    except ValidationError as error:
        raise refused(path, error, lambda keys: toml_line(text, keys), model=Configuration) from error
    for keys, message in made.dangling():
        raise ConfigurationError(f"{path}:{toml_line(text, keys)}: {'.'.join(keys)}: {message}")
    return made


def read_text(path: str | PathLike[str]) -> str:
    """The text of a file.

    Raises:
        ConfigurationError: it cannot be read.
    """
    check_type("path", path, (str, PathLike), "a path")
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error


def read_toml(path: str | PathLike[str], text: str) -> dict[str, Any]:
    """The text of a file as TOML.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def refused(
    path: str | PathLike[str],
    error: ValidationError,
    line_of: Callable[[list[str]], int],
    above: tuple[str, ...] = (),
    model: type[BaseModel] | None = None,
) -> ConfigurationError:
    """The first thing that is wrong in a file, with its place.

    Args:
        path: the file.
        error: what pydantic found.
        line_of: the line in which a key stands; 0 if that is not known.
        above: the keys that lead to what was checked.
        model: what was checked, for the keys that might be meant by a wrong one.
    """
    first = error.errors()[0]
    keys = [*above, *(str(key) for key in first["loc"])]
    line = line_of(keys)
    where = f"{path}:{line}" if line else str(path)
    message = str(first["msg"]).removeprefix("Value error, ")
    hint = did_you_mean(_near(first, model))
    return ConfigurationError(f"{where}: {'.'.join(keys)}: {message}{_given(first)}{hint}")


def _near(error: Any, model: type[BaseModel] | None) -> list[str]:
    """What may be meant by a key or a word that there is not."""
    given: Any = error["input"]
    known: list[str] = []
    if error["type"] == "extra_forbidden" and model is not None:
        *place, given = error["loc"]
        known = _keys(model, place)
    elif error["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", error["ctx"]["expected"])
    return closest(given, known) if isinstance(given, str) else []


def _keys(model: type[BaseModel], place: Iterable[str | int]) -> list[str]:
    """The keys that the table at a place may have."""
    kinds: list[Any] = [model]
    for key in place:
        inner: list[Any] = []
        for kind in kinds:
            if _is_table(kind):
                inner += [kind.model_fields[key].annotation] if key in kind.model_fields else []
            else:
                inner += get_args(kind)  # of an array, or of tables by name
        kinds = [one for kind in inner for one in _unwrapped(kind)]
    return [key for kind in kinds if _is_table(kind) for key in kind.model_fields]


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _unwrapped(kind: Any) -> list[Any]:
    """The types that a value may have, by themselves."""
    if get_origin(kind) is Annotated:
        return _unwrapped(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [one for inner in get_args(kind) for one in _unwrapped(inner)]
    return [kind]


def _given(error: Any) -> str:
    return "" if error["type"] in ("extra_forbidden", "value_error") else f" (it is {error['input']!r:.60})"


_TABLE = re.compile(r"\s*(\[+)\s*([^\]]*?)\s*\]+")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PIECE = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def toml_line(text: str, keys: list[str]) -> int:
    """The line in which a key stands, or the nearest that holds it; 0 if none does."""
    table: list[str] = []
    counts: dict[tuple[str, ...], int] = {}  # of arrays of tables, by their path
    best = depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            table = found = _placed(_pieces(match[2]), counts, new=match[1] == "[[")
        elif match := _KEY.match(line):
            found = [*table, *_pieces(match[1])]
        else:
            continue
        if found == keys[: len(found)] and len(found) > depth:
            best, depth = number, len(found)
    return best


def _placed(path: list[str], counts: dict[tuple[str, ...], int], *, new: bool) -> list[str]:
    """A table's path with the number of each array's table that it is in; `new`: it begins one."""
    placed: list[str] = []
    for at, piece in enumerate(path, 1):
        placed.append(piece)
        key = tuple(placed)
        if new and at == len(path):
            counts[key] = counts.get(key, -1) + 1
        if key in counts:
            placed.append(str(counts[key]))
    return placed


def _pieces(path: str) -> list[str]:
    return [piece.strip("\"'") for piece in _PIECE.findall(path)]
