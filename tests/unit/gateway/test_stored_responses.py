"""Stored responses: conversations that go on, answers read again, and nothing of another key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import Got, Scripted, request

from toolwire import Client, ContentDelta, Finish, FinishReason, ParsedResponse, ToolCall, get_api, replay
from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.errors import StateError
from toolwire.gateway import stored_responses
from toolwire.gateway.access import Access
from toolwire.gateway.app import Gateway
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Upstream
from toolwire.gateway.state_store import IN_MEMORY, StateStore, opened_store
from toolwire.gateway.stored_responses import StoredResponses
from toolwire.gateway.upstreams import ApiUpstream
from toolwire.gateway.virtual_keys import owner_of
from toolwire.inspector.inspector import Inspector
from toolwire.messages import TextPart
from toolwire.testing import ScriptedTransport

CALL = ToolCall("get_weather", {"city": "Paris"}, "call_1")
EVENTS = list(replay(ParsedResponse("I look.", tool_calls=(CALL,), finish_reason=FinishReason.TOOL_CALLS)))
Ask = Callable[..., Awaitable[Got]]


class _Pieces:
    """A transport whose server answers with these pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        async def body() -> AsyncIterator[bytes]:
            for piece in self._pieces:
                yield piece

        yield HttpAnswer(200, {}, body())


def converse(work: Callable[[Ask, StateStore], Awaitable[Any]], upstream: Upstream | None = None) -> Any:
    async def run() -> Any:
        async with opened_store(IN_MEMORY) as store:
            models = ModelTable([ServedModel("*", (upstream or Scripted(EVENTS),))])
            app = Gateway(models, access=Access(("one", "two")), store=store)

            async def ask(path: str, body: Any = None, *, key: str = "one", method: str = "") -> Got:
                headers = {"authorization": f"Bearer {key}"}
                chosen = method or ("GET" if body is None else "POST")
                return await request(app, f"/v1/responses{path}", body, method=chosen, headers=headers)

            return await work(ask, store)

    return asyncio.run(run())


def body_of(text: str, **members: Any) -> dict[str, Any]:
    return {"model": "m", "input": text, **members}


def response_in(got: Got, *, stream: bool) -> Any:
    if not stream:
        return got.json
    (line,) = [line for line in got.body.split(b"\n") if line.startswith(b'data: {"type":"response.completed"')]
    return json.loads(line[6:])["response"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_conversation_goes_on_after_a_stored_response(stream: bool) -> None:
    upstream = Scripted(EVENTS)

    async def work(ask: Ask, store: StateStore) -> None:
        first = response_in(await ask("", body_of("Weather?", stream=stream)), stream=stream)
        result = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
        second = response_in(
            await ask("", {"model": "m", "stream": stream, "previous_response_id": first["id"], "input": [result]}),
            stream=stream,
        )
        await ask("", body_of("Thanks.", previous_response_id=second["id"]))
        messages = upstream.questions[-1].request.messages
        assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
        assert messages[0].parts == (TextPart("Weather?"),)
        assert messages[1].parts[1].id == "call_1"  # type: ignore[union-attr]
        assert "previous_response_id" not in upstream.questions[-1].body

    converse(work, upstream)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_an_answer_that_is_passed_on_is_stored_under_its_own_id(stream: bool, size: int) -> None:
    api = get_api("openai_responses")
    answer = ParsedResponse("Rain.", finish_reason=FinishReason.STOP)
    if stream:
        sent = b"".join(api.encode_stream(replay(answer), model="m", id="own", created=1))
    else:
        sent = json.dumps(api.encode_response(answer, model="m", id="own", created=1)).encode()
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    client = Client("openai_responses", "m", key="k", transport=_Pieces(pieces))

    async def work(ask: Ask, store: StateStore) -> None:
        got = await ask("", body_of("Weather?", stream=stream))
        assert got.body == sent
        stored = await ask("/resp_own")
        assert stored.json["output"][0]["content"][0]["text"] == "Rain."

    converse(work, ApiUpstream(client, model="m", calls_in_text="none"))


def test_a_response_is_read_listed_and_deleted_by_its_own_key_alone() -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        items = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, "three"]
        first = (await ask("", {"model": "m", "input": items[:2]})).json
        id = first["id"]
        assert (await ask(f"/{id}")).json == first
        listed = (await ask(f"/{id}/input_items?order=asc")).json
        assert [item["content"] for item in listed["data"]] == [
            [{"type": "input_text", "text": "one"}],
            [{"type": "output_text", "text": "two"}],
        ]
        page = (await ask(f"/{id}/input_items?limit=1")).json
        assert (page["has_more"], page["data"][0]["role"]) == (True, "assistant")
        rest = (await ask(f"/{id}/input_items?after={page['last_id']}")).json
        assert (rest["has_more"], [item["role"] for item in rest["data"]]) == (False, ["user"])
        for path, method in (("", "GET"), ("/input_items", "GET"), ("/cancel", "POST"), ("", "DELETE")):
            assert (await ask(f"/{id}{path}", key="two", method=method)).status == 404
        assert (await ask("", body_of("x", previous_response_id=id), key="two")).status == 404
        got = await ask(f"/{id}/cancel", method="POST")
        assert (got.status, "is complete" in got.json["error"]["message"]) == (400, True)
        assert (await ask(f"/{id}", method="DELETE")).json == {"id": id, "object": "response", "deleted": True}
        for path, method in (("", "GET"), ("", "DELETE")):
            assert (await ask(f"/{id}{path}", method=method)).status == 404

    converse(work)


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=101", "after=nothing"])
def test_a_list_with_a_wrong_query_is_refused(query: str) -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        id = (await ask("", body_of("x"))).json["id"]
        assert (await ask(f"/{id}/input_items?{query}")).status == 400

    converse(work)


