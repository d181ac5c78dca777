"""Operations of OpenAPI documents: the definitions that models see, and the requests that calls become."""

from typing import Any

import pytest

from toolwire import DefinitionError, Tier, ToolError
from toolwire.openapi.api_document import ApiDocument
from toolwire.openapi.operations import ApiRequest, Operation, operation_name, read_operation

TEXT = {"type": "string"}


def operation(
    method: str = "get", path: str = "/x", *, fixed: tuple[str, ...] = (), version: str = "3.1.0", **members: Any
) -> Operation:
    components = members.pop("components", {})
    item = {method: members, "parameters": members.pop("shared", [])}
    document = ApiDocument({"openapi": version, "paths": {path: item}, "components": components})
    (source,) = document.operations()
    return read_operation(document, source, fixed, operation_name(source))


def parameter(place: str, name: str, schema: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"in": place, "name": name, "schema": schema, **more, **({"required": True} if place == "path" else {})}


def body(schema: Any, media_type: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"content": {media_type: {"schema": schema}}, **more}


def sent(api_operation: Operation, **arguments: Any) -> ApiRequest:
    return api_operation.request(arguments)


def test_operation_becomes_a_definition() -> None:
    api_operation = operation(
        "post",
        "/users/{id}/orders",
        operationId="create order!",
        summary="Create an order.",
        description="It is paid later.\u200b",
        shared=[parameter("path", "id", {"type": "integer"}, description="The user."), parameter("query", "dry", TEXT)],
        parameters=[parameter("query", "dry", {"type": "boolean"}), parameter("header", "X-Trace")],
        requestBody=body({"$ref": "#/components/schemas/Order"}, required=True, description="The order."),
        components={
            "schemas": {
                "Order": {
                    "type": "object",
                    "required": ["item", "id"],
                    "properties": {
                        "id": {"type": "integer", "readOnly": True},
                        "item": TEXT,
                        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Order"}},
                        "example": {**TEXT, "example": "x", "xml": {}},
                    },
                }
            }
        },
    )
    definition = api_operation.definition
    assert definition.name == "create_order"
    assert definition.description == "Create an order.\n\nIt is paid later."
    assert definition.untrusted
    assert definition.parameters == {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "description": "The user."},
            "dry": {"type": "boolean"},
            "X-Trace": TEXT,
            "body": {"$ref": "#/$defs/Order", "description": "The order."},
        },
        "required": ["id", "body"],
        "additionalProperties": False,
        "$defs": {
            "Order": {
                "type": "object",
                "required": ["item"],
                "properties": {
                    "item": TEXT,
                    "parts": {"type": "array", "items": {"$ref": "#/$defs/Order"}},
                    "example": TEXT,
                },
            }
        },
    }
    request = sent(api_operation, id=5, dry=True, body={"item": "tea"}, **{"X-Trace": "a"})
    assert (request.method, request.url("https://h/v1", {})) == ("POST", "https://h/v1/users/5/orders?dry=true")
    assert request.headers == {"X-Trace": "a", "Content-Type": "application/json"}
    assert request.content == b'{"item": "tea"}'


@pytest.mark.parametrize(
    ("method", "tier", "asks"),
    [
        ("get", Tier.WALK, False),
        ("post", Tier.RUN, False),
        ("put", Tier.RUN, False),
        ("patch", Tier.RUN, False),
        ("delete", Tier.RUN, True),
    ],
)
def test_tiers_follow_methods(method: str, tier: Tier, asks: bool) -> None:
    definition = operation(method).definition
    assert (definition.name, definition.tier, definition.requires_confirmation) == (f"{method}_x", tier, asks)


def test_schemas_of_the_older_version_become_json_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "nullable": True, "enum": ["x"]},
            "b": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
            "c": {"$ref": "#/components/schemas/a~1b", "description": "ignored"},
        },
    }
    components = {"schemas": {"a/b": {"type": "integer", "nullable": True}}}
    api_operation = operation("post", version="3.0.3", requestBody=body(schema), components=components)
    assert api_operation.definition.parameters["properties"]["body"]["properties"] == {
        "a": {"type": ["string", "null"], "enum": ["x", None]},
        "b": {"type": "number", "exclusiveMinimum": 0, "maximum": 9},
        "c": {"$ref": "#/$defs/a_1b"},
    }
    assert api_operation.definition.parameters["$defs"] == {"a_1b": {"type": ["integer", "null"]}}


