"""Tools from OpenAPI documents against a server on loopback."""

import asyncio
import gzip
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.servers import Answer, Asked, serving

from toolwire import (
    ConfigurationError,
    DefinitionError,
    FilePart,
    ImagePart,
    Session,
    Tier,
    ToolCall,
    ToolExecutor,
    ToolRegistry,
    ToolResult,
)
from toolwire.errors import ToolError
from toolwire.openapi import OpenApi, OpenApiOptions, openapi_tools

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "A shop", "version": "1"},
    "servers": [{"url": "https://{region}.example.com/v1", "variables": {"region": {"default": "eu"}}}],
    "paths": {
        "/orders/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {"operationId": "getOrder", "summary": "Return an order.", "responses": {}},
            "delete": {"operationId": "cancelOrder", "responses": {}},
        },
        "/orders": {
            "post": {
                "operationId": "createOrder",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"item": {"type": "string"}, "amount": {"type": "integer"}},
                                "required": ["item"],
                            }
                        }
                    },
                },
                "responses": {},
            }
        },
        "/upload": {
            "post": {"operationId": "upload", "requestBody": {"content": {"multipart/form-data": {"schema": {}}}}}
        },
    },
}


class Desk:
    def __init__(self, url: str, **options: Any) -> None:
        self.previews: list[str] = []
        all_options: OpenApiOptions = {"base_url": url, **options}  # type: ignore[typeddict-item]
        self.api = OpenApi(DOCUMENT, **all_options)

    def call(self, name: str, **arguments: Any) -> ToolResult:
        def confirm(approval: Any) -> bool:
            self.previews.append(approval.preview)
            return True

        executor = ToolExecutor(ToolRegistry(self.api.tools), confirm=confirm)
        return asyncio.run(executor.run(ToolCall(name, arguments, "c1"), Session(tier=Tier.RUN))).result


@contextmanager
def shop(answer: Callable[[Asked], Answer] | Answer, **options: Any) -> Iterator[tuple[Desk, list[Asked]]]:
    asked: list[Asked] = []

    def respond(request: Asked) -> Answer:
        asked.append(request)
        return answer if isinstance(answer, Answer) else answer(request)

    with serving(respond, get=True) as url:
        yield Desk(f"{url}/v1/", **options), asked


def test_operations_are_called() -> None:
    with shop(Answer(b'{"id": 5}'), headers={"Authorization": "Bearer s"}, query={"key": "k"}) as (desk, asked):
        assert [tool.definition.name for tool in desk.api.tools] == ["getOrder", "cancelOrder", "createOrder"]
        assert desk.api.skipped == {"upload": "its body is multipart/form-data, which is not supported"}
        assert desk.call("getOrder", id="5").result == {"id": 5}
        assert desk.call("createOrder", body={"item": "tea", "amount": "2"}).result == {"id": 5}
        assert "not valid" in (desk.call("createOrder", body={"amount": 2}).error or "")
        assert desk.call("cancelOrder", id=5).success
    assert [(item.method, item.path) for item in asked] == [
        ("GET", "/v1/orders/5?key=k"),
        ("POST", "/v1/orders?key=k"),
        ("DELETE", "/v1/orders/5?key=k"),
    ]
    assert {item.headers["authorization"] for item in asked} == {"Bearer s"}
    assert json.loads(asked[1].body) == {"item": "tea", "amount": 2}
    assert asked[1].headers["content-type"] == "application/json"
    (preview,) = desk.previews
    assert preview.startswith("DELETE http://127.0.0.1:")
    assert preview.endswith("/v1/orders/5"), "the key in the query is not shown"


PNG = b"\x89PNG"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(b"plain \xe4", content_type="text/plain; charset=latin-1"), "plain \u00e4"),
        (Answer(b"<a/>", content_type="application/xml"), "<a/>"),
        (Answer(b'{"a": NaN}'), '{"a": NaN}'),
        (Answer(b"[" * 5_000), "[" * 5_000),
        (Answer(b"", status=204), "204 No Content"),
        (Answer(b'{"a": 1}', content_type="application/problem+json"), {"a": 1}),
        (Answer(b"x", content_type="text/plain; charset=nonsense"), "x"),
    ],
)
def test_answers_become_values_and_text(answer: Answer, expected: Any) -> None:
    with shop(answer) as (desk, _):
        assert desk.call("getOrder", id=1).result == expected