@pytest.mark.parametrize("api", ["openai_compatible", "anthropic_messages"])
def test_no_note_says_that_another_api_cannot_store(api: str) -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        for stores in (True, False):
            got = await ask("", body_of("x", store=stores, truncation="auto"))
            assert got.status == 200
            notes = got.headers["x-toolwire-notes"]
            assert "dropped truncation" in notes and "store" not in notes

    client = Client(api, "m", base_url="http://b", transport=ScriptedTransport(api, [ParsedResponse("Rain.")] * 2))
    converse(work, ApiUpstream(client))


def test_a_response_is_not_stored_if_the_client_says_so() -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        id = (await ask("", body_of("x", store=False))).json["id"]
        got = await ask(f"/{id}")
        assert (got.status, got.json["error"]["message"].startswith("there is no stored response")) == (404, True)

    converse(work)


def test_a_stream_that_breaks_is_not_stored() -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        got = await ask("", body_of("x", stream=True))
        created = json.loads(
            next(line for line in got.body.split(b"\n") if b"response.created" in line and b"{" in line)[6:]
        )
        assert (await ask(f"/{created['response']['id']}")).status == 404

    converse(work, Scripted([ContentDelta("one")], StateError("broken")))


@pytest.mark.parametrize(
    "members", [{"background": True}, {"previous_response_id": 5}, {"previous_response_id": ["x"]}], ids=str
)
def test_what_cannot_be_done_is_refused(members: dict[str, Any]) -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        got = await ask("", body_of("x", **members))
        assert got.status == 400
        assert [got.json["error"]["param"]] == list(members)

    converse(work)


def test_a_background_response_is_refused_as_an_unsupported_parameter() -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        error = (await ask("", body_of("x", background=True))).json["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "unsupported_parameter")
        assert "leave out background" in error["message"]

    converse(work)


def test_a_conversation_that_is_too_large_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_responses, "MAX_STORED", 50)

    async def work(ask: Ask, store: StateStore) -> None:
        got = await ask("", body_of("x"))
        assert got.status == 200
        assert (await ask(f"/{got.json['id']}")).status == 404

    converse(work)


def test_an_answer_arrives_even_if_it_cannot_be_stored(caplog: pytest.LogCaptureFixture) -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        async def fail(*_: Any, **__: Any) -> None:
            raise StateError("the gateway's store cannot be used: broken")

        store.put = fail  # type: ignore[method-assign]
        assert (await ask("", body_of("x"))).status == 200
        assert "could not be stored" in caplog.text

    converse(work)


