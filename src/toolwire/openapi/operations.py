"""Operations of an OpenAPI document: the definition that a model sees, and the request that a call becomes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

from toolwire.errors import DefinitionError, ToolError
from toolwire.openapi.api_document import ApiDocument, OperationSource
from toolwire.openapi.parameter_schema import SchemaReader
from toolwire.schema.validation import check_schema
from toolwire.text.escape import strip_invisible
from toolwire.text.json_text import json_text
from toolwire.text.truncate import truncate
from toolwire.tools import Tier, ToolDefinition

MAX_NAME = 64
"""Maximum length of a tool's or an argument's name, in characters; APIs of models take no longer ones."""
MAX_DESCRIPTION = 4_000
RESERVED_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length"),
        *("content-type", "cookie", "expect", "forwarded", "host", "keep-alive", "proxy-authenticate"),
        *("proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade", "via"),
        *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-http-method-override"),
    )
)
"""Headers that neither a document nor a model sets: they authenticate the user, or say where a request ends."""

_TIERS = {"get": Tier.WALK}
"""Tiers of methods; any other method changes something, and has the tier RUN."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_IN_PATHS = "/:@!$&'()*+,;=-._~%"
"""Characters of a path that its template may contain as they are."""
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json")
_PLAIN_TYPES = dict.fromkeys(("*/*", "application/*"), "application/json")
"""The type that is sent where an operation takes any."""
_FORM = "application/x-www-form-urlencoded"

Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation.

    Attributes:
        argument: its name for the model.
        place: "path", "query" or "header".
        name: its name in the request.
        style: the way in which lists and objects are written.
        explode: each item of a list or an object is written by itself.
        is_json: the value is written as JSON.
    """

    argument: str
    place: str
    name: str
    style: str
    explode: bool
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request for an operation, without what the user adds.

    Attributes:
        method: the method, in upper case.
        path: the path, percent-encoded.
        query: names and values of the query, not encoded.
        headers: the headers.
        content: the body.
    """

    method: str
    path: str
    query: Pairs
    headers: dict[str, str]
    content: bytes | None

    def url(self, base_url: str, query: Mapping[str, str]) -> str:
        """Return the address, with further names and values in the query."""
        pairs = [*self.query, *query.items()]
        return f"{base_url}{self.path}" + (f"?{urlencode(pairs, quote_via=quote)}" if pairs else "")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that can be called.

    Attributes:
        definition: the tool.
        method: the method, in lower case.
        path: the template of the path.
        parameters: the parameters.
        body: the argument for the body; "" if there is none.
        body_type: the media type of the body.
        taken: names in the query that belong to other parameters or to the user, in lower case.
    """

    definition: ToolDefinition
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    body: str = ""
    body_type: str = ""
    taken: frozenset[str] = frozenset()

    def request(self, arguments: Mapping[str, Any]) -> ApiRequest:
        """Return the request for a call.

        Raises:
            ToolError: a value cannot be written where it belongs.
        """
        segments: dict[str, str] = {}
        query: Pairs = []
        headers: dict[str, str] = {}
        for parameter in self.parameters:
            value = arguments.get(parameter.argument)
            if value is None:
                continue
            if parameter.place == "path":
                segments[parameter.name] = _path_value(parameter, value)
            elif parameter.place == "query":
                query += self._query_pairs(parameter, value)
            else:
                headers[parameter.name] = _header_value(parameter, value)
        content = None
        if self.body and self.body in arguments:
            content = _BODIES[_body_kind(self.body_type)](arguments[self.body])
            headers["Content-Type"] = self.body_type
        # Every second part of the template is the name of a parameter.
        parts = _PLACEHOLDER.split(self.path)
        path = "".join(segments[part] if at % 2 else quote(part, safe=_IN_PATHS) for at, part in enumerate(parts))
        return ApiRequest(self.method.upper(), path, query, headers, content)

    def _query_pairs(self, parameter: Parameter, value: Any) -> Pairs:
        name = parameter.name
        if parameter.is_json or not isinstance(value, list | Mapping):
            return [(name, _text(value))]
        if parameter.style == "deepObject" and isinstance(value, Mapping):
            return [(f"{name}[{key}]", _text(item)) for key, item in value.items()]
        if not parameter.explode:
            return [(name, _STYLES["query"][parameter.style].join(_items(value, explode=False)))]
        if isinstance(value, list):
            return [(name, _text(item)) for item in value]
        # These names come from the model, which must not set another parameter through them.
        if stolen := sorted(key for key in value if key.lower() in self.taken):
            raise ToolError(f"{parameter.argument} must not contain {', '.join(stolen)}, which is another parameter.")
        return [(key, _text(item)) for key, item in value.items()]


def read_operation(document: ApiDocument, source: OperationSource, fixed: Iterable[str], name: str) -> Operation:
    """Return an operation.

    Args:
        document: the document.
        source: the operation in it.
        fixed: headers and, with `?` before it, names in the query that the user sets; in lower case.
        name: the tool's name.

    Raises:
        DefinitionError: it cannot be called: its path is invalid, or it needs a cookie or an unknown kind of body.
    """
    if not source.path.startswith("/"):
        raise DefinitionError(f"the path {source.path!r:.80} does not begin with a slash", tool=name)
    # Clients resolve such steps, and the request would leave the path of the base URL.
    if any(unquote(step) in (".", "..") for step in source.path.split("/")):
        raise DefinitionError(f"the path {source.path!r:.80} contains a step to another path", tool=name)
    reader, placeholders = SchemaReader(document), set(_PLACEHOLDER.findall(source.path))
    properties: dict[str, Any] = {}
    required: list[str] = []
    parameters: list[Parameter] = []
    reserved = RESERVED_HEADERS | set(fixed)
    for node in _parameters(document, source):
        place, key = node["in"], node["name"]
        if place == "path" and key not in placeholders:
            continue  # no request would contain it
        if not _is_offered(place, key, reserved, needed=node.get("required") is True):
            continue
        argument = _free_name(key, place, properties)
        parameter, schema = _read_parameter(document, node, argument)
        parameters.append(parameter)
        properties[argument] = _described(reader.read(schema), node)
        if node.get("required") is True or place == "path":
            required.append(argument)
    if missing := placeholders - {item.name for item in parameters if item.place == "path"}:
        raise DefinitionError(f"its path has no parameter for {', '.join(sorted(missing))}", tool=name)
    body = body_type = ""
    if source.operation.get("requestBody") is not None:
        request_body = document.follow(source.operation["requestBody"])
        body_type, schema = _read_body(document, request_body)
        body = _free_name("body", "request", properties)
        properties[body] = _described(reader.read(schema), request_body)
        required += [body] if request_body.get("required") is True else []
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if reader.definitions:
        schema["$defs"] = reader.definitions
    check_schema(schema, name)
    definition = ToolDefinition(
        name,
        _description(source),
        schema,
        tier=_TIERS.get(source.method, Tier.RUN),
        requires_confirmation=source.method == "delete",
        untrusted=True,
    )
    in_query = {item.name.lower() for item in parameters if item.place == "query"}
    in_query |= {item.removeprefix("?") for item in reserved if item.startswith("?")}
    return Operation(definition, source.method, source.path, tuple(parameters), body, body_type, frozenset(in_query))


def operation_name(source: OperationSource) -> str:
    """Return the name of an operation, as models can write it."""
    name = source.operation.get("operationId")
    text = name if isinstance(name, str) and name else f"{source.method}{source.path}"
    return _NOT_IN_NAMES.sub("_", text).strip("_")[:MAX_NAME] or source.method


def _description(source: OperationSource) -> str:
    texts = [source.operation.get(key) for key in ("summary", "description")]
    written = [text.strip() for text in texts if isinstance(text, str) and text.strip()]
    text = "\n\n".join(dict.fromkeys(written)) or f"{source.method.upper()} {source.path}"
    return strip_invisible(truncate(text, MAX_DESCRIPTION))


def _parameters(document: ApiDocument, source: OperationSource) -> list[Mapping[str, Any]]:
    """Return the parameters of a path item and of its operation, which overrides them."""
    nodes: dict[tuple[str, str], Mapping[str, Any]] = {}
    for owner in (source.item, source.operation):
        listed = owner.get("parameters") or []
        if not isinstance(listed, list):
            raise DefinitionError("its parameters are not a list")
        for node in map(document.follow, listed):
            place, name = node.get("in"), node.get("name")
            if not isinstance(place, str) or not isinstance(name, str):
                raise DefinitionError("one of its parameters has no name, or no place")
            nodes[place, name] = node
    return list(nodes.values())


def _is_offered(place: str, name: str, taken: frozenset[str] | set[str], *, needed: bool) -> bool:
    """Return whether a model may set a parameter.

    Raises:
        DefinitionError: it is required, and no model can set it.
    """
    if place == "path":
        return True
    if place == "query":
        return f"?{name.lower()}" not in taken
    if place == "header":
        if not _TOKEN.fullmatch(name):
            raise DefinitionError(f"{name!r:.80} cannot be the name of a header")
        return name.lower() not in taken
    if place == "cookie" and (not needed or "cookie" in taken - RESERVED_HEADERS):
        return False
    raise DefinitionError(f"it needs the parameter {name!r:.80} in {place!r:.20}, which is not supported")


def _free_name(name: str, place: str, taken: Mapping[str, Any]) -> str:
    base = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:MAX_NAME] or place
    candidate, number = base, 1
    while candidate in taken:
        candidate = f"{base[: MAX_NAME - 12]}_{place}" + (str(number) if number > 1 else "")
        number += 1
    return candidate


def _read_parameter(document: ApiDocument, node: Mapping[str, Any], argument: str) -> tuple[Parameter, Any]:
    """Return a parameter, and its schema as the document writes it."""
    place, name = node["in"], node["name"]
    style = str(node.get("style") or ("form" if place == "query" else "simple"))
    if style not in _STYLES[place]:
        raise DefinitionError(f"the parameter {name!r:.80} has the style {style!r:.40}, which is not supported")
    content, explode = node.get("content"), node.get("explode")
    is_json = isinstance(content, Mapping) and bool(content)
    owner = document.follow(next(iter(content.values()))) if is_json and content else node
    explode = style == "form" if explode is None else explode is True
    return Parameter(argument, place, name, style, explode, is_json), owner.get("schema", {})


def _described(schema: Any, node: Mapping[str, Any]) -> Any:
    text = node.get("description")
    if not isinstance(text, str) or not text.strip() or isinstance(schema, bool):
        return schema
    return {**schema, "description": strip_invisible(truncate(text.strip(), MAX_DESCRIPTION))}


def _read_body(document: ApiDocument, node: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the media type and the schema of a body, in the form that a call can write."""
    content = node.get("content")
    if not isinstance(content, Mapping):
        raise DefinitionError("its body has no content")
    written = {key.partition(";")[0].strip().lower(): value for key, value in content.items()}
    for kind in _BODIES:
        for media_type, media in written.items():
            if _body_kind(media_type) == kind:
                return _PLAIN_TYPES.get(media_type, media_type), document.follow(media).get("schema", {})
    raise DefinitionError(f"its body is {', '.join(written) or 'of no type'}, which is not supported")


