"""Events and problems of an answer without the secrets of the request that a server may quote in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from toolwire.client.response_body import without_secrets
from toolwire.events import Event, ProblemFound
from toolwire.messages import Problem


def without_secrets_in(event: Event, secrets: Mapping[str, str]) -> Event:
    """Return an event without secrets; `secrets` has them by the names that replace them."""
    return ProblemFound(hidden_in(event.problem, secrets)) if isinstance(event, ProblemFound) else event


def hidden_in(problem: Problem, secrets: Mapping[str, str]) -> Problem:
    """Return a problem without secrets: its message may quote the server, and its text is the server's."""
    return hidden_by(problem, partial(without_secrets, secrets=secrets))


def hidden_by(problem: Problem, hide: Callable[[str], str]) -> Problem:
    """Return a problem without what a function removes from texts of the server."""
    return replace(problem, message=hide(problem.message), raw=hide(problem.raw))
