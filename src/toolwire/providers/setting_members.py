"""The members of a body that settings are written to and read from.

A table of an API has the path of each member, with dots between the names, and the setting that it is for. A setting
may have several members: the first is written, and all are read. Effort and service tier have tables of their own,
because each API has its own words for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from toolwire.providers.member_paths import MISSING, member, with_member, without_member
from toolwire.providers.message_parts import Json
from toolwire.providers.model_settings import ModelSettings, is_labels
from toolwire.providers.reasoning_effort import IMPLIED, ReasoningMembers
from toolwire.providers.request import ChatRequest, Notes
from toolwire.providers.server_compaction import MEMBER, ServerCompaction

_CONTAINERS = frozenset(
    (
        *("additionalModelRequestFields", "chat_template_kwargs", "generationConfig", "inferenceConfig", "options"),
        *("outputConfig", "output_config", "reasoning", "thinking", "thinkingConfig"),
    )
)
"""Members that contain settings, beside members that are none."""


def private_members(request: ChatRequest) -> Iterator[str]:
    """Yield the paths of the members that only the API has from which a request was read."""
    return _private(request.extra, "", has_effort=request.reasoning_effort is not None)


def _private(members: Mapping[str, Any], above: str, *, has_effort: bool) -> Iterator[str]:
    for name, value in members.items():
        path = above + name
        if name in _CONTAINERS and isinstance(value, Mapping) and value:
            yield from _private(value, f"{path}.", has_effort=has_effort)
        elif not (has_effort and value in IMPLIED.get(path, ())):
            yield path


class Api(Protocol):
    """The names of an API; see `ProviderApi`."""

    name: str
    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class SettingMembers:
    """The members of an API's body for settings.

    Attributes:
        paths: settings, by the paths of their members.
        reasoning: the members for the effort of reasoning; None if there are none.
        tiers: the API's words for service tiers, by ours; None if it takes any word.
        parallel: whether the API can be asked for calls one at a time. Its own code writes that, since it depends on
            the tools.
        compaction: how the server is asked for compaction; None if it cannot be asked.
    """

    paths: Mapping[str, str] = field(default_factory=dict)
    reasoning: ReasoningMembers | None = None
    tiers: Mapping[str, str] | None = None
    parallel: bool = True
    compaction: ServerCompaction | None = None

    def takes(self, name: str) -> bool:
        """Return whether the API has a setting."""
        match name:
            case "reasoning_effort":
                return self.reasoning is not None
            case "parallel":
                return self.parallel
            case "compact_at":
                return self.compaction is not None
        return name in self.paths.values()

    def write(self, body: Json, request: ChatRequest, api: Api, notes: Notes) -> Json:
        """Return a body with the settings of a request.

        Args:
            body: the body without them.
            request: the request.
            api: the API.
            notes: collects settings that the API does not have.
        """
        for name in ModelSettings.__annotations__:
            value = getattr(request, name)
            if value in (None, (), {}):
                continue
            if not self.takes(name):
                notes.dropped(name, f"{api.name} has no setting for it")
            elif name == "reasoning_effort":
                body = self._write_effort(body, request, api, notes)
            elif name == "service_tier":
                body = self._write_tier(body, request, api, notes)
            elif name == "compact_at":
                body = self._write_compaction(body, request, api, notes)
            elif name != "parallel":
                body = with_member(body, self._path(name), list(value) if isinstance(value, tuple) else value)
        return body

    def _path(self, name: str) -> str:
        """Return the path of the member that a setting is written to."""
        return next(path for path, setting in self.paths.items() if setting == name)

    def _write_effort(self, body: Json, request: ChatRequest, api: Api, notes: Notes) -> Json:
        reasoning, effort = self.reasoning, request.reasoning_effort
        assert reasoning is not None and effort is not None
        members, difference = reasoning.write(effort, request.model)
        if difference:
            notes.changed("reasoning_effort", f"{api.name}: {difference}")
        tokens, limit = members.get(reasoning.budget, 0), request.max_tokens
        if reasoning.within_answer and limit is not None and tokens >= limit:
            if limit <= reasoning.least:
                notes.dropped(
                    "reasoning_effort", f"{api.name} requires more than {reasoning.least} tokens as max_tokens"
                )
                return body
            members = {**members, reasoning.budget: limit - 1}
            notes.changed("reasoning_effort", f"{api.name} requires fewer tokens than max_tokens: they are {limit - 1}")
        for path, value in members.items():
            # A body of this API says itself, beside a level, whether the model thinks at all.
            if not (request.provider == api.kind and reasoning.level in members and path in reasoning.with_level):
                body = with_member(body, path, value)
        return body

    def _write_tier(self, body: Json, request: ChatRequest, api: Api, notes: Notes) -> Json:
        tier, tiers = request.service_tier or "", self.tiers
        if tiers is not None and tier in tiers:
            tier = tiers[tier]
        elif tiers is not None and tier not in tiers.values() and request.provider != api.kind:
            notes.dropped("service_tier", f"{api.name} has no tier {tier!r}; it has {', '.join(tiers.values())}")
            return body
        return with_member(body, self._path("service_tier"), tier)

    def _write_compaction(self, body: Json, request: ChatRequest, api: Api, notes: Notes) -> Json:
        compaction, tokens = self.compaction, request.compact_at
        assert compaction is not None and tokens is not None
        if tokens < compaction.least:
            # The server would refuse the whole request; later than asked is better than never.
            tokens = compaction.least
            notes.changed("compact_at", f"{api.name} requires at least {tokens} tokens")
        return with_member(body, MEMBER, compaction.write(tokens))

    def read(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], Json]:
        """Return the settings of a body, and the body without them; what cannot be a setting stays there.

        Raises:
            TypeError: a member that contains settings is not an object.
        """
        containers = {path.partition(".")[0] for path in self.paths if "." in path}
        for name in containers:
            if not isinstance(body.get(name), Mapping | None):
                raise TypeError(f"{name} is not an object")
        rest = dict(body)
        fields: dict[str, Any] = {}
        for path, name in self.paths.items():
            value = member(body, path)
            if value is None or value in ([], {}):
                rest = without_member(rest, path)
            elif name not in fields and (setting := self._read(name, value)) is not None:
                fields[name] = setting
                rest = without_member(rest, path)
        # Other edits of the context than compaction stay in the body as they are.
        if self.compaction is not None and (tokens := self.compaction.read(body.get(MEMBER))) is not None:
            fields["compact_at"] = tokens
            rest = without_member(rest, MEMBER)
        if self.reasoning is not None:
            effort, paths = self.reasoning.read(body)
            if effort is not None:
                fields["reasoning_effort"] = effort
            for path in paths:
                rest = without_member(rest, path)
        return fields, {name: value for name, value in rest.items() if not (name in containers and value == {})}

    def _read(self, name: str, value: Any) -> Any:
        """Return the value of a setting; None for one that it cannot have."""
        match name, value:
            case _, _ if value is MISSING:
                return None
            case "stop", str() if value:
                return (value,)
            case "stop", list() if value and all(isinstance(text, str) for text in value):
                return tuple(value)
            case "metadata", {} if value and is_labels(value):
                return dict(value)
            case "service_tier", str():
                return next((tier for tier, word in (self.tiers or {}).items() if word == value), value)
            case "end_user", str():
                return value
            case "max_tokens", int() if not isinstance(value, bool) and value > 0:
                return value
            case (("stop" | "metadata" | "service_tier" | "end_user" | "max_tokens"), _):
                return None
            case _, int() | float() if not isinstance(value, bool):
                return value
        return None
