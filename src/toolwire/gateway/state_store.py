"""The state that gateways of one store share: documents by name, and counters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Protocol

from toolwire._surface import needs_extra
from toolwire.errors import ConfigurationError, StateError
from toolwire.runtime.state_dir import state_folder
from toolwire.text.redaction import redact

_FILE = "gateway.sqlite3"
IN_MEMORY = "sqlite://"
"""The URL of a store that ends with the process."""

MAX_DOCUMENTS = 1_000
"""Maximum number of documents of one owner and kind; the oldest ones are deleted."""
MAX_OWNED_BYTES = 64 << 20
"""Maximum size of the documents of one owner and kind, in bytes; the oldest ones are deleted."""


class StateStore(Protocol):
    """Documents and counters that several processes share.

    A document has a kind, an owner and a name. Documents of other owners cannot be read by mistake, because each
    method names the owner.

    All methods raise `StateError` if the store cannot be reached or used.
    """

    async def put(self, kind: str, owner: str, name: str, data: bytes, *, seconds: float = 0) -> None:
        """Store a document, in place of one of the same name.

        Args:
            kind: the kind of the document.
            owner: whose document it is.
            name: its name.
            data: its content.
            seconds: the time after which it may be deleted; then the oldest documents of an owner are deleted too, as
                soon as there are too many. 0 to keep it.
        """
        ...

    async def get(self, kind: str, owner: str, name: str) -> bytes | None:
        """Return a document; None if there is none, or its time is over."""
        ...

    async def delete(self, kind: str, owner: str, name: str) -> bool:
        """Delete a document, and return whether it existed."""
        ...

    async def all(self, kind: str, owner: str) -> list[bytes]:
        """Return the documents of a kind and owner, the oldest first."""
        ...

    async def add(self, counter: str, amount: int, *, seconds: float) -> int:
        """Add to a counter and return its value; other processes may add to it at the same time.

        Args:
            counter: the counter's name; it begins at 0.
            amount: the number to add; may be negative.
            seconds: the time after which the counter is deleted, from its first use.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def surplus(newest_first: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yield the names of the documents of one owner that are too many.

    Args:
        newest_first: the name and the size of each document, in bytes.
    """
    total = 0
    for position, (name, size) in enumerate(newest_first):
        total += size
        # The newest document stays, whatever its size.
        if position and (position >= MAX_DOCUMENTS or total > MAX_OWNED_BYTES):
            yield name


def failure_for_operators(error: StateError) -> str:
    """Return the message of a failed store with the reason that its driver gives, which clients do not see.

    It is the first line of the driver's message: values of a statement come later. Secrets are redacted.
    """
    cause = error.__cause__
    reason = next(iter(str(getattr(cause, "orig", None) or cause or "").strip().splitlines()), "")
    return str(error) if reason in str(error) else f"{error}: {redact(reason):.300}"


def open_store(url: str = "") -> StateStore:
    """Return the store of a URL; it connects when it is first used.

    Args:
        url: `sqlite:///PATH`, `postgresql://SERVER/DATABASE`, `valkey://SERVER`, `redis://SERVER`; "sqlite://" for a
            store that ends with the process; "" for a file of this user.

    Raises:
        ConfigurationError: the URL is that of something else.
        MissingExtra: the driver is not installed.
    """
    url = url or f"sqlite:///{state_folder() / _FILE}"
    scheme = url.partition(":")[0].partition("+")[0]
    match scheme:
        case "sqlite" | "postgresql" | "postgres":
            with needs_extra("A store of the gateway", "gateway"):
                from toolwire.gateway.sql_store import SqlStore
            return SqlStore(url)
        case "redis" | "rediss" | "valkey" | "valkeys":
            with needs_extra("A store in Valkey", "valkey"):
                from toolwire.gateway.valkey_store import ValkeyStore
            return ValkeyStore(url)
    raise ConfigurationError(
        f"the gateway's store is sqlite:///PATH, postgresql://SERVER/DATABASE or valkey://SERVER, not {scheme!r:.40}"
    )


@asynccontextmanager
async def opened_store(url: str = "") -> AsyncIterator[StateStore]:
    """Open a store for a block; see `open_store`."""
    store = open_store(url)
    try:
        yield store
    finally:
        await store.close()
