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
table `[policy]` contains the rules for calls; see `toolwire.policy.PolicyTable`. The tables `[mcp.servers.NAME]`
describe MCP servers; `toolwire.mcp.servers` reads them.

Errors name the file, the line and the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from toolwire.config.format_files import register_format_files
from toolwire.config.gateway_tables import GatewayTable, PriceTable
from toolwire.config.toml_source import read_text, read_toml, refused, toml_line
from toolwire.errors import ConfigurationError, UnknownApi
from toolwire.policy.rule_tables import PolicyTable, TierName
from toolwire.providers.api_registry import get_api
from toolwire.providers.base import ProviderApi
from toolwire.providers.model_settings import Effort, ModelSettings, RequestAdditions
from toolwire.providers.negotiation import FormatNegotiator, ToolsConfig, configured
from toolwire.providers.openai_chat import with_facts
from toolwire.tools import Tier


def _name(value: str) -> str:
    try:
        configured(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    return value


_Format = Annotated[str, AfterValidator(_name)]

COACH = "coach"
"""The name of a format that is chosen from turn to turn, by the model's records; see `toolwire.telemetry`."""


def _name_or_coach(value: str) -> str:
    return value if value == COACH else _name(value)


LOCAL = "local"
"""The provider of models that run in this process, also as a prefix of a model's name, before a colon."""


def _provider_name(value: str) -> str:
    if value and value != LOCAL:
        try:
            get_api(value)
        except UnknownApi as error:
            raise ValueError(str(error)) from error
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tools(_Strict):
    """The table `tools` of a profile; see `ToolsConfig`."""

    definition_format: _Format | None = None
    call_parser: _Format | None = None
    result_format: _Format | None = None
    use_xml_tool_format: bool | None = None


class SettingsTable(BaseModel):
    """Settings of the model's answers; see `toolwire.models.ModelSettings`. Other keys become members of the body.

    Attributes:
        max_tokens: the maximum length of an answer, in tokens.
        temperature: the sampling temperature.
        top_p: the share of probability that sampling is limited to.
        top_k: the number of most probable tokens that sampling is limited to.
        stop: texts that end an answer.
        seed: makes sampling repeatable, as far as the API can.
        frequency_penalty: reduces the probability of tokens, the more often they occur in the text so far.
        presence_penalty: reduces the probability of all tokens that occur in the text so far.
        reasoning_effort: "none", "minimal", "low", "medium", "high", "xhigh", "max", or a number of tokens.
        parallel: whether the model may make several calls in one answer.
        service_tier: "auto", "default", "flex", "priority", or a tier of the API itself.
        metadata: labels of the requests, for the provider's logs.
        end_user: an identifier of the person behind the requests.
        compact_at: the number of tokens from which the server summarises the older conversation.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    stop: str | tuple[str, ...] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning_effort: Effort | Annotated[int, Field(ge=0)] | None = None
    parallel: bool | None = None
    service_tier: str | None = None
    metadata: dict[str, str] | None = None
    end_user: str | None = None
    compact_at: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _spelt(self) -> SettingsTable:
        try:
            RequestAdditions.of(self.to_settings())
        except TypeError as error:
            raise ValueError(str(error)) from error
        return self

    def to_settings(self) -> ModelSettings:
        """Return the settings that are set."""
        return cast(ModelSettings, self.model_dump(exclude_unset=True, exclude_none=True))


class ServerTable(_Strict):
    """Facts about a server of Chat Completions that has no name of its own, where they differ from its provider's.

    Attributes:
        reasoning: the member of a message for the reasoning of earlier answers; "" if it is not sent back.
        max_tokens: the member for the maximum length of an answer, such as "max_completion_tokens".
        strict: whether tools may be strict.
        choices: whether a request may say that a tool must or must not be called.
        required: the value of `tool_choice` that requires a call, such as "any".
        id_length: the maximum length of the id of a call, in characters.
    """

    reasoning: str | None = None
    max_tokens: Annotated[str, Field(min_length=1)] | None = None
    strict: bool | None = None
    choices: bool | None = None
    required: Annotated[str, Field(min_length=1)] | None = None
    id_length: Annotated[int, Field(ge=16)] | None = None

    def api(self, provider: ProviderApi) -> ProviderApi:
        """Return the API of the server.

        Raises:
            ConfigurationError: the provider's API is not one of Chat Completions.
        """
        changes = self.model_dump(exclude_none=True)
        return with_facts(provider, changes) if changes else provider


class RetryTable(_Strict):
    """When a request that failed is repeated; see `toolwire.models.Retry`."""

    attempts: Annotated[int, Field(ge=1)] = 4
    wait: Annotated[float, Field(ge=0)] = 0.5
    longest: Annotated[float, Field(ge=0)] = 60.0


class ModelProfile(_Strict):
    """One model: its server, its address, and the formats of tools.

    Attributes:
        provider: the API that it is reached through; "local" to run it in this process.
        model: its name; "local:1.5b", "local:PATH.gguf" and "local:hf:REPO/FILE" imply "local".
        url: the base URL, if it is not the provider's own.
        key_env: the environment variable that contains the key, if it is not the provider's usual one.
        server: facts about a server of Chat Completions that has no name here.
        fallback: profiles of the models that answer where this one fails, in order; see `toolwire.models.Fallback`.
        retry: when a request that failed is repeated, before a fallback is asked.
        tools: the formats of definitions, calls and results.
        constrain: "auto" or "required" to let its engine decode calls under a grammar, or to make all tools strict
            where calls have fields of their own; see `toolwire.models.Constraint`.
        settings: settings of its answers; those of an agent count before them.
        extra_body: members of the body of each request.
        extra_headers: headers of each request. Keep secrets in the environment, in the variable of `key_env`.
    """

    provider: Annotated[str, AfterValidator(_provider_name)] = ""
    model: str = ""
    url: str = ""
    key_env: str = ""
    server: ServerTable = Field(default_factory=ServerTable)
    fallback: tuple[str, ...] = ()
    retry: RetryTable | None = None
    tools: Tools = Field(default_factory=Tools)
    constrain: Literal["auto", "required"] | None = None
    settings: SettingsTable = Field(default_factory=SettingsTable)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    extra_headers: dict[str, str] = Field(default_factory=dict)

    def negotiator(self) -> FormatNegotiator:
        """Return the negotiator of this model's formats."""
        return FormatNegotiator(ToolsConfig(**self.tools.model_dump()))


class BudgetTable(_Strict):
    """The budget of a run; see `toolwire.agent.Budget`."""

    rounds: Annotated[int, Field(ge=1)] = 20
    calls: Annotated[int, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    seconds: Annotated[float, Field(ge=0)] | None = None
    money: Annotated[float, Field(ge=0)] | None = None
    prices: PriceTable | None = None


INTENT = "intent"
"""The name of the gate that reads tiers from the words of a task; see `toolwire.policy.TierGate`."""


class GateTable(_Strict):
    """The tiers that a task can unlock by its words; see `toolwire.policy.TierGate`.

    Attributes:
        max: the highest tier that a task can unlock.
        min: the tier that needs no request.
        sticky: an unlocked tier stays unlocked for later tasks.
    """

    max: TierName = Tier.RUN
    min: TierName = Tier.CRAWL
    sticky: bool = False

    @model_validator(mode="after")
    def _has_room(self) -> GateTable:
        if self.min > self.max:
            raise ValueError(f"min is {self.min.name.lower()}, above max, which is {self.max.name.lower()}")
        return self


class ToolSources(_Strict):
    """The sources of an agent's tools.

    Attributes:
        builtin: directories below which the built-in file tools and commands work, relative to the file.
        ending: include the built-in tools that end a turn.
        answer: include `final_answer`, with which a small model gives its answer; see `toolwire.answer_tool`.
        python: Python files whose `@toolwire.tool` functions are used, relative to the file; they are executed.
        mcp: names of servers in `[mcp.servers]`.
    """

    builtin: tuple[str, ...] = ()
    ending: bool = False
    answer: bool = False
    python: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()


class EnvelopeTable(_Strict):
    """Results in a Tool Envelope: the agent that reads them, or their size in characters."""

    agent: str | None = None
    budget: Annotated[int, Field(ge=1_000)] | None = None
    preview: Annotated[int, Field(ge=1)] | None = None


class SummarizeTable(_Strict):
    """Summaries of a conversation that is too long: the model that writes them, and what stays as it is.

    Attributes:
        profile: the model, of `[profiles]`; the agent's own without it.
    """

    profile: str = ""
    keep: Annotated[int, Field(ge=1)] | None = None
    instructions: Annotated[str, Field(min_length=1)] | None = None


def _switched_table(value: Any) -> Any:
    return ({} if value else None) if isinstance(value, bool) else value


def _enveloped(value: Any) -> Any:
    return {"agent": value} if isinstance(value, str) else _switched_table(value)


def _gate_table(value: Any) -> Any:
    return {} if value == INTENT else value


class AgentTable(_Strict):
    """One agent; a missing key has the default of `toolwire.agent.AgentConfig`.

    Attributes:
        profile: its model, of `[profiles]`; may be left out if there is only one.
        system: the system prompt; `{{tools}}` is replaced by the tools.
        tier: the highest tier of tools that a task can use; all tools without it.
        gate: "intent": the words of a task unlock tiers; or a table of the tiers that they can unlock. Not with `tier`.
        tools: the tools that it may call.
        format: the wire format that the model is asked to write, an API's name for its own fields, or "coach".
        use_xml_tool_format: tools as XML in the text, whatever the model is; a team's setting takes precedence.
        calls_per_answer: the number of calls of one answer that may run.
        compaction: summarise what would be left out by `context`: true, or a table.
        output: the JSON Schema of the answer, as a table; or the path of a JSON file that contains it.
        settings: settings of the model's answers.
        extra_body: members of the body of each request.
        extra_headers: headers of each request.
        telemetry: whether runs are recorded on this machine; without it, if TOOLWIRE_RECORD is set.
        envelope: shape results: true, a reader's name, or a table.
    """

    profile: str = ""
    system: str = ""
    tier: TierName | None = None
    gate: Annotated[GateTable | None, BeforeValidator(_gate_table)] = None
    tools: ToolSources = Field(default_factory=ToolSources)
    format: Annotated[str, AfterValidator(_name_or_coach)] | None = None
    use_xml_tool_format: bool | None = None
    budget: BudgetTable = Field(default_factory=BudgetTable)
    require_tool_call: bool = False
    calls_per_answer: Annotated[int, Field(ge=1)] | None = None
    after_results: str = ""
    after_failures: str = ""
    context: Annotated[int, Field(ge=100)] | None = None
    definitions: Annotated[int, Field(ge=0)] | None = None
    compaction: Annotated[SummarizeTable | None, BeforeValidator(_switched_table)] = None
    output: dict[str, Any] | str | None = None
    settings: SettingsTable = Field(default_factory=SettingsTable)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    extra_headers: dict[str, str] = Field(default_factory=dict)
    timeout: Annotated[float, Field(gt=0)] | None = None
    telemetry: bool | None = None
    envelope: Annotated[EnvelopeTable | None, BeforeValidator(_enveloped)] = None

    @model_validator(mode="after")
    def _one_gate(self) -> AgentTable:
        if self.tier is not None and self.gate is not None:
            raise ValueError("an agent has a tier or a gate, not both")
        return self

    @model_validator(mode="after")
    def _has_context(self) -> AgentTable:
        if self.compaction is not None and self.context is None:
            raise ValueError("compaction needs context, the number of tokens that are too many")
        return self


class MemberTable(_Strict):
    """An agent that a team's coordinator may call, or hand over to.

    Attributes:
        description: what it is good for, for the coordinator.
        tier: the tier from which the coordinator may do so.
    """

    description: Annotated[str, Field(min_length=1)]
    tier: TierName = Tier.CRAWL


_Member = Annotated[
    MemberTable, BeforeValidator(lambda value: {"description": value} if isinstance(value, str) else value)
]


class AgentTeamConfig(_Strict):
    """A team: a coordinator, the members that it may call, and the agents to which it may hand over.

    Attributes:
        coordinator: an agent of `[agents]`.
        members: other agents by name, each with a description, or with a table of description and tier.
        handoffs: agents that may continue the conversation, in the same way.
        use_xml_tool_format: for all of them; None to leave it to each agent.
    """

    coordinator: str
    members: dict[str, _Member] = Field(default_factory=dict)
    handoffs: dict[str, _Member] = Field(default_factory=dict)
    use_xml_tool_format: bool | None = None

    @model_validator(mode="after")
    def _has_others(self) -> AgentTeamConfig:
        if not (self.members or self.handoffs):
            raise ValueError("a team needs members or handoffs")
        return self


class Configuration(_Strict):
    """A whole configuration file.

    Attributes:
        format_files: JSON files that describe own wire formats, relative to this file; `toolwire formats --export`
            writes such descriptions. The other tables can then name the formats.
    """

    format_files: tuple[str, ...] = ()
    profiles: dict[str, ModelProfile] = Field(default_factory=dict)
    agents: dict[str, AgentTable] = Field(default_factory=dict)
    teams: dict[str, AgentTeamConfig] = Field(default_factory=dict)
    policy: PolicyTable = Field(default_factory=PolicyTable)
    mcp: dict[str, Any] = Field(default_factory=dict)
    gateway: GatewayTable = Field(default_factory=GatewayTable)

    def chain(self, agent: str) -> tuple[ModelProfile, ...]:
        """Return the profile of an agent, and those that answer where its model fails."""
        return self.profile_chain(self.agents[agent].profile or next(iter(self.profiles)))

    def profile_chain(self, name: str) -> tuple[ModelProfile, ...]:
        """Return a profile, and those that answer where its model fails."""
        profile = self.profiles[name]
        return (profile, *(self.profiles[name] for name in profile.fallback))

    def dangling(self) -> Iterator[tuple[list[str], str]]:
        """Yield references to names that do not exist: the keys that lead to each, and a message."""
        yield from self._dangling_profiles()
        yield from self._dangling_agents()
        yield from self._dangling_teams()
        for keys, profile in self.gateway.dangling(self.profiles):
            yield keys, _missing("profile", profile, self.profiles)
        servers = self.mcp.get("servers", {})
        for server in self.gateway.tools.mcp:
            if server not in servers:
                yield ["gateway", "tools", "mcp"], _missing("MCP server", server, servers)

    def _dangling_profiles(self) -> Iterator[tuple[list[str], str]]:
        for name, profile in self.profiles.items():
            for other in profile.fallback:
                if other not in self.profiles:
                    yield ["profiles", name, "fallback"], _missing("profile", other, self.profiles)
                elif other == name or self.profiles[other].fallback:
                    reason = "itself" if other == name else f"{other}, which has a fallback of its own: name them all"
                    yield ["profiles", name, "fallback"], f"{name} cannot fall back to {reason}"

    def _dangling_agents(self) -> Iterator[tuple[list[str], str]]:
        for name, agent in self.agents.items():
            if agent.profile and agent.profile not in self.profiles:
                yield ["agents", name, "profile"], _missing("profile", agent.profile, self.profiles)
            elif not agent.profile and len(self.profiles) != 1:
                reason = "there are several" if self.profiles else "there is none"
                yield ["agents", name], f"it names no profile, and {reason}"
            writer = "" if agent.compaction is None else agent.compaction.profile
            if writer and writer not in self.profiles:
                yield ["agents", name, "compaction", "profile"], _missing("profile", writer, self.profiles)
            servers = self.mcp.get("servers", {})
            for server in agent.tools.mcp:
                if server not in servers:
                    yield ["agents", name, "tools", "mcp"], _missing("MCP server", server, servers)

    def _dangling_teams(self) -> Iterator[tuple[list[str], str]]:
        for name, team in self.teams.items():
            if team.coordinator not in self.agents:
                yield ["teams", name, "coordinator"], _missing("agent", team.coordinator, self.agents)
            for key, others in (("members", team.members), ("handoffs", team.handoffs)):
                for other in others:
                    if other not in self.agents:
                        yield ["teams", name, key], _missing("agent", other, self.agents)
            if team.coordinator in team.members:
                yield ["teams", name, "members"], f"{team.coordinator} coordinates, so it cannot be a member"
            if team.coordinator in team.handoffs:
                yield ["teams", name, "handoffs"], f"{team.coordinator} coordinates, so it cannot be handed over to"


def _missing(kind: str, name: str, known: Iterable[str]) -> str:
    names = ", ".join(known)
    return f"there is no {kind} {name!r}; there {'are ' + names if names else 'is none'}"


def load_configuration(path: str | PathLike[str]) -> Configuration:
    """Read a TOML file.

    Raises:
        ConfigurationError: the file cannot be read, is not valid TOML, or contains an unknown key or an invalid value;
            the message names the file, the line and the key.
        TypeError: `path` is not a path.
    """
    text = read_text(path, if_missing=f" (`toolwire init {path}` writes one)")
    data = read_toml(path, text)
    register_format_files(path, data.get("format_files"))  # first, because the other tables name the formats
    try:
        configuration = Configuration.model_validate(data)
    except ValidationError as error:
        raise refused(path, error, lambda keys: toml_line(text, keys), model=Configuration) from error
    for keys, message in configuration.dangling():
        raise ConfigurationError(f"{path}:{toml_line(text, keys)}: {'.'.join(keys)}: {message}")
    return configuration
