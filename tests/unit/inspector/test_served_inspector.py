"""The inspector on the gateway's own server: an open page does not hold up the end of the server."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.inspector.recorded_exchanges import KEY, text_model

from toolwire.errors import ConfigurationError
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.serving import ServerOptions, serve
from toolwire.inspector.inspector import InspectorOptions

MODELS = ModelTable([ServedModel("*", (text_model(),))])


def test_the_server_ends_while_a_page_follows_its_requests() -> None:
    async def follow() -> bytes:
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        options = ServerOptions(port=0, grace=3600, inspector=InspectorOptions(key=KEY))
        server = asyncio.create_task(
            serve(MODELS, options, ready=lambda url: port.set_result(int(url.rsplit(":", 1)[1])))
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", await port)
        headers = f"host: 127.0.0.1:{port.result()}\r\nauthorization: Bearer {KEY}"
        writer.write(f"GET /inspector/api/feed HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        await writer.drain()
        answer = await reader.readuntil(b"nothing new")
        server.cancel()
        answer += await reader.read()  # ends although the answers that run have an hour
        writer.close()
        await asyncio.wait({server})
        return answer

    answer = asyncio.run(asyncio.wait_for(follow(), 60))
    assert b" 200 OK" in answer and answer.endswith(b"0\r\n\r\n")


def test_an_inspector_without_a_key_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the inspector needs a key"):
        asyncio.run(serve(MODELS, ServerOptions(port=0, inspector=InspectorOptions(key=""))))
