"""Virtual keys: who may ask which model, and how much; what is refused, charged and given back."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, Got, Scripted, asked, request

from toolwire import Client, ContentDelta, Finish, FinishReason, Usage
from toolwire.agent.prices import Prices
from toolwire.cli import run as run_command
from toolwire.cli.gateway_run import store_url
from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.config.gateway_tables import STORE, GatewayTable
from toolwire.config.tables import load_configuration
from toolwire.errors import ConfigurationError, ProviderError, StateError
from toolwire.events import UsageCounted
from toolwire.gateway.access import Access
from toolwire.gateway.allowances import Allowance, parse_allowances
from toolwire.gateway.app import Gateway
from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.key_spending import KeySpending
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Upstream
from toolwire.gateway.state_store import IN_MEMORY, StateStore, opened_store
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.gateway.virtual_keys import VirtualKey, VirtualKeys
from toolwire.providers.failure_kinds import UNREACHABLE

ANSWER = ([ContentDelta("four")], [UsageCounted(Usage(10, 20)), Finish(FinishReason.STOP)])

TokensAllowed = Allowance("tokens", 1000, "day")


def test_a_window_follows_the_calendar() -> None:
    moment = datetime(2026, 12, 31, 23, 59, 30, tzinfo=UTC).timestamp()
    for period, name, left in (
        ("minute", "minute202612312359", 30),
        ("hour", "hour2026123123", 30),
        ("day", "day20261231", 30),
        ("month", "month202612", 30),
    ):
        assert Allowance("requests", 1, period).window(moment) == (name, left)  # type: ignore[arg-type]
    february = datetime(2028, 2, 1, tzinfo=UTC).timestamp()
    assert Allowance("requests", 1, "month").window(february) == ("month202802", 29 * 86_400)
    assert Allowance("requests", 1).window(moment)[0] == ""


@pytest.mark.parametrize("text", ["", "x", "-1/day", "10/week", "1/day/2", "1.5/day", "1e3"])
def test_an_allowance_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="tokens: "):
        list(parse_allowances("tokens", text))


def test_allowances_are_read_and_written_alike() -> None:
    for text in ("60/minute", "1000", "2.5/month", "5/hour"):
        (allowance,) = parse_allowances("money", text)
        assert allowance.text == text
    assert str(Allowance("requests", 60, "minute")) == "60 requests a minute"
    assert str(Allowance("money", 2.5)) == "2.5 in money altogether"
    assert str(Allowance("tokens", 2_000_000, "day")) == "2,000,000 tokens a day"
    assert Allowance("money", 2.5).maximum == 2_500_000


def with_gateway(
    work: Callable[[Callable[..., Awaitable[Got]], VirtualKeys, StateStore], Awaitable[Any]],
    upstream: Upstream | None = None,
    **options: Any,
) -> Any:
    """Return the result of work with a function that asks a gateway with virtual keys."""

    async def run() -> Any:
        async with opened_store(IN_MEMORY) as store:
            keys = VirtualKeys(store)
            models = [
                ServedModel(name, (upstream or Scripted(*ANSWER),), **options) for name in ("small", "large-1", "other")
            ]
            app = Gateway(ModelTable(models), access=Access(("static",), virtual_keys=keys), store=store)

            async def ask(key: str, *, api: str = "chat", model: str = "small", **asking: Any) -> Got:
                path, body = asked(api, model=model, stream=asking.pop("stream", False))
                headers = {"authorization": f"Bearer {key}"} if key else {}
                return await request(app, path, body, headers=headers, **asking)

            return await work(ask, keys, store)

    return asyncio.run(run())


def test_a_key_is_refused_that_is_unknown_revoked_or_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        valid, virtual_key = await keys.add("valid")
        over, _ = await keys.add("over", expires_at=1.0)
        assert (await ask(valid)).status == 200
        assert (await ask("static")).status == 200
        for wrong in ("", "sk-tw-unknown", valid + "x", over):
            got = await ask(wrong)
            assert got.status == 401
            assert not wrong or wrong.encode() not in got.body
        assert await keys.revoke("unknown") is None
        revoked = await keys.revoke(virtual_key.id)
        assert revoked is not None and revoked.name == "valid"
        assert (await ask(valid)).status == 401
        assert [(key.name, key.is_revoked) for key in await keys.all()] == [("valid", True), ("over", False)]
        stored = b"".join(await store.all("key", ""))
        assert valid.encode() not in stored and valid.split("-", 3)[3].encode() not in stored
        assert valid not in repr(virtual_key)
        assert valid not in caplog.text

    with_gateway(work)


def test_a_key_asks_and_sees_its_own_models_alone() -> None:
    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, _ = await keys.add("tester", models=["large-*"])
        assert (await ask(key, model="large-1")).status == 200
        for api in CLIENTS:
            got = await ask(key, api=api, model="small")
            assert (got.status, b"may not ask" in got.body) == (403, True)

    with_gateway(work)


def test_only_an_asterisk_has_a_meaning_in_the_models_of_a_key() -> None:
    key = VirtualKey("1", "tester", ("coder[1m]", "a?*"))
    assert key.admits("coder[1m]") and key.admits("a?b")
    assert not key.admits("coder1") and not key.admits("abc")


def test_a_key_admits_its_model_with_the_tag_of_ollama_too() -> None:
    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, _ = await keys.add("tester", models=["small"])
        assert (await ask(key, api="ollama", model="small:latest")).status == 200
        assert (await ask(key, api="ollama", model="other:latest")).status == 403

    with_gateway(work)


def test_lists_of_models_show_what_the_key_may_ask() -> None:
    async def run() -> None:
        async with opened_store(IN_MEMORY) as store:
            keys = VirtualKeys(store)
            models = [ServedModel(name, (Scripted(*ANSWER),)) for name in ("small", "large-1")]
            app = Gateway(ModelTable(models), access=Access(virtual_keys=keys), store=store)
            key, _ = await keys.add("tester", models=["large-*"])
            headers = {"x-api-key": key}
            for path in ("/v1/models", "/v1beta/models", "/api/tags", "/api/ps"):
                got = await request(app, path, method="GET", headers=headers)
                assert b"large-1" in got.body and b"small" not in got.body
            for path, body in (("/v1beta/models/small", None), ("/api/show", {"model": "small"})):
                got = await request(app, path, body, method="GET" if body is None else "POST", headers=headers)
                assert got.status == 403

    asyncio.run(run())


@pytest.mark.parametrize("api", CLIENTS)
def test_an_allowance_that_is_used_up_is_an_error_of_the_api(api: str) -> None:
    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, _ = await keys.add("tester", allowances=parse_allowances("requests", ["2/month", "100"]))
        assert [(await ask(key, api=api)).status for _ in range(2)] == [200, 200]
        got = await ask(key, api=api)
        assert got.status == 429
        assert 0 < int(got.headers["retry-after"]) <= 31 * 86_400
        assert b"2 requests a month" in got.body
        if api in ("chat", "responses"):
            assert got.json["error"]["code"] == "insufficient_quota"

    with_gateway(work)


def test_what_was_reserved_is_given_back_by_a_refusal() -> None:
    allowances = [Allowance("requests", 5, "day"), Allowance("tokens", 0, "day")]

    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, virtual_key = await keys.add("tester", allowances=allowances)
        for _ in range(3):
            assert (await ask(key)).status == 429
        assert await KeySpending(store).used(virtual_key, allowances[0]) == 0

    with_gateway(work)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_is_charged_with_what_the_backend_reports(stream: bool) -> None:
    allowances = [TokensAllowed, Allowance("money", 1.0)]

    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, virtual_key = await keys.add("tester", allowances=allowances)
        assert (await ask(key, stream=stream)).status == 200
        used = [await KeySpending(store).used(virtual_key, allowance) for allowance in allowances]
        assert used == [30, pytest.approx((10 * 2 + 20 * 5) / 1e6)]

    with_gateway(work, prices=Prices(2.0, 5.0))


def used_tokens(upstream: Upstream, **asking: Any) -> tuple[Got, float]:
    """Return an answer, and the tokens that it is charged with."""

    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> Any:
        key, virtual_key = await keys.add("tester", allowances=[TokensAllowed])
        got = await ask(key, **asking)
        return got, await KeySpending(store).used(virtual_key, TokensAllowed)

    return with_gateway(work, upstream)  # type: ignore[no-any-return]


def test_a_request_that_no_backend_answers_costs_nothing() -> None:
    got, used = used_tokens(Scripted(opens=GatewayFailure(UNREACHABLE, "gone")))
    assert (got.status, used) == (502, 0)


@pytest.mark.parametrize(
    "usage",
    [None, Usage(-5_000, 1), Usage(10**12, 10**12)],
    ids=["none", "negative", "impossible"],
)
def test_tokens_that_are_not_reported_are_estimated(usage: Usage | None) -> None:
    counted = [UsageCounted(usage)] if usage is not None else []
    got, used = used_tokens(Scripted([ContentDelta("word " * 100)], [*counted, Finish(FinishReason.STOP)]))
    assert got.status == 200
    assert 100 <= used <= 400


def test_an_answer_that_breaks_is_charged_with_what_arrived() -> None:
    broken = Scripted([ContentDelta("word " * 100)], ProviderError("cut off"))
    got, used = used_tokens(broken, stream=True)
    assert b"cut off" in got.body
    assert 100 <= used <= 400


def test_a_stream_that_is_passed_on_and_breaks_is_charged_with_what_arrived() -> None:
    class Breaking:
        """A server whose stream breaks off behind pieces of a text."""

        @asynccontextmanager
        async def open(self, sent: HttpRequest) -> AsyncIterator[HttpAnswer]:
            async def pieces() -> AsyncIterator[bytes]:
                for _ in range(20):
                    yield b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "word word "}}]}\n\n'
                raise ProviderError("cut off")

            yield HttpAnswer(200, {"content-type": "text/event-stream"}, pieces())

    client = Client("openai_compatible", "m", base_url="http://b", transport=Breaking())
    got, used = used_tokens(ApiUpstream(client, calls_in_text="none"), stream=True)
    assert b"word word " in got.body and b"cut off" in got.body
    assert 50 <= used <= 200


def test_a_client_that_leaves_is_charged_with_what_arrived() -> None:
    slow = Scripted([ContentDelta("word " * 100)], 3600.0)
    _, used = used_tokens(slow, stream=True, leaves_after=0.05)
    assert slow.closed == 1
    assert 100 <= used <= 400


def test_a_key_limited_in_money_cannot_ask_a_model_without_a_price() -> None:
    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, _ = await keys.add("tester", allowances=[Allowance("money", 1.0)])
        got = await ask(key)
        assert got.status == 403
        assert "the price of 'small' at scripted is unknown" in got.json["error"]["message"]

    with_gateway(work)


def test_a_request_that_is_never_settled_stays_charged() -> None:
    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, virtual_key = await keys.add("tester", allowances=[TokensAllowed])
        running = asyncio.create_task(ask(key, leaves_after=3600))
        used = 0.0
        while not used:
            await asyncio.sleep(0.01)
            used = await KeySpending(store).used(virtual_key, TokensAllowed)
        # The process could be killed now: whatever was reserved is in the store.
        assert used > 4096
        running.cancel()
        await asyncio.wait({running})

    with_gateway(work, Scripted(opens=3600.0))


def test_money_is_rounded_up() -> None:
    allowance = Allowance("money", 1.0)

    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, virtual_key = await keys.add("tester", allowances=[allowance])
        await ask(key)
        assert await KeySpending(store).used(virtual_key, allowance) == math.ceil(0.3) / 1e6

    with_gateway(work, prices=Prices(0.01, 0.01))


def test_a_store_that_fails_refuses_instead_of_admitting() -> None:
    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        key, _ = await keys.add("tester", allowances=[TokensAllowed])

        async def fail(*_: Any, **__: Any) -> int:
            raise StateError("the gateway's store cannot be used: broken")

        store.add = fail  # type: ignore[method-assign]
        got = await ask(key)
        assert got.status == 503
        assert b"store cannot be used" in got.body

    with_gateway(work)


def test_a_stored_key_that_cannot_be_read_is_an_error() -> None:
    async def work(ask: Any, keys: VirtualKeys, store: StateStore) -> None:
        await store.put("key", "", "x", b'{"digest": "x"}')
        with pytest.raises(StateError, match="cannot read"):
            await keys.all()

    with_gateway(work)


def test_a_password_does_not_belong_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[gateway]\nport = 1\nstore = "postgresql://user:geheim@server/db"\n')
    with pytest.raises(
        ConfigurationError, match=r"gateway\.toml:3: gateway\.store: the URL contains a password"
    ) as caught:
        load_configuration(file)
    assert "geheim" not in str(caught.value)
    file.write_text('[gateway]\nstore = "postgresql://user@server/db"\nvirtual_keys = true\n')
    assert load_configuration(file).gateway.store == "postgresql://user@server/db"


def test_the_path_of_a_store_is_relative_to_the_file_that_names_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(STORE, raising=False)
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "gateway.toml"
    file.write_text('[gateway]\nstore = "sqlite:///keys.sqlite3"\n')
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run_command(["keys", "add", "alice", "--config", "../gateway.toml"]) == 0
    assert capsys.readouterr().out.startswith("sk-tw-")
    assert [path.name for path in tmp_path.glob("*.sqlite3")] == ["keys.sqlite3"]
    assert not list((tmp_path / "elsewhere").iterdir())
    for url in ("sqlite:////absolute/keys.sqlite3", "sqlite:///:memory:", "sqlite://", "postgresql://server/name", ""):
        assert store_url(GatewayTable(store=url), file) == url


def test_keys_are_made_listed_and_revoked_by_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f'[gateway]\nstore = "sqlite:///{tmp_path / "keys.sqlite3"}"\n')
    options = ["--config", str(file)]

    def command(*arguments: str) -> str:
        assert run_command(["keys", *arguments, *options]) == 0
        return capsys.readouterr().out

    key = command("add", "alice", "--requests", "60/minute", "--money", "2.5", "--model", "m-*", "--days", "1").strip()
    assert key.startswith("sk-tw-")
    (listed,) = map(json.loads, command("list", "--json").splitlines())
    assert (listed["name"], listed["models"], listed["state"][:5]) == ("alice", ["m-*"], "until")
    assert listed["limits"] == [
        {"quantity": "requests", "amount": 60, "period": "minute", "used": 0},
        {"quantity": "money", "amount": 2.5, "period": "", "used": 0},
    ]
    shown = command("list")
    assert "0 of 60 requests a minute" in shown and key not in shown
    command("revoke", listed["id"])
    assert "revoked" in command("list")
    assert run_command(["keys", "revoke", "nothing", *options]) == 1
    assert (tmp_path / "keys.sqlite3").stat().st_mode & 0o077 == 0