def test_images_and_files_become_parts() -> None:
    kinds = iter(("image/png", "application/pdf"))
    with shop(lambda _: Answer(PNG, content_type=next(kinds))) as (desk, _):
        assert desk.call("getOrder", id=1).images == (ImagePart("iVBORw==", "image/png"),)
        assert desk.call("getOrder", id=1).files == (FilePart("iVBORw==", "application/pdf"),)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(b'{"why": "gone"}', status=404), 'The server answered 404 Not Found: {"why": "gone"}'),
        (Answer(b"x" * 3_000, status=500), "… (2,200 characters left out)"),
        (Answer(PNG, status=400, content_type="image/png"), "The server answered 400 Bad Request."),
        (
            Answer(b"", status=302, headers={"location": "http://169.254.169.254/"}),
            "The server answered 302 Found, which was not followed: http://169.254.169.254/",
        ),
        (Answer(b"x" * 101), "The answer has more than 100 bytes; ask for less at a time."),
        (
            Answer(gzip.compress(b"x" * 1_000_000)[:90], headers={"content-encoding": "gzip"}),
            "The server compressed its answer, although it was asked not to.",
        ),
        (Answer(b"x" * 90, cut=True), "cannot be reached: RemoteProtocolError."),
    ],
)
def test_answers_that_are_errors(answer: Answer, error: str) -> None:
    limit = 100 if len(answer.body) < 200 else 10_000
    with shop(answer, headers={"Authorization": "secret"}, max_bytes=limit) as (desk, asked):
        result = desk.call("getOrder", id=1)
    assert (result.error or "").endswith(error)
    assert "secret" not in (result.error or "")
    assert len(asked) == 1, "no request is repeated and no redirect followed"


