"""A store of the gateway in Valkey or Redis."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis.asyncio
from redis.exceptions import RedisError

from toolwire.errors import ConfigurationError, StateError
from toolwire.gateway.state_store import surplus

_PREFIX = "toolwire:gateway"


class ValkeyStore:
    """A `StateStore` on a server of Valkey or Redis. The server must not evict keys, and should write to its disk.

    Documents of an owner are in one hash, their order and sizes in two more structures; those with an end have keys of
    their own, which the server deletes.

    Args:
        url: `valkey://SERVER:PORT/NUMBER`, `valkeys://` for TLS, or `valkey+unix:///PATH` for a socket; with `redis` in
            place of `valkey` (and `rediss` for TLS) it means the same.

    Raises:
        ConfigurationError: the URL cannot be read.
    """

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        # The driver has other names for the schemes, and for a socket in the file system.
        driver_scheme = "unix" if scheme.endswith("+unix") else "rediss" if scheme in ("valkeys", "rediss") else "redis"
        try:
            self._client: Any = redis.asyncio.Redis.from_url(f"{driver_scheme}://{rest}")
        except ValueError as error:
            raise ConfigurationError("this is not the URL of a server, such as valkey://127.0.0.1:6379/0") from error

    async def put(self, kind: str, owner: str, name: str, data: bytes, *, seconds: float = 0) -> None:
        """See `StateStore`."""
        index, sizes = _index(kind, owner), _sizes(kind, owner)
        with _reported():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.set(_document(kind, owner, name), data, px=round(seconds * 1000) if seconds else None)
                pipe.zadd(index, {name: time.time()})
                pipe.hset(sizes, name, len(data))
                if seconds:
                    pipe.expire(index, round(seconds) + 1)
                    pipe.expire(sizes, round(seconds) + 1)
                    pipe.zrevrange(index, 0, -1)
                    pipe.hgetall(sizes)
                answers = await pipe.execute()
            if not seconds:
                return
            names, size_of = answers[-2], answers[-1]
            newest_first = ((key.decode(), int(size_of.get(key, 0))) for key in names)
            for surplus_name in surplus(newest_first):
                await self.delete(kind, owner, surplus_name)

    async def get(self, kind: str, owner: str, name: str) -> bytes | None:
        """See `StateStore`."""
        with _reported():
            data: bytes | None = await self._client.get(_document(kind, owner, name))
        return data

    async def delete(self, kind: str, owner: str, name: str) -> bool:
        """See `StateStore`."""
        with _reported():
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.delete(_document(kind, owner, name))
                pipe.zrem(_index(kind, owner), name)
                pipe.hdel(_sizes(kind, owner), name)
                return bool((await pipe.execute())[0])

    async def all(self, kind: str, owner: str) -> list[bytes]:
        """See `StateStore`."""
        with _reported():
            names = [name.decode() for name in await self._client.zrange(_index(kind, owner), 0, -1)]
            if not names:
                return []
            documents = await self._client.mget([_document(kind, owner, name) for name in names])
        return [document for document in documents if document is not None]

    async def add(self, counter: str, amount: int, *, seconds: float) -> int:
        """See `StateStore`."""
        name = f"{_PREFIX}:counter:{counter}"
        with _reported():
            async with self._client.pipeline(transaction=True) as pipe:
                # The end of a counter is that of its first addition; `EXPIRE NX` needs Redis 7.
                pipe.set(name, 0, ex=math.ceil(seconds), nx=True)
                pipe.incrby(name, amount)
                return int((await pipe.execute())[1])

    async def close(self) -> None:
        """See `StateStore`."""
        with _reported():
            await self._client.aclose()


def _document(kind: str, owner: str, name: str) -> str:
    # The length of the owner separates it from the name, whatever characters they contain.
    return f"{_PREFIX}:{kind}:{len(owner)}:{owner}:{name}"


def _index(kind: str, owner: str) -> str:
    return f"{_PREFIX}:{kind}-index:{owner}"


def _sizes(kind: str, owner: str) -> str:
    return f"{_PREFIX}:{kind}-sizes:{owner}"


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise StateError(f"the gateway's store cannot be used: {type(error).__name__}") from error