@pytest.mark.parametrize("error", [StateError, RuntimeError])
def test_no_path_and_no_error_forges_a_line_of_the_log(
    error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        async def fail(*_: Any, **__: Any) -> None:
            raise error("broken\x1b]0;x\x07 \u202e")

        store.get = fail  # type: ignore[method-assign]
        assert (await ask("/x\n2026 all is well\x1b[2J")).status >= 500
        (record,) = caplog.records
        assert "\\n2026 all is well\\x1b[2J" in record.getMessage()
        assert not {"\x1b", "\x07", "\u202e"} & set(caplog.text)
        assert "broken\\x1b" in caplog.text

    converse(work)


def test_a_stored_response_that_is_damaged_is_an_error() -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        await store.put("response", owner_of("one"), "resp_1", b"damaged", seconds=60)
        got = await ask("/resp_1")
        assert (got.status, b"cannot be read" in got.body) == (503, True)

    converse(work)


def test_text_with_half_a_character_is_stored() -> None:
    async def work(ask: Ask, store: StateStore) -> None:
        id = (await ask("", body_of("\ud83d"))).json["id"]
        assert (await ask("", body_of("x", previous_response_id=id))).status == 200

    converse(work, Scripted([ContentDelta("ok"), Finish(FinishReason.STOP)]))


@pytest.mark.parametrize("key", ["one", "two"])
def test_a_request_that_continues_a_stored_response_is_sent_again_with_the_responses_of_its_key(key: str) -> None:
    async def run() -> None:
        upstream, inspector = Scripted(EVENTS), Inspector()
        async with opened_store(IN_MEMORY) as store:
            models = ModelTable([ServedModel("*", (upstream,))])
            app = Gateway(models, access=Access(("one", "two")), store=store, inspector=inspector)
            headers = {"authorization": f"Bearer {key}"}
            first = await request(app, "/v1/responses", body_of("Weather?"), headers=headers)
            later = body_of("And now?", previous_response_id=first.json["id"])
            assert (await request(app, "/v1/responses", later, headers=headers)).status == 200
            exchange = inspector.ring.find(inspector.ids()[-1])
            assert exchange is not None and inspector.resend is not None
            id = await inspector.resend(exchange, "m")
            while inspector.ring.running():
                await asyncio.sleep(0)
            again = inspector.ring.find(id)
            assert again is not None and (again.status, again.failure) == (200, "")
            assert upstream.questions[2].request.messages == upstream.questions[1].request.messages

    asyncio.run(run())


def test_a_conversation_that_repeats_itself_is_not_stored_without_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_responses, "MAX_UNPACKED", 100_000)

    async def work(ask: Ask, store: StateStore) -> list[int]:
        statuses: list[int] = []
        previous: dict[str, str] = {}
        for _ in range(4):
            got = await ask("", body_of("x" * 40_000, **previous))
            statuses.append(got.status)
            previous = {"previous_response_id": got.json.get("id", "")}
        return statuses

    assert converse(work) == [200, 200, 200, 404]


def test_one_event_in_very_many_pieces_is_not_joined_again_and_again() -> None:
    joined = 0

    class Counted(bytes):
        def __radd__(self, before: bytes) -> bytes:
            nonlocal joined
            joined += len(before)
            return before.__add__(self)

    async def work() -> dict[str, Any]:
        async with opened_store(IN_MEMORY) as store:
            stored = StoredResponses(store, 60)
            recorder = stored_responses._Recorder(stored, "owner", [], stream=True)
            event = {"type": "response.completed", "response": {"id": "r", "x": "y" * 100_000}}
            data = f"event: response.completed\r\ndata: {json.dumps(event)}\r\n\r\n".encode()
            for at in range(0, len(data), 10):
                await recorder.record(Counted(data[at : at + 10]))
            return (await stored.get("owner", "r"))[0]

    assert len(asyncio.run(work())["x"]) == 100_000
    assert joined < 100_000