def test_server_that_is_away_or_silent_is_an_error() -> None:
    assert "cannot be reached: ConnectError." in (Desk("http://127.0.0.1:9").call("getOrder", id=1).error or "")

    class Silent(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await asyncio.Event().wait()
            raise AssertionError

    silent = Desk("http://shop.test", client=httpx.AsyncClient(transport=Silent()), timeout=0.01)
    assert silent.call("getOrder", id=1).error == "shop.test did not answer within 0.01 seconds."


def test_client_of_the_user_keeps_its_headers() -> None:
    seen: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=1)

    document = json.loads(json.dumps(DOCUMENT))
    document["paths"]["/orders/{id}"]["parameters"] += [
        {"name": name, "in": "header", "schema": {"type": "string"}} for name in ("X-Api-Key", "X-Own")
    ]
    transport = httpx.MockTransport(respond)
    client = httpx.AsyncClient(transport=transport, headers={"X-Api-Key": "k"}, follow_redirects=True)
    api = OpenApi(document, base_url="https://shop.test", client=client, headers={"X-Own": "o"}, only=["getOrder"])
    (tool,) = api.tools
    assert list(tool.definition.parameters["properties"]) == ["id"]
    assert asyncio.run(tool(id=3)) == 1
    assert (seen[0].headers["x-api-key"], seen[0].headers["x-own"], str(seen[0].url)) == (
        "k",
        "o",
        "https://shop.test/orders/3",
    )


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Addresses of names, which the system would look up; without a proxy."""
    addresses: dict[str, list[str]] = {}

    async def look_up(name: str, _: int) -> list[str]:
        if name not in addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return addresses[name]

    monkeypatch.setattr(openapi_tools, "look_up", look_up)
    monkeypatch.setattr(openapi_tools, "proxy_of", lambda *_: "")
    return addresses


@pytest.mark.parametrize("inside", ["127.0.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:10.0.0.1"])
def test_a_server_of_the_document_whose_name_leads_inside_gets_no_request(
    inside: str, names: dict[str, list[str]]
) -> None:
    names["eu.example.com"] = ["93.184.215.14", inside]
    error = Desk("", trust_servers=True, headers={"Authorization": "secret"}).call("getOrder", id=1).error
    expected = f"eu.example.com leads to {inside}, which is private; a server there has to be passed as base_url=."
    assert (error or "").endswith(expected)


def test_a_server_of_the_document_is_reached_at_the_address_that_was_checked(
    names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cannot be reached: gaierror." in (Desk("", trust_servers=True).call("getOrder", id=1).error or "")
    names["eu.example.com"] = ["::1", "127.0.0.1"]  # at the first nobody listens
    monkeypatch.setattr(openapi_tools, "is_private", lambda _: False)
    asked: list[Asked] = []

    def respond(request: Asked) -> Answer:
        asked.append(request)
        return Answer(b'{"id": 5}')

    with serving(respond, get=True) as url:
        port = url.rpartition(":")[2]
        document = {**DOCUMENT, "servers": [{"url": f"http://eu.example.com:{port}/v1"}]}
        (tool,) = OpenApi(document, trust_servers=True, headers={"X-Own": "o"}, only=["getOrder"]).tools
        assert asyncio.run(tool(id=5)) == {"id": 5}
    (request,) = asked
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert (request.path, headers["host"], headers["x-own"]) == ("/v1/orders/5", f"eu.example.com:{port}", "o")


def test_a_server_of_the_document_redirects_no_request(
    names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["eu.example.com"] = ["127.0.0.1"]
    monkeypatch.setattr(openapi_tools, "is_private", lambda _: False)
    asked: list[Asked] = []

    def respond(request: Asked) -> Answer:
        asked.append(request)
        return Answer(b"", status=307, headers={"location": "/v1/secrets"})

    with serving(respond, get=True) as url:
        port = url.rpartition(":")[2]
        document = {**DOCUMENT, "servers": [{"url": f"http://eu.example.com:{port}/v1"}]}
        (tool,) = OpenApi(document, trust_servers=True, headers={"X-Own": "o"}, only=["getOrder"]).tools
        with pytest.raises(ToolError, match="307 Temporary Redirect, which was not followed"):
            asyncio.run(tool(id=5))
    assert [request.path for request in asked] == ["/v1/orders/5"]


def test_user_says_where_requests_go() -> None:
    with pytest.raises(ConfigurationError, match="base_url= says where requests go; trust_servers=True uses"):
        OpenApi(DOCUMENT)
    api = OpenApi(DOCUMENT, trust_servers=True)
    preview = api.tools[1].behavior.preview
    assert preview is not None
    assert preview({"id": 1}) == "DELETE https://eu.example.com/v1/orders/1"
    for url in ("http://localhost/x", "http://169.254.169.254", "http://[::1]/", "http://10.0.0.1:80/"):
        private = {**DOCUMENT, "servers": [{"url": url}]}
        refused = OpenApi(private, trust_servers=True)
        assert (refused.tools, len(refused.skipped)) == ([], 4)
        assert "names the private server" in refused.skipped["getOrder"]
        assert len(OpenApi(private, base_url="http://localhost").tools) == 3
    for servers in ([{"url": "/v1"}], [], "x", [5], [{"url": "https://{a}.com"}], [{"url": "ftp://h"}]):
        relative = OpenApi({**DOCUMENT, "servers": servers}, trust_servers=True)
        assert "names no server with a whole address; pass base_url=" in relative.skipped["getOrder"]
    for url in (
        "shop.example.com",
        "ftp://h",
        "https://u:p@h",
        "https://h/?k=1",
        "https://h/#x",
        "https:// h",
        "http://h:x",
    ):
        with pytest.raises(ConfigurationError, match="base_url"):
            OpenApi(DOCUMENT, base_url=url)


def test_operations_are_chosen_and_changed_by_name(tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(DOCUMENT))
    api = OpenApi(
        path,
        base_url="http://shop.test",
        only=["getOrder", "createOrder"],
        options={"createOrder": {"destructive": True, "name": "order"}},
    )
    facts = [(tool.definition.name, tool.definition.requires_confirmation) for tool in api.tools]
    assert facts == [("getOrder", False), ("order", True)]
    assert repr(api) == "<OpenApi of 2 tools, 0 operations skipped>"
    with pytest.raises(DefinitionError, match=r"no operation 'getorder'; did you mean getOrder"):
        OpenApi(DOCUMENT, base_url="http://h", only=["getorder"])
    with pytest.raises(DefinitionError, match="multipart/form-data"):
        OpenApi(DOCUMENT, base_url="http://h", only=["upload"])
    with pytest.raises(DefinitionError, match="no operation 'x'"):
        OpenApi(DOCUMENT, base_url="http://h", options={"x": {}})
    with pytest.raises(TypeError, match="only must be"):
        OpenApi(DOCUMENT, base_url="http://h", only="getOrder")
    for headers in ({"X": "ü"}, {"X": 5}, {"X": "a\r\nY: b"}):
        with pytest.raises(ConfigurationError, match="headers= "):
            OpenApi(DOCUMENT, base_url="http://h", headers=headers)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="base_ulr"):
        OpenApi(DOCUMENT, base_ulr="http://h")  # type: ignore[call-arg]


def replaced(value: Any, pointer: tuple[Any, ...], new: Any) -> Any:
    """Return a copy with another value in one place."""
    if not pointer:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[pointer[0]] = replaced(value[pointer[0]], pointer[1:], new)
    return copy


def pointers(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from pointers(inner, (*above, key))


@pytest.mark.parametrize("new", [None, 5, "x", [], [5], {}, {"$ref": "#"}, {"$ref": "x"}], ids=repr)
def test_no_fault_of_a_document_raises_another_error(new: Any) -> None:
    parameter = {"name": "p", "in": "query", "style": "form", "content": {"application/json": {"schema": {}}}}
    paths = {**DOCUMENT["paths"], "/p": {"get": {"parameters": [parameter], "responses": {}}}}
    document = {**DOCUMENT, "paths": paths}
    for pointer in pointers(document):
        with suppress(ConfigurationError, DefinitionError, TypeError if not pointer else DefinitionError):
            OpenApi(replaced(document, pointer, new), trust_servers=True)


def test_names_are_unique_and_writable() -> None:
    paths = {f"/{name}": {"get": {"operationId": "list things", "responses": {}}} for name in ("a", "b")}
    paths["/c/{d}"] = {"get": {"responses": {}, "parameters": [{"name": "d", "in": "path", "required": True}]}}
    api = OpenApi({**DOCUMENT, "paths": paths}, base_url="http://h")
    assert [tool.definition.name for tool in api.tools] == ["list_things", "list_things_2", "get_c_d"]