def _body_kind(media_type: str) -> str:
    if _JSON.fullmatch(media_type) or media_type in _PLAIN_TYPES:
        return "json"
    return {_FORM: "form", "text/plain": "text"}.get(media_type, "")


def _json_body(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _form_body(value: Any) -> bytes:
    if not isinstance(value, Mapping):
        raise ToolError("The body of this call is a form: an object of fields.")
    pairs = [
        (name, _text(item))
        for name, field in value.items()
        for item in (field if isinstance(field, list) else [field])
        if item is not None
    ]
    return urlencode(pairs).encode()


def _text_body(value: Any) -> bytes:
    return _text(value).encode("utf-8", "replace")


_BODIES: dict[str, Callable[[Any], bytes]] = {"json": _json_body, "form": _form_body, "text": _text_body}
"""Writers of bodies, the preferred one first."""


def _text(value: Any) -> str:
    """Return a value as text in a place for text: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_text(value)


def _items(value: Any, *, explode: bool) -> list[str]:
    """Return the texts that the style "simple" puts commas between."""
    if isinstance(value, list):
        return list(map(_text, value))
    if not isinstance(value, Mapping):
        return [_text(value)]
    if explode:
        return [f"{key}={_text(item)}" for key, item in value.items()]
    return [text for key, item in value.items() for text in (key, _text(item))]


def _path_value(parameter: Parameter, value: Any) -> str:
    """Return a value as a part of the path, percent-encoded.

    Raises:
        ToolError: it is empty, or would lead to another path on servers that decode it before they look for `..`.
    """
    texts = [_text(value)] if parameter.is_json else _items(value, explode=parameter.explode)
    steps = re.split(r"[/\\]", ",".join(texts))
    # Without its last part, the path of one item is often the path of all items.
    if not any(texts) or any(step in (".", "..") for step in steps):
        raise ToolError(f"{parameter.argument} must be text that is neither empty nor a step in a path, such as '..'.")
    return ",".join(quote(text, safe="", errors="replace") for text in texts)


def _header_value(parameter: Parameter, value: Any) -> str:
    text = _text(value) if parameter.is_json else ",".join(_items(value, explode=parameter.explode))
    if not _HEADER_VALUE.fullmatch(text):
        raise ToolError(f"{parameter.argument} is a header: it consists of printable ASCII characters on one line.")
    return text.strip()


_STYLES: dict[str, dict[str, str]] = {
    "path": {"simple": ","},
    "header": {"simple": ","},
    "query": {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|", "deepObject": ","},
}
"""The styles of each place that can be written, with the separator of items that share one value."""
