"""The inspector over HTTP: who may see it, its list, and the actions on one exchange."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import Got, Scripted, request
from tests.unit.inspector.recorded_exchanges import KEY, WRITTEN, api_model, ask, get, inspected, question, text_model

from toolwire import ContentDelta, ParsedResponse, parse
from toolwire.gateway.access import Access
from toolwire.gateway.model_table import ServedModel
from toolwire.inspector.inspector_app import MEDIA_TYPES, PAGE

PATHS = ("about", "rows", "feed", "search", "export", "exchanges/x", "exchanges/x/curl", "exchanges/x/row")
ACTIONS = ("clear", "exchanges/x/pin", "exchanges/x/resend")


def send(app: Any, path: str, **options: Any) -> Got:
    return asyncio.run(request(app, path, **{"method": "GET", **options}))


@pytest.mark.parametrize("path", [*PATHS, *ACTIONS])
def test_everything_needs_the_key(path: str) -> None:
    gateway, _ = inspected()
    method = "POST" if path in ACTIONS else "GET"
    for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "toolwire_inspector_00000000=wrong"}):
        got = send(gateway, f"/inspector/api/{path}", method=method, headers=headers)
        assert got.status == 401 and got.json == {"error": "the inspector needs its key"}


def test_the_key_of_the_gateway_is_not_that_of_the_inspector() -> None:
    gateway, _ = inspected(access=Access(keys=("client",)))
    assert send(gateway, "/inspector/api/rows", headers={"authorization": "Bearer client"}).status == 401
    path = "/v1/models"
    assert send(gateway, path, headers={"authorization": f"Bearer {KEY}"}).status == 401
    assert get(gateway, "/rows").status == 200


def test_a_key_in_the_address_becomes_a_cookie() -> None:
    gateway, _ = inspected()
    got = send(gateway, f"/inspector?key={KEY}")
    assert got.status == 303 and got.headers["location"] == "/inspector"
    cookie = got.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/inspector" in cookie
    page = send(gateway, "/inspector", headers={"cookie": cookie.partition(";")[0]})
    assert page.status == 200 and b'id="app"' in page.body and KEY.encode() not in page.body


def test_without_a_key_the_page_asks_for_it() -> None:
    gateway, _ = inspected()
    locked = send(gateway, "/inspector")
    assert locked.status == 401 and b"<form" in locked.body
    wrong = send(gateway, "/inspector/key", method="POST", body=b"key=wrong")
    assert wrong.status == 401 and b"wrong" in wrong.body
    assert send(gateway, "/inspector/key", method="POST", body=f"key={KEY}".encode()).status == 303


def test_pages_of_other_hosts_and_origins_are_refused() -> None:
    access = Access(hosts=frozenset({"127.0.0.1:4100"}), origins=frozenset({"http://127.0.0.1:4100"}))
    gateway, _ = inspected(access=access)
    assert get(gateway, "/rows", host="evil.example:4100").status == 403
    assert get(gateway, "/rows", origin="http://evil.example").status == 403
    assert get(gateway, "/rows", **{"sec-fetch-site": "cross-site"}).status == 403
    assert get(gateway, "/clear", body={}, origin="http://evil.example").status == 403
    assert get(gateway, "/rows", origin="http://127.0.0.1:4100").status == 200
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert send(gateway, f"/inspector?key={KEY}", headers=link).status == 303


@pytest.mark.parametrize("path", ["", "/page/app.js", "/api/rows", "/api/exchanges/none", "/page/index.html"])
def test_every_answer_has_a_strict_policy(path: str) -> None:
    gateway, _ = inspected()
    got = send(gateway, f"/inspector{path}", headers={"authorization": f"Bearer {KEY}"})
    policy = got.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert got.headers["x-content-type-options"] == "nosniff" and got.headers["cache-control"] == "no-store"


def test_the_page_loads_nothing_from_elsewhere() -> None:
    gateway, _ = inspected()
    files = [path for path in PAGE.iterdir() if path.suffix in MEDIA_TYPES]
    assert {"index.html", "app.js", "style.css", "preact.mjs", "htm.mjs"} <= {path.name for path in files}
    for path in files:
        text = path.read_text()
        assert "innerHTML" not in text.replace("dangerouslySetInnerHTML", "") or path.name == "preact.mjs"
        if path.suffix == ".html":
            assert "<script>" not in text and "style=" not in text and "http" not in text
        else:
            assert send(gateway, f"/inspector/page/{path.name}").status == 200
    for name in ("..%2Finspector.py", "%2e%2e/inspector.py", "index.html", "preact.LICENSE.txt", "nothing.js"):
        assert send(gateway, f"/inspector/page/{name}").status == 404


def test_each_licence_of_a_library_is_beside_it() -> None:
    for name in ("preact", "htm"):
        assert "opyright" in (PAGE / f"{name}.LICENSE.txt").read_text()


def test_the_list_has_the_newest_first_and_can_be_continued() -> None:
    gateway, inspector = inspected()
    for _ in range(3):
        ask(gateway, "chat", "text")
    rows = get(gateway, "/rows").json
    assert [row["number"] for row in rows["rows"]] == [3, 2, 1] and not rows["more"]
    assert [row["number"] for row in get(gateway, "/rows?before=3").json["rows"]] == [2, 1]
    assert rows["version"] == inspector.ring.version


@pytest.mark.parametrize(
    ("query", "last"), [("?since={}", ""), ("", "{}"), ("?since={}", "not a number")], ids=["query", "header", "both"]
)
def test_the_feed_reports_what_has_changed_and_ends_with_the_server(query: str, last: str) -> None:
    gateway, inspector = inspected()
    ask(gateway, "chat", "text")
    version = inspector.ring.version
    ask(gateway, "chat", "text")
    headers = {"authorization": f"Bearer {KEY}", "last-event-id": last.format(version)}

    async def follow() -> Got:
        path = "/inspector/api/feed" + query.format(version)
        following = asyncio.create_task(request(gateway, path, method="GET", headers=headers))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.3, inspector.close)
        return await following

    body = asyncio.run(follow()).body.decode()
    (data,) = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    assert [row["number"] for row in json.loads(data)["rows"]] == [2]
    assert f"id: {inspector.ring.version}\n" in body


def test_a_running_answer_grows() -> None:
    async def look() -> None:
        goes_on = asyncio.Event()
        gateway, inspector = inspected(ServedModel("*", (text_model(waits=goes_on),)))
        path, body = question("chat", "m")
        asking = asyncio.create_task(request(gateway, path, body))
        while not (inspector.ids() and (view := inspector.view(inspector.ids()[0])) and len(view["steps"]) > 4):
            await asyncio.sleep(0.01)
        assert view["row"]["state"] == "running" and view["row"]["total"] is None
        (call,) = view["calls"]
        assert call["complete"] is None and call["text"].startswith('{"city"')
        seen = len(view["steps"])
        goes_on.set()
        await asking
        rest = inspector.view(inspector.ids()[0], start=seen)
        assert rest and "".join(s["raw"] for s in [*view["steps"], *rest["steps"]]) == WRITTEN
        assert "request" not in rest and rest["row"]["state"] == "done"

    asyncio.run(look())


def test_an_answer_can_be_read_in_another_format() -> None:
    gateway, inspector = inspected()
    ask(gateway, "chat", "text")
    (id,) = inspector.ids()
    plain = get(gateway, f"/exchanges/{id}?format=").json
    assert plain["calls"] == [] and plain["content"] == WRITTEN
    other = get(gateway, f"/exchanges/{id}?format=mistral").json
    assert other["calls"] == [] and other["read_as"] == "mistral_json"
    again = get(gateway, f"/exchanges/{id}?format=hermes").json
    assert [call["arguments"] for call in again["calls"]] == [{"city": "Paris", "days": 3}]
    assert get(gateway, f"/exchanges/{id}?format=nonsense").status == 400
    assert [call["name"] for call in get(gateway, f"/exchanges/{id}").json["calls"]] == ["get_weather"]


def test_a_text_of_an_api_can_be_read_in_another_format() -> None:
    gateway, inspector = inspected(ServedModel("*", (api_model(ParsedResponse(f"{WRITTEN}</tool_call>")),)))
    ask(gateway, "chat", "m")
    (id,) = inspector.ids()
    assert get(gateway, f"/exchanges/{id}?format=").json["calls"] == []
    assert len(get(gateway, f"/exchanges/{id}?format=hermes").json["calls"]) == 1


@pytest.mark.parametrize("api", ["chat", "messages", "responses", "gemini", "ollama"])
def test_a_request_can_be_sent_again_to_another_model(api: str) -> None:
    gateway, inspector = inspected(
        ServedModel("text", (text_model(),)), ServedModel("api", (api_model(),)), access=Access(keys=("client",))
    )
    ask(gateway, api, "text", headers={"authorization": "Bearer client", "x-session-id": "s1"})
    (id,) = inspector.ids()

    async def resend() -> str:
        headers = {"authorization": f"Bearer {KEY}"}
        got = await request(gateway, f"/inspector/api/exchanges/{id}/resend", {"model": "api"}, headers=headers)
        assert got.status == 200
        while inspector.ring.running() or len(inspector.ids()) < 2:
            await asyncio.sleep(0.01)
        return str(got.json["id"])

    view = inspector.view(asyncio.run(resend()))
    assert view is not None
    assert view["row"]["model"] == "api" and view["row"]["resent_from"] == id and view["row"]["session"] == "s1"
    assert view["row"]["state"] == "done" and [call["name"] for call in view["calls"]] == ["get_weather"]


def test_what_cannot_be_sent_again_is_refused() -> None:
    gateway, inspector = inspected()
    assert get(gateway, "/exchanges/none/resend", body={"model": "api"}).status == 404
    ask(gateway, "chat", "text")
    (id,) = inspector.ids()
    assert get(gateway, f"/exchanges/{id}/resend", body={"model": 3}).status == 400
    inspector.ring.find(id).forget_content()  # type: ignore[union-attr]
    assert get(gateway, f"/exchanges/{id}/resend", body={"model": "api"}).status == 409


@pytest.mark.parametrize("api", ["chat", "messages", "gemini"])
def test_a_command_of_curl_has_the_body_and_no_key(api: str) -> None:
    gateway, inspector = inspected()
    ask(gateway, api, "text", text="It's $HOME `x`", headers={"x-api-key": "private-key-1234"})
    (id,) = inspector.ids()
    command = get(gateway, f"/exchanges/{id}/curl").body.decode()
    words = shlex.split(command.replace("\\\n", " "))
    body = json.loads(words[words.index("--data-raw") + 1])
    assert body == inspector.ring.find(id).body  # type: ignore[union-attr]
    assert words[2].startswith("http://127.0.0.1:4100/v1") and "private-key" not in command
    assert "authorization: Bearer $TOOLWIRE_KEY" in words


def test_a_text_answer_becomes_a_row_of_the_conformance_tests() -> None:
    gateway, inspector = inspected()
    ask(gateway, "chat", "text")
    (id,) = inspector.ids()
    got = get(gateway, f"/exchanges/{id}/row")
    assert "attachment" in got.headers["content-disposition"]
    row = json.loads(got.body)
    response = parse(row["text"], format=row["format"], tools=row["tools"])
    (call,) = response.tool_calls
    assert row["expect"]["calls"] == [{"name": call.name, "arguments": call.arguments, "repairs": list(call.repairs)}]
    assert row["expect"]["content"] == response.content and row["expect"]["problems"] == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_of_an_api_becomes_a_row_of_traffic(stream: bool) -> None:
    gateway, inspector = inspected()
    ask(gateway, "messages", "api", stream=stream)
    (id,) = inspector.ids()
    row = json.loads(get(gateway, f"/exchanges/{id}/row").body)
    assert row["api"] == "anthropic_messages" and row["request"]["max_tokens"] == 99
    assert (row["sse"] is not None) == stream and (row["response"] is not None) != stream
    assert row["calls"] == [{"name": "get_weather", "arguments": {"city": "Paris"}}] and row["text"] == "I look."


def test_exchanges_can_be_pinned_searched_exported_and_cleared() -> None:
    gateway, inspector = inspected()
    ask(gateway, "chat", "text", text="about a Walrus")
    ask(gateway, "chat", "api")
    first, second = inspector.ids()
    assert get(gateway, "/search?text=wALrus").json["ids"] == [first]
    assert get(gateway, "/search?text=i%20look.").json["ids"] == [second]
    assert get(gateway, "/search?text=").json["ids"] == []
    assert get(gateway, f"/exchanges/{first}/pin", body={"pinned": True}).json == {"pinned": True}
    lines = get(gateway, "/export").body.splitlines()
    assert [json.loads(line)["row"]["id"] for line in lines] == [first, second]
    assert len(get(gateway, f"/export?id={second}").body.splitlines()) == 1
    assert get(gateway, "/clear", body={}).status == 200
    assert inspector.ids() == [first]
    assert get(gateway, f"/exchanges/{second}").status == 404


def test_the_page_learns_what_it_can_offer() -> None:
    gateway, _ = inspected()
    about = get(gateway, "/about").json
    assert about["models"] == ["text", "api", "broken"] and "hermes" in about["formats"] and about["content"] is True


def test_a_failing_list_of_models_does_not_matter() -> None:
    gateway, _ = inspected(ServedModel("*", (Scripted([ContentDelta("x")]),)))
    assert get(gateway, "/about").json["models"] == ["m"]
