"""Signing in to an MCP server: the address is shown, the browser comes back, the tokens are kept."""

import asyncio
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.integration.mcp_parts import Desk, at, web
from tests.integration.oauth_server import Place, guarded

from toolwire.mcp.oauth import Logins, login
from toolwire.mcp.servers import McpServer


def test_login_is_shown_completed_and_stored(tmp_path: Path) -> None:
    shown: list[str] = []
    place = Place()

    async def browser() -> None:
        while not shown:
            await asyncio.sleep(0.01)
        query = {key: item[0] for key, item in parse_qs(urlsplit(shown[0]).query).items()}
        assert query["code_challenge_method"] == "S256"
        async with web() as client:
            wrong = await client.get(query["redirect_uri"] + "?error=no")
            assert wrong.status_code == 400
            back = await client.get(query["redirect_uri"], params={"code": "the-code", "state": query["state"]})
            assert (back.status_code, back.text) == (200, "You are signed in, and can close this page.")

    async def once(server: McpServer, logins: Logins) -> Desk:
        async with at(server, connect=False, auth={"guarded": login(server, shown.append, logins)}) as desk:
            await desk.router.connect()
            assert (await desk.call("t")).result == "inside"
            return desk

    async def main(server: McpServer) -> None:
        path = tmp_path / "logins.sqlite3"
        await asyncio.gather(once(server, Logins(path)), browser())
        assert path.stat().st_mode & 0o077 == 0
        request_count = len(place.asked)
        await once(server, Logins(path))
        assert len(shown) == 1
        assert not [item for item in place.asked[request_count:] if "token" in item or "register" in item]

    with guarded(place) as url:
        asyncio.run(main(McpServer(name="guarded", url=url, login=True)))


def test_forged_callback_does_not_sign_in() -> None:
    shown: list[str] = []

    async def browser() -> None:
        while not shown:
            await asyncio.sleep(0.01)
        redirect = parse_qs(urlsplit(shown[0]).query)["redirect_uri"][0]
        async with web() as client:
            await client.get(redirect, params={"code": "the-code", "state": "of somebody else"})

    async def main(server: McpServer) -> None:
        async with at(server, connect=False, auth={"guarded": login(server, shown.append)}) as desk:
            (statuses, _) = await asyncio.gather(desk.router.connect(), browser())
            assert statuses[0].state == "failed"
            assert "tate" in statuses[0].reason

    place = Place()
    with guarded(place) as url:
        asyncio.run(main(McpServer(name="guarded", url=url, login=True)))
    assert "POST /token" not in place.asked


def test_refused_login_ends_the_wait() -> None:
    shown: list[str] = []

    async def browser() -> None:
        while not shown:
            await asyncio.sleep(0.01)
        query = {key: item[0] for key, item in parse_qs(urlsplit(shown[0]).query).items()}
        refusal = {"error": "access_denied", "error_description": "not\x1b[2J you"}
        async with web() as client:
            forged = await client.get(query["redirect_uri"], params={**refusal, "state": "of somebody else"})
            assert forged.status_code == 400
            back = await client.get(query["redirect_uri"], params={**refusal, "state": query["state"]})
            assert back.text == "You were not signed in, and can close this page."

    async def main(server: McpServer) -> None:
        async with (
            at(server, connect=False, auth={"guarded": login(server, shown.append)}) as desk,
            asyncio.timeout(30),
        ):
            (statuses, _) = await asyncio.gather(desk.router.connect(), browser())
            assert statuses[0].state == "failed"
            assert statuses[0].reason == "the login was refused: access_denied: not[2J you"

    place = Place()
    with guarded(place) as url:
        asyncio.run(main(McpServer(name="guarded", url=url, login=True)))
    assert "POST /token" not in place.asked


def test_server_without_login_reports_missing_authentication() -> None:
    async def main(server: McpServer) -> None:
        async with at(server) as desk:
            (status,) = desk.router.servers()
            assert status.state == "failed"
            assert "it answers 401: authentication is required" in status.reason

    with guarded(Place()) as url:
        asyncio.run(main(McpServer(name="guarded", url=url)))


@pytest.mark.parametrize("key", ["tokens", "client"])
def test_tokens_belong_to_one_server_at_one_address(key: str) -> None:
    logins = Logins()
    server = McpServer(name="a", url="https://a.example/mcp")
    logins.put(server, "https://a.example/mcp", key, "{}")
    assert logins.get(server, "https://a.example/mcp", key) == "{}"
    assert logins.get(server, "https://b.example/mcp", key) is None
    assert logins.get(McpServer(name="b", url="https://a.example/mcp"), "https://a.example/mcp", key) is None
