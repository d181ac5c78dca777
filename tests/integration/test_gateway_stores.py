"""The gateway's stores: SQLite, PostgreSQL and Valkey behave alike, and gateways that share one do not overspend."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration import postgres, valkey
from tests.unit.gateway.gateway_calls import Scripted, asked, request

from toolwire import ContentDelta, Finish, FinishReason, Usage
from toolwire.agent.prices import Prices
from toolwire.errors import ConfigurationError, StateError
from toolwire.events import UsageCounted
from toolwire.gateway import state_store
from toolwire.gateway.access import Access
from toolwire.gateway.allowances import Allowance
from toolwire.gateway.app import Gateway
from toolwire.gateway.key_spending import KeySpending
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.state_store import IN_MEMORY, StateStore, failure_for_operators, open_store, opened_store
from toolwire.gateway.virtual_keys import VirtualKeys


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    with postgres.serving() as url:
        # The database of the URL does not exist yet in a new server; the one that always exists does.
        yield url.replace("/toolwire?", "/postgres?")


@pytest.fixture(scope="module")
def valkey_url() -> Iterator[str]:
    with valkey.serving() as url:
        yield url


@pytest.fixture(params=["memory", "sqlite", "postgres", "valkey"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store of each kind."""
    match request.param:
        case "memory":
            return IN_MEMORY
        case "sqlite":
            return f"sqlite:///{tmp_path / 'state.sqlite3'}"
        case kind:
            return str(request.getfixturevalue(f"{kind}_url"))


def with_store(url: str, work: Callable[[StateStore, str], Awaitable[Any]]) -> Any:
    """Return the result of work with a store, and with an owner that no other test has."""

    async def run() -> Any:
        async with opened_store(url) as store:
            return await work(store, uuid.uuid4().hex)

    return asyncio.run(run())


def test_a_document_is_read_by_its_owner_alone(url: str) -> None:
    async def work(store: StateStore, owner: str) -> None:
        assert await store.get("k", owner, "one") is None
        await store.put("k", owner, "one", b"1\x00")
        await store.put("k", owner, "one", b"2\x00")
        assert await store.get("k", owner, "one") == b"2\x00"
        assert await store.get("k", owner + "x", "one") is None
        assert await store.get("j", owner, "one") is None
        assert await store.delete("k", owner + "x", "one") is False
        assert await store.delete("k", owner, "one") is True
        assert await store.delete("k", owner, "one") is False
        assert await store.get("k", owner, "one") is None

    with_store(url, work)


def test_documents_are_listed_in_their_order(url: str) -> None:
    async def work(store: StateStore, owner: str) -> None:
        for name in ("b", "a", "c"):
            await store.put("k", owner, name, name.encode())
            await asyncio.sleep(0.002)
        assert await store.all("k", owner) == [b"b", b"a", b"c"]
        assert await store.all("k", "nobody") == []

    with_store(url, work)


def test_the_oldest_documents_with_an_end_make_room(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_store, "MAX_DOCUMENTS", 3)
    monkeypatch.setattr(state_store, "MAX_OWNED_BYTES", 10)

    async def work(store: StateStore, owner: str) -> None:
        async def put(name: str, size: int) -> list[int]:
            await store.put("k", owner, name, b"x" * size, seconds=60)
            await asyncio.sleep(0.002)
            return [len(data) for data in await store.all("k", owner)]

        await store.put("k", owner + "other", "z", b"zz", seconds=60)
        for number in (1, 2, 3):
            await put(str(number), number)
        assert await put("4", 1) == [2, 3, 1]  # too many
        assert await put("5", 8) == [1, 8]  # too large together
        assert await put("6", 50) == [50]  # the newest one stays
        assert await store.all("k", owner + "other") == [b"zz"]

    with_store(url, work)


def test_a_document_ends(url: str) -> None:
    async def work(store: StateStore, owner: str) -> None:
        await store.put("k", owner, "one", b"1", seconds=0.05)
        until = asyncio.get_running_loop().time() + 20
        while await store.get("k", owner, "one") is not None:
            assert asyncio.get_running_loop().time() < until
            await asyncio.sleep(0.02)

    with_store(url, work)


def test_additions_at_once_are_all_counted(url: str) -> None:
    async def work(store: StateStore, owner: str) -> None:
        values = await asyncio.gather(*(store.add(owner, 1, seconds=60) for _ in range(50)))
        assert sorted(values) == list(range(1, 51))
        assert await store.add(owner, -20, seconds=60) == 30

    with_store(url, work)