OBJECT = {"type": "object", "additionalProperties": TEXT}
LIST = {"type": "array", "items": TEXT}


@pytest.mark.parametrize(
    ("place", "more", "value", "url"),
    [
        ("query", {}, "a&b=c d", "/x?p=a%26b%3Dc%20d"),
        ("query", {}, 1.5, "/x?p=1.5"),
        ("query", {}, ["a", "b,c"], "/x?p=a&p=b%2Cc"),
        ("query", {"explode": False}, ["a", "b"], "/x?p=a%2Cb"),
        ("query", {"style": "pipeDelimited", "explode": False}, ["a", "b"], "/x?p=a%7Cb"),
        ("query", {"style": "spaceDelimited", "explode": False}, ["a", "b"], "/x?p=a%20b"),
        ("query", {"style": "deepObject", "explode": True}, {"k": "v", "l": 2}, "/x?p%5Bk%5D=v&p%5Bl%5D=2"),
        ("query", {}, {"k": "v"}, "/x?k=v"),
        ("query", {"explode": False}, {"k": "v"}, "/x?p=k%2Cv"),
        ("query", {}, None, "/x"),
        ("path", {}, "a/b?c#d%e", "/x/a%2Fb%3Fc%23d%25e"),
        ("path", {}, ["a", "b,c"], "/x/a,b%2Cc"),
        ("path", {"explode": True}, {"k": "v"}, "/x/k%3Dv"),
        ("path", {}, {"k": True}, "/x/k,true"),
        ("path", {}, "天", "/x/%E5%A4%A9"),
        ("path", {}, "a..b", "/x/a..b"),
    ],
)
def test_values_are_written_in_their_style(place: str, more: dict[str, Any], value: Any, url: str) -> None:
    api_operation = operation(
        "get", "/x/{p}" if place == "path" else "/x", parameters=[parameter(place, "p", {}, **more)]
    )
    assert sent(api_operation, p=value).url("", {}) == url


@pytest.mark.parametrize("value", ["..", ".", "", "../admin", "a/../b", "..\\admin", "a/.."])
def test_path_parameter_cannot_lead_to_another_path(value: str) -> None:
    api_operation = operation("delete", "/x/{p}", parameters=[parameter("path", "p")])
    with pytest.raises(ToolError, match="p must be text that is neither empty nor a step in a path"):
        sent(api_operation, p=value)
    joined = operation("get", "/x/{a}{b}", parameters=[parameter("path", "a"), parameter("path", "b")])
    with pytest.raises(ToolError, match="neither empty nor"):
        sent(joined, a=".", b=".")
    dotted = operation("get", "/x/.{p}", parameters=[parameter("path", "p", explode=True)])
    with pytest.raises(ToolError):
        sent(dotted, p=".")


def test_template_of_a_path_stays_a_path() -> None:
    api_operation = operation("get", "/a b/{p}?key=1#x", parameters=[parameter("path", "p")])
    assert sent(api_operation, p="1").url("https://h", {"k": "v"}) == "https://h/a%20b/1%3Fkey=1%23x?k=v"
    for path in ("x", "@evil/x"):
        with pytest.raises(DefinitionError, match="does not begin with a slash"):
            operation("get", path)
    for path in ("/../admin", "/x/./y", "/x/..", "/%2e%2E/x"):
        with pytest.raises(DefinitionError, match="contains a step to another path"):
            operation("get", path)


def test_headers_cannot_replace_those_of_the_user() -> None:
    names = ["Authorization", "HOST", "x-API-key", "Content-Length", "Cookie", "X-Page", "X-HTTP-Method-Override"]
    api_operation = operation(parameters=[parameter("header", name) for name in names], fixed=("x-api-key",))
    assert list(api_operation.definition.parameters["properties"]) == ["X-Page"]
    for value in ("a\r\nAuthorization: x", "a\nb", "a\0", "ü"):
        with pytest.raises(ToolError, match="X-Page is a header"):
            api_operation.request({"X-Page": value})
    assert api_operation.request({"X-Page": "2", "Authorization": "stolen"}).headers == {"X-Page": "2"}
    with pytest.raises(DefinitionError, match="cannot be the name of a header"):
        operation(parameters=[parameter("header", "a: b")])


