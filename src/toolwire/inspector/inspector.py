"""The inspector of a gateway: it records exchanges, and forgets content where it must not be kept."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from toolwire.inspector.exchange_ring import EXCHANGES, MEMORY, ExchangeRing
from toolwire.inspector.exchange_summary import Json, figures_of, row_of, session_of
from toolwire.inspector.exchange_view import view_of
from toolwire.inspector.recorded_exchange import Exchange, State

Resend = Callable[[Exchange, str], Awaitable[str]]
"""Sends the request of an exchange once more, to a model, and returns the id of the new exchange."""
ListModels = Callable[[], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class InspectorOptions:
    """Limits of the inspector, and its key.

    Attributes:
        key: the key of the page; a random one by default.
        content: whether the content of requests and answers is kept; otherwise names and figures are.
        exchanges: maximum number of requests that are kept.
        memory: maximum size of all of them, in MiB.
    """

    key: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    content: bool = True
    exchanges: int = EXCHANGES
    memory: int = MEMORY


class Inspector:
    """The exchanges of a gateway, or of a file, for the page that shows them.

    Args:
        options: what is kept, and the key of the page.

    Attributes:
        options: the same.
        ring: the exchanges of this process.
        stored: views of exchanges from a file, by their ids.
        source: the name of the file; "" for a gateway.
        resend: sends a request once more; None where there is no gateway.
        list_models: returns the models that a request can be sent to.
        is_closing: whether the server ends, so that no page waits for changes any more.
    """

    def __init__(self, options: InspectorOptions | None = None) -> None:
        self.options = options or InspectorOptions()
        self.ring = ExchangeRing(self.options.exchanges, self.options.memory)
        self.stored: dict[str, Json] = {}
        self.source = ""
        self.resend: Resend | None = None
        self.list_models: ListModels | None = None
        self.is_closing = False

    def begin(
        self, id: str, client_api: str, path: str, query: str, headers: Mapping[str, str], *, resent_from: str = ""
    ) -> Exchange:
        """Return the exchange of a request that begins."""
        return self.ring.begin(id, client_api, path, query, headers, resent_from=resent_from)

    def end(self, exchange: Exchange, state: State) -> None:
        """Record the end of an exchange."""
        if not self.options.content:
            exchange.state = state
            figures_of(exchange)
            exchange.forget_content()
        self.ring.end(exchange, state)

    def close(self) -> None:
        """End the feeds of all pages."""
        self.is_closing = True
        self.ring.wake()

    def add_view(self, view: Json) -> None:
        """Add the view of an exchange from a file; one whose id is not new gets another."""
        number, id = len(self.stored) + 1, str(view["row"].get("id") or "request")
        id = id if id not in self.stored else f"{id}#{number}"
        self.stored[id] = {**view, "row": {**view["row"], "id": id, "number": number}}
        self.ring.number = number

    def ids(self) -> list[str]:
        """Return the ids of all exchanges, the oldest first."""
        return [*self.stored, *(exchange.id for exchange in self.ring)]

    def rows(self, before: int, limit: int) -> list[Json]:
        """Return the rows of the newest exchanges whose numbers are lower than `before`, the newest first."""
        stored = [view["row"] for view in reversed(self.stored.values()) if view["row"]["number"] < before]
        recorded = [exchange for exchange in self.ring if exchange.number < before][-limit:]
        return [*(row_of(exchange) for exchange in reversed(recorded)), *stored][:limit]

    def rows_since(self, version: int) -> list[Json]:
        """Return the rows of the exchanges that are running, or have changed since a version, the oldest first."""
        return [row_of(each) for each in self.ring if each.version > version or each.state == "running"]

    def view(self, id: str, *, start: int = 0, format: str | None = None) -> Json | None:
        """Return the view of an exchange; None if there is none of this id. See `view_of`."""
        if id in self.stored:
            return self.stored[id]
        exchange = self.ring.find(id)
        if exchange is None:
            return None
        previous = None if start else self._previous(exchange)
        return view_of(exchange, previous, start=start, format=format)

    def _previous(self, exchange: Exchange) -> Exchange | None:
        """Return the last request before this one in the same session, which continues the same conversation.

        Clients send other requests in between, such as one for a title; those have other instructions, and are skipped
        if an earlier one has the same number of tools.
        """
        session = session_of(exchange)
        if not session:
            return None
        earlier = [
            each for each in self.ring if each.number < exchange.number and session_of(each) == session and each.body
        ]
        same_path = [each for each in earlier if each.path == exchange.path and _tools_in(each) == _tools_in(exchange)]
        candidates = same_path or earlier
        return candidates[-1] if candidates else None


def _tools_in(exchange: Exchange) -> int:
    tools = exchange.body.get("tools") if isinstance(exchange.body, dict) else None
    return len(tools) if isinstance(tools, list) else 0