def test_operators_read_why_a_store_cannot_be_reached(tmp_path: Path) -> None:
    async def use(url: str) -> StateError:
        async with opened_store(url) as store:
            with pytest.raises(StateError) as caught:
                await store.add("c", 1, seconds=60)
            return caught.value

    for url in (f"postgresql://user:geheim@/db?host={tmp_path}", f"redis+unix://:geheim@{tmp_path / 'none'}"):
        error = asyncio.run(use(url))
        message = failure_for_operators(error)
        assert "No such file" not in str(error) and message.startswith(f"{error}: ")
        assert "No such file" in message and "geheim" not in message
    file = asyncio.run(use(f"sqlite:///{tmp_path}"))
    assert failure_for_operators(file) == str(file)  # it gives the reason itself


def test_a_store_that_cannot_be_reached_is_an_error_without_secrets(tmp_path: Path) -> None:
    async def use(url: str) -> str:
        async with opened_store(url) as store:
            with pytest.raises(StateError) as caught:
                await store.add("c", 1, seconds=60)
            return str(caught.value)

    for url in (
        f"postgresql://user:geheim@/db?host={tmp_path}",
        f"redis+unix://:geheim@{tmp_path / 'none'}",
        f"sqlite:///{tmp_path}",
    ):
        message = asyncio.run(use(url))
        assert "store" in message or str(tmp_path) in message
        assert "geheim" not in message


@pytest.mark.parametrize("url", ["mysql://x/y", "postgresql://host:port/x", "valkey://host:port/x", "sqlite://keys.db"])
def test_the_url_of_something_else_is_an_error(url: str) -> None:
    with pytest.raises(ConfigurationError):
        open_store(url)


def two_gateways(stores: tuple[StateStore, StateStore], usage: Usage) -> tuple[list[Gateway], Scripted]:
    """Return two gateways with stores of one URL, and the model behind both."""
    upstream = Scripted([ContentDelta("x")], 0.01, [UsageCounted(usage), Finish(FinishReason.STOP)])
    models = ModelTable([ServedModel("*", (upstream,), prices=Prices(1.0, 10.0))])
    gateways = [Gateway(models, access=Access(virtual_keys=VirtualKeys(store)), store=store) for store in stores]
    return gateways, upstream


@pytest.mark.parametrize(
    ("allowance", "expected"),
    [
        # An answer is expected to use about 30 + 40 tokens, and uses 20.
        (Allowance("requests", 10, "day"), range(10, 11)),
        (Allowance("tokens", 200), range(10, 14)),
        (Allowance("money", 0.002, "month"), range(18, 26)),
    ],
    ids=["requests", "tokens", "money"],
)
def test_two_gateways_of_one_store_overspend_by_what_is_in_flight_at_most(
    url: str, allowance: Allowance, expected: range
) -> None:
    if url == IN_MEMORY:
        pytest.skip("a store in memory belongs to one process")
    usage = Usage(10, 10)
    at_once = 4

    async def run() -> None:
        async with opened_store(url) as first, opened_store(url) as second:
            gateways, upstream = two_gateways((first, second), usage)
            key, virtual_key = await VirtualKeys(first).add("tester", allowances=[allowance])
            path, body = asked("chat")
            body["max_tokens"] = 40

            async def ask(number: int) -> int:
                headers = {"authorization": f"Bearer {key}"}
                got = await request(gateways[number % 2], path, body, headers=headers)
                assert got.status in (200, 429)
                return got.status

            async def client(number: int) -> list[int]:
                return [await ask(number) for _ in range(15)]

            statuses = [status for each in await asyncio.gather(*map(client, range(at_once))) for status in each]
            while (status := await ask(0)) == 200:  # the others may have been refused for what was in flight alone
                statuses.append(status)
            answered = statuses.count(200)
            assert len(upstream.questions) == answered
            # Whatever ran at the same time may have been admitted together, and nothing beyond that.
            spent = {"requests": 1.0, "tokens": 20.0, "money": 110e-6}[allowance.quantity] * answered
            assert (
                spent
                <= allowance.amount + {"requests": 0.0, "tokens": 20.0, "money": 110e-6}[allowance.quantity] * at_once
            )
            assert answered in expected
            assert await KeySpending(second).used(virtual_key, allowance) == pytest.approx(spent)

    asyncio.run(run())
