"""Kinds of failures: the words of each API for them, and the kind that a provider's error belongs to.

A stream has no HTTP status. By these words alone, clients tell a failure after which they ask again from one that would
only happen again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.messages import Problem
from toolwire.providers.context_overflow import CODE, STATUSES, overflow_in

_STATUS = re.compile(r"[45]\d\d", re.ASCII)
"""The HTTP status of a failure."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A kind of failure.

    Attributes:
        status: the HTTP status, unless a provider answered with another.
        openai_type: the member `type` of OpenAI's errors.
        openai_code: the member `code` of OpenAI's errors; "" for null.
        anthropic: the member `type` of Anthropic's errors.
        gemini: the member `status` of Gemini's errors.
        aws: the exception in streams of Amazon Bedrock.
    """

    status: int
    openai_type: str
    openai_code: str
    anthropic: str
    gemini: str
    aws: str = "validationException"

    @property
    def is_temporary(self) -> bool:
        """True if the same request may succeed later."""
        return self is not NO_BUDGET and (self.status >= 500 or self.status == 429)


_INVALID, _SERVER = "invalid_request_error", "server_error"

INVALID = FailureKind(400, _INVALID, "", _INVALID, "INVALID_ARGUMENT")
TOO_LONG = FailureKind(400, _INVALID, CODE, _INVALID, "INVALID_ARGUMENT")
NO_KEY = FailureKind(401, _INVALID, "invalid_api_key", "authentication_error", "UNAUTHENTICATED")
FORBIDDEN = FailureKind(403, _INVALID, "permission_denied", "permission_error", "PERMISSION_DENIED")
NOT_FOUND = FailureKind(404, _INVALID, "not_found", "not_found_error", "NOT_FOUND")
UNKNOWN_MODEL = FailureKind(404, _INVALID, "model_not_found", "not_found_error", "NOT_FOUND")
BODY_TOO_LARGE = FailureKind(413, _INVALID, "request_too_large", "request_too_large", "INVALID_ARGUMENT")
RATE_LIMIT = FailureKind(
    429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED", "throttlingException"
)
NO_BUDGET = FailureKind(429, "insufficient_quota", "insufficient_quota", "billing_error", "RESOURCE_EXHAUSTED")
INTERNAL = FailureKind(500, _SERVER, "", "api_error", "INTERNAL", "internalServerException")
UNREACHABLE = FailureKind(502, _SERVER, "", "api_error", "UNAVAILABLE", "modelStreamErrorException")
UNAVAILABLE = FailureKind(503, _SERVER, "", "overloaded_error", "UNAVAILABLE", "serviceUnavailableException")
TIMED_OUT = FailureKind(504, _SERVER, "", "timeout_error", "DEADLINE_EXCEEDED", "modelStreamErrorException")

_BY_STATUS = {
    **{kind.status: kind for kind in (INVALID, NO_KEY, FORBIDDEN, NOT_FOUND, BODY_TOO_LARGE, RATE_LIMIT)},
    **{kind.status: kind for kind in (INTERNAL, UNREACHABLE, UNAVAILABLE, TIMED_OUT)},
    402: NO_BUDGET,
    # A timeout, a conflict with another request, and a request that came too early: each may succeed later.
    408: TIMED_OUT,
    409: UNAVAILABLE,
    425: UNAVAILABLE,
    529: UNAVAILABLE,
}
_WORDS = {
    400: f"invalid_request_error invalid_argument failed_precondition invalid_prompt {CODE} validationexception",
    401: "authentication_error unauthenticated invalid_api_key",
    402: "billing_error insufficient_quota",
    403: "permission_error permission_denied accessdeniedexception",
    404: "not_found_error not_found model_not_found resourcenotfoundexception",
    413: "request_too_large",
    429: "rate_limit_error rate_limit_exceeded resource_exhausted too_many_requests throttlingexception",
    500: "api_error server_error internal internal_error internalserverexception",
    502: "modelstreamerrorexception",
    503: "overloaded_error overloaded server_is_overloaded slow_down unavailable serviceunavailableexception",
    504: "timeout_error deadline_exceeded modeltimeoutexception",
}
_BY_NAME = {word: status for status, words in _WORDS.items() for word in words.split()}
"""Statuses by the words, in lower case, that stand for a failure in an API."""
_BY_CODE = {
    kind.openai_code: kind
    for kind in (TOO_LONG, NO_KEY, FORBIDDEN, NOT_FOUND, UNKNOWN_MODEL, BODY_TOO_LARGE, RATE_LIMIT, NO_BUDGET)
}
_MAX_WORD = 100
"""Maximum length of the word for an error, in characters."""


def kind_of_status(status: int) -> FailureKind:
    """Return the kind that an HTTP status from 400 on belongs to."""
    return _BY_STATUS.get(status) or (INVALID if status < INTERNAL.status else INTERNAL)


def kind_of_problem(problem: Problem) -> FailureKind:
    """Return the kind that the error of a provider belongs to: by its own word, by its message, or by its status."""
    if (kind := _BY_CODE.get(problem.code.lower())) is not None:
        return kind
    if problem.status in (0, *STATUSES) and overflow_in(problem.message) is not None:
        return TOO_LONG
    return kind_of_status(problem.status or INTERNAL.status)


def code_of(error: Any) -> str:
    """Return the word by which the error of a provider names its kind; "" if it has none."""
    if not isinstance(error, Mapping):
        return ""
    words = (error.get(name) for name in ("code", "status", "type"))
    named = [word for word in words if isinstance(word, str) and word and not _STATUS.fullmatch(word)]
    return named[0][:_MAX_WORD] if named else ""


def status_of(error: Any) -> int:
    """Return the HTTP status that the error of a provider stands for, by its members; 0 if they name none."""
    if not isinstance(error, Mapping):
        return 0
    for name in ("status_code", "code", "status", "type"):
        word = str(error.get(name) or "").lower()
        status = int(word) if _STATUS.fullmatch(word) else _BY_NAME.get(word, 0)
        if status:
            return status
    return 0
