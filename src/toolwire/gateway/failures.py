"""Failures of the gateway and of its backends, and the requests that are too long for a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.errors import ToolwireError
from toolwire.providers.failure_kinds import INVALID, NO_KEY, TOO_LONG, UNREACHABLE, FailureKind, kind_of_status

UNSUPPORTED = FailureKind(400, INVALID.openai_type, "unsupported_parameter", INVALID.anthropic, INVALID.gemini)
NO_METHOD = FailureKind(405, INVALID.openai_type, "method_not_allowed", INVALID.anthropic, "INVALID_ARGUMENT")
UNKNOWN_ENCODING = FailureKind(415, INVALID.openai_type, "unsupported_encoding", INVALID.anthropic, "INVALID_ARGUMENT")
NO_WEBSOCKET = FailureKind(426, INVALID.openai_type, "upgrade_required", INVALID.anthropic, "FAILED_PRECONDITION")
HEAD_TOO_LARGE = FailureKind(431, INVALID.openai_type, "headers_too_large", INVALID.anthropic, "INVALID_ARGUMENT")


@dataclass(frozen=True, slots=True)
class Overflow:
    """The sizes of a request that does not fit into a model's context, in tokens; 0 for an unknown one.

    Attributes:
        requested: the tokens of the prompt.
        limit: the model's limit.
        output: the tokens that were asked for as an answer; 0 if the prompt alone is too long.
    """

    requested: int = 0
    limit: int = 0
    output: int = 0

    def for_anthropic(self) -> str:
        """Return the words by which clients of Anthropic recognise an overflow, and shorten the conversation."""
        if self.output and self.requested <= self.limit:
            return (
                f"input length and `max_tokens` exceed context limit: {self.requested} + {self.output} > {self.limit}, "
                "decrease input length or `max_tokens` and try again"
            )
        limit = self.limit or max(self.requested - 1, 0)
        return f"prompt is too long: {max(self.requested, limit + 1)} tokens > {limit} maximum"


class GatewayFailure(ToolwireError):
    """A request that is not answered.

    Attributes:
        kind: the kind.
        status: the HTTP status.
        retry_after: the header `Retry-After`; "" for none.
        overflow: the sizes of a request that is too long for its model; None for any other failure.
        parameter: the member of the request that is refused; "" if it is not a single one.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int = 0,
        retry_after: str = "",
        overflow: Overflow | None = None,
        parameter: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status or kind.status
        self.retry_after = retry_after
        self.overflow = overflow
        self.parameter = parameter

    @property
    def is_temporary(self) -> bool:
        """True if the same request may succeed later, or at another backend."""
        return self.kind is NO_KEY or self.status in (404, 408, 409, 425, 429) or self.status >= 500


_OVERFLOWS = (
    re.compile(r"context_length_exceeded|context length|context window|context limit|context size", re.IGNORECASE),
    re.compile(
        r"prompt is too long|input is too long|too many (?:input )?tokens|input length|exceeds? the .{0,40}token"
    ),
)
_LIMIT = re.compile(
    r"""(?:maximum|max|limit|context(?:\ length|\ window|\ size)?)\D{0,40}?(?:is|of|>|=|:|\()?\s*(?P<behind>\d{3,9})
      | (?P<before>\d{3,9})\ (?:tokens\ )?max(?:imum)?""",
    re.IGNORECASE | re.VERBOSE,
)
_PARTS = re.compile(r"(\d{2,9}) (?:in|of) the (?:messages|input|prompt)\D{1,20}(\d{1,9}) in the completion")
_REQUESTED = re.compile(
    r"(?:requested|resulted in|contains|has|too long:?|length|request|prompt)\D{0,24}?(\d{3,9})\s*(?:input )?tokens",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"\d{3,9}")


def overflow_in(message: str) -> Overflow | None:
    """Return the sizes that a backend's error names; None if the error is not about the length of the context."""
    if not any(pattern.search(message) for pattern in _OVERFLOWS):
        return None
    plain = message.replace(",", "").replace("_", " ")
    parts, limit, requested = _PARTS.search(plain), _LIMIT.search(plain), _REQUESTED.search(plain)
    size = int(limit["behind"] or limit["before"]) if limit else 0
    if parts is not None:
        return Overflow(int(parts[1]), size, int(parts[2]))
    if requested is not None and int(requested[1]) != size:
        return Overflow(int(requested[1]), size)
    numbers = [int(number) for number in _NUMBERS.findall(plain) if int(number) != size]
    return Overflow(max(numbers, default=0), size)


def backend_failure(backend: str, status: int, body: bytes, retry_after: str, message: str) -> GatewayFailure:
    """Return the failure that a backend's answer stands for.

    Args:
        backend: the backend's name, for the message.
        status: the HTTP status of the answer.
        body: the answer's body.
        retry_after: the header `Retry-After`; "" for none.
        message: the body's message without secrets.
    """
    text = f"{backend} answered {status}: {message}"
    if status in (400, 413, 422, 500) and (overflow := overflow_in(_code_of(body) + " " + message)) is not None:
        return GatewayFailure(TOO_LONG, text, overflow=overflow)
    if not 400 <= status < 600:
        return GatewayFailure(UNREACHABLE, text)
    return GatewayFailure(kind_of_status(status), text, status=status, retry_after=retry_after)


def _code_of(body: bytes) -> str:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = value.get("error") if isinstance(value, Mapping) else None
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, str) else ""