def test_query_of_the_user_cannot_be_replaced() -> None:
    api_operation = operation(
        parameters=[parameter("query", "api_key"), parameter("query", "filter", OBJECT), parameter("query", "page")],
        fixed=("?api_key",),
    )
    assert list(api_operation.definition.parameters["properties"]) == ["filter", "page"]
    for name in ("api_key", "API_KEY", "page"):
        with pytest.raises(ToolError, match=f"filter must not contain {name}"):
            sent(api_operation, filter={name: "x"})


def test_arguments_of_one_name_are_told_apart() -> None:
    api_operation = operation(
        "put",
        "/x/{id}",
        parameters=[
            parameter("path", "id"),
            parameter("query", "id"),
            parameter("query", "body"),
            parameter("query", "a[b]"),
        ],
        requestBody=body({"type": "object"}),
    )
    assert list(api_operation.definition.parameters["properties"]) == ["id", "id_query", "body", "a_b", "body_request"]
    request = sent(api_operation, id="1", id_query="2", body="3", a_b="4", body_request={})
    assert (request.url("", {}), request.content) == ("/x/1?id=2&body=3&a%5Bb%5D=4", b"{}")


@pytest.mark.parametrize(
    ("media_type", "value", "content"),
    [
        ("application/json; charset=utf-8", ["ä"], '["ä"]'.encode()),
        ("application/merge-patch+json", {"a": None}, b'{"a": null}'),
        ("application/x-www-form-urlencoded", {"a": "b&c", "d": [1, 2], "e": None}, b"a=b%26c&d=1&d=2"),
        ("text/plain", "hello", b"hello"),
        ("*/*", [1], b"[1]"),
    ],
)
def test_bodies_are_written_in_their_type(media_type: str, value: Any, content: bytes) -> None:
    api_operation = operation("post", requestBody=body({}, media_type))
    request = sent(api_operation, body=value)
    sent_type = "application/json" if media_type == "*/*" else media_type.partition(";")[0]
    assert (request.content, request.headers["Content-Type"]) == (content, sent_type)
    assert sent(api_operation).content is None


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"requestBody": body({}, "multipart/form-data")}, "its body is multipart/form-data, which is not supported"),
        ({"requestBody": body({"$ref": "http://h/x"})}, "leads out of the document"),
        ({"requestBody": {"$ref": "#/components/none"}}, "leads nowhere"),
        ({"requestBody": body(5)}, "a schema is an object, not 5"),
        ({"parameters": [parameter("cookie", "c", required=True)]}, "needs the parameter 'c' in 'cookie'"),
        ({"parameters": [parameter("query", "c", style="odd")]}, "has the style 'odd', which is not supported"),
        ({"parameters": {"a": 1}}, "its parameters are not a list"),
        ({"parameters": [{"in": "query"}]}, "one of its parameters has no name, or no place"),
        ({"requestBody": {"content": 5}}, "its body has no content"),
        ({"path": "/x/{y}"}, "its path has no parameter for y"),
        ({"parameters": [parameter("query", "p", {"type": "nonsense"})]}, "nonsense"),
    ],
)
def test_operation_that_cannot_be_called_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        operation("post", members.pop("path", "/x"), **members)
    assert operation(parameters=[parameter("cookie", "c")]).parameters == ()


def test_chain_of_schemas_is_read_without_recursion() -> None:
    schemas = {f"s{at}": {"properties": {"next": {"$ref": f"#/components/schemas/s{at + 1}"}}} for at in range(3_000)}
    api_operation = operation(
        "post",
        requestBody=body({"$ref": "#/components/schemas/s0"}),
        components={"schemas": {**schemas, "s3000": {"type": "string"}}},
    )
    assert len(api_operation.definition.parameters["$defs"]) == 3_001
