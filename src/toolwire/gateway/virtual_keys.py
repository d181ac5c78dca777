"""Keys that a gateway gives to its clients, and what each may use. The digests of keys are stored, not the keys."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from toolwire.errors import StateError
from toolwire.gateway.allowances import Allowance
from toolwire.gateway.name_patterns import fits
from toolwire.gateway.state_store import StateStore

PREFIX = "sk-tw-"
"""Beginning of each key: programs that remove secrets from texts know keys that begin like this."""
_KIND, _OWNER = "key", ""


@dataclass(frozen=True, slots=True)
class VirtualKey:
    """A key of a client, without the key itself.

    Attributes:
        id: identifies the key in lists, limits and logs; it is part of the key, and not secret.
        name: whose key it is, for people.
        models: the names of the models that it may ask, with `*` for any text; empty for all.
        allowances: what it may use.
        created_at: when it was made, in seconds since 1970.
        expires_at: when it ends, in seconds since 1970; 0 for never.
        is_revoked: whether it is refused.
    """

    id: str
    name: str
    models: tuple[str, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    created_at: float = 0.0
    expires_at: float = 0.0
    is_revoked: bool = False

    def admits(self, model: str) -> bool:
        """Return whether the key may ask a model."""
        return not self.models or any(fits(model, pattern) for pattern in self.models)


def owner_of(key: str) -> str:
    """Return the name under which what belongs to a key is stored; "" without a key. It does not reveal the key."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest() if key else ""


class VirtualKeys:
    """The keys in a store.

    Args:
        store: the store.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def add(
        self,
        name: str,
        *,
        models: Iterable[str] = (),
        allowances: Iterable[Allowance] = (),
        expires_at: float = 0.0,
    ) -> tuple[str, VirtualKey]:
        """Make a key; return it, and what is stored of it. Only this call returns the key.

        Raises:
            StateError: the store cannot be used.
        """
        id = secrets.token_hex(4)
        key = f"{PREFIX}{id}-{secrets.token_urlsafe(32)}"
        virtual_key = VirtualKey(id, name, tuple(models), tuple(allowances), time.time(), expires_at)
        await self._write(owner_of(key), virtual_key)
        return key, virtual_key

    async def find(self, key: str) -> VirtualKey | None:
        """Return what a key may use; None for one that is unknown, revoked or over.

        Raises:
            StateError: the store cannot be used.
        """
        if not key.startswith(PREFIX):
            return None
        data = await self._store.get(_KIND, _OWNER, owner_of(key))
        virtual_key = None if data is None else _read(data)[1]
        if virtual_key is None or virtual_key.is_revoked:
            return None
        return None if 0 < virtual_key.expires_at <= time.time() else virtual_key

    async def all(self) -> list[VirtualKey]:
        """Return all keys, the oldest first.

        Raises:
            StateError: the store cannot be used.
        """
        keys = [_read(data)[1] for data in await self._store.all(_KIND, _OWNER)]
        return sorted(keys, key=lambda key: key.created_at)

    async def revoke(self, id: str) -> VirtualKey | None:
        """Refuse a key from now on; return it, or None if there is none with this id.

        Raises:
            StateError: the store cannot be used.
        """
        for digest, key in map(_read, await self._store.all(_KIND, _OWNER)):
            if key.id == id:
                revoked = replace(key, is_revoked=True)
                await self._write(digest, revoked)
                return revoked
        return None

    async def _write(self, digest: str, key: VirtualKey) -> None:
        data = json.dumps({"digest": digest, **asdict(key)}, ensure_ascii=False).encode()
        await self._store.put(_KIND, _OWNER, digest, data)


def _read(data: bytes) -> tuple[str, VirtualKey]:
    try:
        members = json.loads(data)
        digest = str(members.pop("digest"))
        allowances = tuple(Allowance(**allowance) for allowance in members.pop("allowances"))
        return digest, VirtualKey(**{**members, "models": tuple(members["models"]), "allowances": allowances})
    except (ValueError, TypeError, KeyError) as error:
        raise StateError("the gateway's store contains a key that this version cannot read") from error
