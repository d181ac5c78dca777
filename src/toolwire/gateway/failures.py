"""Failures of the gateway and of its backends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from traceback import clear_frames
from typing import Any

from toolwire.errors import ToolwireError
from toolwire.messages import Problem
from toolwire.providers.context_overflow import STATUSES, Overflow, overflow_in, recognisable
from toolwire.providers.failure_kinds import (
    INTERNAL,
    INVALID,
    NO_KEY,
    TOO_LONG,
    UNREACHABLE,
    FailureKind,
    kind_of_problem,
    kind_of_status,
)

UNSUPPORTED = FailureKind(400, INVALID.openai_type, "unsupported_parameter", INVALID.anthropic, INVALID.gemini)
NO_METHOD = FailureKind(405, INVALID.openai_type, "method_not_allowed", INVALID.anthropic, "INVALID_ARGUMENT")
UNKNOWN_ENCODING = FailureKind(415, INVALID.openai_type, "unsupported_encoding", INVALID.anthropic, "INVALID_ARGUMENT")
NO_WEBSOCKET = FailureKind(426, INVALID.openai_type, "upgrade_required", INVALID.anthropic, "FAILED_PRECONDITION")
HEAD_TOO_LARGE = FailureKind(431, INVALID.openai_type, "headers_too_large", INVALID.anthropic, "INVALID_ARGUMENT")


class GatewayFailure(ToolwireError):
    """A request that is not answered.

    Attributes:
        kind: the kind.
        status: the HTTP status.
        retry_after: the header `Retry-After`; "" for none.
        overflow: the sizes of a request that is too long for its model; None for any other failure.
        parameter: the member of the request that is refused; "" if it is not a single one.
        is_own: whether the gateway refuses the request itself, so that the failure says nothing about a backend.
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
        is_own: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status or kind.status
        self.retry_after = retry_after
        self.overflow = overflow
        self.parameter = parameter
        self.is_own = is_own

    @property
    def is_temporary(self) -> bool:
        """True if the same request may succeed later, or at another backend."""
        return self.kind is NO_KEY or self.status in (404, 408, 409, 425, 429) or self.status >= 500


def release_frames(error: BaseException) -> None:
    """Remove the tracebacks of a handled error and of its causes.

    An error that a function stores in a variable refers to that variable by its traceback. Such a cycle would keep the
    request, which may be large, until the next full garbage collection.
    """
    causes: list[BaseException | None] = [error]
    released = set[int]()
    while causes:
        cause = causes.pop()
        if cause is not None and id(cause) not in released:
            released.add(id(cause))
            clear_frames(cause.__traceback__)
            cause.__traceback__ = None
            causes += (cause.__cause__, cause.__context__)
            if isinstance(cause, BaseExceptionGroup):
                causes += cause.exceptions


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
    if status in STATUSES and (overflow := overflow_in(_code_of(body) + " " + message)) is not None:
        return GatewayFailure(TOO_LONG, recognisable(text), overflow=overflow)
    if not 400 <= status < 600:
        return GatewayFailure(UNREACHABLE, text)
    return GatewayFailure(kind_of_status(status), text, status=status, retry_after=retry_after)


def failure_in_answer(problem: Problem, backend: str = "") -> GatewayFailure:
    """Return the failure that an error of the provider in place of an answer stands for.

    Args:
        problem: the error.
        backend: the backend's name, for the message; "" if the message has it.
    """
    kind = kind_of_problem(problem)
    text = f"{backend}: {problem.message}" if backend else problem.message
    if kind is TOO_LONG:
        return GatewayFailure(kind, recognisable(text), overflow=overflow_in(problem.message) or Overflow())
    return GatewayFailure(UNREACHABLE if kind is INTERNAL else kind, text)


def _code_of(body: bytes) -> str:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = value.get("error") if isinstance(value, Mapping) else None
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, str) else ""
