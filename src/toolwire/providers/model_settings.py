"""Settings of a model's answers, and what a client, a backend, an agent or a run adds to requests besides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Literal, TypedDict, cast, get_args

from toolwire._surface import check_items, check_number, check_type
from toolwire.errors import DefinitionError
from toolwire.providers.output_schema import OutputSchema
from toolwire.text.suggest import closest, did_you_mean

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""The effort that a model spends on reasoning before it answers, from none to as much as it can."""

EFFORTS: tuple[Effort, ...] = get_args(Effort)

TYPO = 0.8
"""Similarity to the name of a setting, from 0 to 1, from which an unknown name counts as misspelt."""


class ModelSettings(TypedDict, total=False):
    """Settings of a model's answers; None or a missing key leaves the choice to the API.

    Attributes:
        max_tokens: the maximum length of the answer, in tokens.
        temperature: the sampling temperature.
        top_p: the share of probability that sampling is limited to.
        top_k: the number of most probable tokens that sampling is limited to.
        stop: texts that end the answer.
        seed: makes sampling repeatable, as far as the API can.
        frequency_penalty: reduces the probability of tokens, the more often they occur in the text so far.
        presence_penalty: reduces the probability of all tokens that occur in the text so far.
        reasoning_effort: how much the model reasons, or the maximum number of tokens for it; 0 is "none".
        parallel: whether the model may make several calls in one answer.
        service_tier: "auto", "default", "flex", "priority", or a tier of the API itself.
        metadata: labels of the request, for the provider's logs.
        end_user: an identifier of the person behind the request, by which the provider detects abuse.
        compact_at: the number of tokens from which the server summarises the older conversation.
    """

    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    stop: Iterable[str] | None
    seed: int | None
    frequency_penalty: float | None
    presence_penalty: float | None
    reasoning_effort: Effort | int | None
    parallel: bool | None
    service_tier: str | None
    metadata: Mapping[str, str] | None
    end_user: str | None
    compact_at: int | None


class ModelOptions(TypedDict, total=False):
    """Additions to the requests to a model.

    The innermost count: those of a run, then those of its agent, of the backend, and of the client.

    Attributes:
        settings: settings of its answers. Other names than those of `ModelSettings` become members of the body.
        extra_body: members of the body, merged into it last as a JSON Merge Patch: objects are merged, and None removes
            a member.
        extra_headers: headers, in place of those of the same name.
    """

    settings: ModelSettings | None
    extra_body: Mapping[str, Any] | None
    extra_headers: Mapping[str, str] | None


SETTINGS = frozenset(ModelSettings.__annotations__)


@dataclass(frozen=True, slots=True)
class RequestAdditions:
    """Additions to the requests to a model by one place: a client, a backend, an agent, or a run.

    Attributes:
        settings: the settings, by their names.
        extra_body: members of the body.
        extra_headers: headers, with their names in lower case.
    """

    settings: ModelSettings = field(default_factory=ModelSettings)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> RequestAdditions:
        """Return checked additions; a setting without a known name becomes a member of the body.

        Raises:
            DefinitionError: a value cannot be one of its setting.
            TypeError: an argument is of another type, or a name is almost that of a setting.
        """
        check_type("settings", settings, (Mapping, NoneType), "a dict of settings or None")
        check_type("extra_body", extra_body, (Mapping, NoneType), "a dict of members of the body or None")
        check_type("extra_headers", extra_headers, (Mapping, NoneType), "a dict of headers or None")
        checked_settings: dict[str, Any] = {}
        members: dict[str, Any] = {}
        for name, value in (settings or {}).items():
            if name in SETTINGS:
                checked_settings[name] = checked(name, value)
                continue
            if near := closest(name, SETTINGS, similarity=TYPO):
                raise TypeError(f"there is no setting {name!r}{did_you_mean(near)}")
            members[name] = value
        for name, value in (extra_headers or {}).items():
            check_type(f"the name of the header {name!r}", name, str, "text")
            check_type(f"extra_headers[{name!r}]", value, str, "text")
        headers = {name.lower(): value for name, value in (extra_headers or {}).items()}
        return cls(cast(ModelSettings, checked_settings), merged(members, extra_body or {}), headers)

    def over(self, outer: RequestAdditions) -> RequestAdditions:
        """Return both, where these count before those of `outer`."""
        inner = {name: value for name, value in self.settings.items() if value is not None}
        return RequestAdditions(
            cast(ModelSettings, {**outer.settings, **inner}),
            merged(outer.extra_body, self.extra_body),
            {**outer.extra_headers, **self.extra_headers},
        )


def checked(name: str, value: Any) -> Any:
    """Return the value of a setting. Its range is the API's business, except where no API has another.

    Raises:
        DefinitionError: a value of this setting is something else.
        TypeError: it is of another type.
        ValueError: it is not a number of tokens.
    """
    match name:
        case _ if value is None:
            return None
        case "reasoning_effort":
            return effort_of(value)
        case "stop":
            texts = (value,) if isinstance(value, str) else value
            check_items(name, texts, str, "text, or a list of texts")
            return tuple(texts)
        case "temperature" | "top_p" | "frequency_penalty" | "presence_penalty":
            check_number(name, value, "a number", least=-math.inf)
        case "max_tokens" | "top_k" | "seed":
            check_number(name, value, "a whole number", least=-math.inf, whole=True)
        case "parallel":
            check_type(name, value, bool, "True or False")
        case "service_tier" | "end_user":
            check_type(name, value, str, "text")
        case "output":
            check_type(name, value, OutputSchema, "an OutputSchema; Client.extract takes types and JSON Schemas")
        case "metadata":
            if not is_labels(value):
                raise DefinitionError(f"metadata is a dict of texts, not {value!r:.80}")
            return dict(value)
        case "compact_at":
            check_number(name, value, "a number of tokens", least=1, whole=True)
    return value


def effort_of(value: Any) -> Effort | int:
    """Return an effort; 0 tokens are "none".

    Raises:
        DefinitionError: it is neither a known word nor a number of tokens.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value or "none"
    for effort in EFFORTS:
        if value == effort:
            return effort
    hint = did_you_mean(closest(value, EFFORTS)) if isinstance(value, str) else ""
    raise DefinitionError(f"reasoning_effort is {', '.join(EFFORTS)} or a number of tokens, not {value!r:.80}{hint}")


def is_labels(value: Any) -> bool:
    """Return whether a value is a dict of texts."""
    return isinstance(value, Mapping) and all(isinstance(text, str) for item in value.items() for text in item)


def merged(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """Return both objects as one, member by member; where both have a value that is no object, the inner counts."""
    result = dict(outer)
    for key, value in inner.items():
        before = result.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = merged(before, value)
        result[key] = value
    return result


def patched(body: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body after a JSON Merge Patch (RFC 7396): objects are merged, and None removes a member."""
    result = dict(body)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            before = result.get(key)
            result[key] = patched(before if isinstance(before, Mapping) else {}, value)
        else:
            result[key] = value
    return result
