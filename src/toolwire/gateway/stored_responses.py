"""Stored answers of the Responses API, which later requests continue by `previous_response_id` or read again."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from toolwire.errors import StateError
from toolwire.gateway.client_calls import ClientCall
from toolwire.gateway.failures import UNSUPPORTED, GatewayFailure
from toolwire.gateway.log_records import LOG
from toolwire.gateway.state_store import StateStore, failure_for_operators
from toolwire.providers.failure_kinds import INVALID, NOT_FOUND
from toolwire.text.json_text import same_object

MAX_STORED = 16 << 20
"""Maximum size of a stored conversation with its answer, in bytes as stored. Larger ones are not stored."""
MAX_UNPACKED = 64 << 20
"""Maximum size of a stored conversation with its answer before it is compressed, in bytes."""
MAX_LISTED = 100
"""Maximum number of items in one list."""
_KIND = "response"
_PREVIOUS = "previous_response_id"
_ENDS = (b'"response.completed"', b'"response.incomplete"')
"""Types of the events whose object is the whole response."""

Json = dict[str, Any]


class StoredResponse(NamedTuple):
    """A response from the store.

    Attributes:
        response: the response.
        items: its whole input.
        size: the size of both, in bytes.
    """

    response: Json
    items: list[Any]
    size: int


class StoredResponses:
    """The responses in a store; each belongs to the key that asked for it.

    Args:
        store: the store.
        seconds: the time for which a response is stored.
    """

    def __init__(self, store: StateStore, seconds: float) -> None:
        self._store = store
        self._seconds = seconds

    async def put(self, owner: str, response: Json, items: list[Any]) -> None:
        """Store a response with its whole input.

        Raises:
            StateError: the store cannot be used.
        """
        # A long conversation takes a while, in which other answers continue.
        data = await asyncio.to_thread(_packed, {"response": response, "input": items})
        if data is None:
            LOG.warning("the response %.80s is too large to be stored", response.get("id"))
            return
        await self._store.put(_KIND, owner, str(response["id"]), data, seconds=self._seconds)

    async def get(self, owner: str, id: str) -> StoredResponse:
        """Return a response and its whole input.

        Raises:
            GatewayFailure: there is no such response of this owner.
            StateError: the store cannot be used, or the response cannot be read.
        """
        data = await self._store.get(_KIND, owner, id)
        if data is None:
            raise _missing(id)
        try:
            return await asyncio.to_thread(_unpacked, data)
        except (zlib.error, ValueError, TypeError, KeyError) as error:
            raise StateError(f"the stored response {id:.80} cannot be read") from error

    async def delete(self, owner: str, id: str) -> None:
        """Delete a response.

        Raises:
            GatewayFailure: there is no such response of this owner.
            StateError: the store cannot be used.
        """
        if not await self._store.delete(_KIND, owner, id):
            raise _missing(id)


def _packed(document: Json) -> bytes | None:
    """Return a document as it is stored; None if it is too large."""
    text = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    # A conversation that repeats itself is small when it is compressed, and would grow without a bound.
    data = zlib.compress(text, 1) if len(text) <= MAX_UNPACKED else None
    return None if data is None or len(data) > MAX_STORED else data


def _unpacked(data: bytes) -> StoredResponse:
    text = zlib.decompress(data).decode("utf-8", "surrogatepass")
    document = json.loads(text, object_hook=same_object)
    return StoredResponse(dict(document["response"]), list(document["input"]), len(text))


def _missing(id: str) -> GatewayFailure:
    return GatewayFailure(NOT_FOUND, f"there is no stored response {id!r:.100}: send the conversation")


class _Recorder:
    """Finds the whole response in the bytes of a reply, and stores it before the client has them all."""

    def __init__(self, stored: StoredResponses, owner: str, items: list[Any], *, stream: bool) -> None:
        self._stored = stored
        self._owner = owner
        self._items = items
        self._stream = stream
        self._pieces: list[bytes] = []  # of an event whose end has not arrived
        self._last = b""  # the last bytes, which may be a part of that end

    async def record(self, data: bytes) -> None:
        """Look at the next bytes of the reply; of a stream, only its last event has the response."""
        if not self._stream:
            await self._put(_object(data))
            return
        # Pieces are joined once for each event, so that one event in very many pieces costs no more than in a few.
        self._pieces.append(data)
        end = self._last + data
        self._last = end[-3:]
        if b"\n\n" not in end.replace(b"\r\n", b"\n"):
            return
        *events, rest = b"".join(self._pieces).replace(b"\r\n", b"\n").split(b"\n\n")
        self._pieces = [rest]
        for event in events:
            if any(end in event for end in _ENDS):
                line = next((line for line in event.split(b"\n") if line.startswith(b"data:")), b"data:")
                await self._put(_object(line[5:]).get("response"))

    async def _put(self, response: Any) -> None:
        if not isinstance(response, dict) or not isinstance(response.get("id"), str) or response.get("error"):
            return
        try:
            await self._stored.put(self._owner, response, self._items)
        except StateError as error:
            # The answer is there and paid for: only a later request that refers to it fails, and says so.
            LOG.error("the response %.80s could not be stored: %s", response["id"], failure_for_operators(error))


def _object(data: bytes) -> Json:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _items_of(value: Any) -> list[Any]:
    """Return the items of the member `input`, which may be the text of one message."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": value}]}]
    return list(value) if isinstance(value, list) else []


async def create_response(call: ClientCall) -> None:
    """Answer a request of the Responses API, after the stored conversation that it may continue."""
    body = await call.body()
    stored, owner = call.services.responses, call.requester.owner
    if body.get("background"):
        why = "this server has no background responses: leave out background, or use a stream"
        raise GatewayFailure(UNSUPPORTED, why, parameter="background")
    if (previous := body.get(_PREVIOUS)) is not None:
        if not isinstance(previous, str):
            raise GatewayFailure(INVALID, f"{_PREVIOUS} must be text", parameter=_PREVIOUS)
        try:
            earlier = await _stored(call, previous).get(owner, previous)
        except GatewayFailure as failure:
            raise GatewayFailure(failure.kind, f"{_PREVIOUS}: {failure}", parameter=_PREVIOUS) from failure
        output = earlier.response.get("output")
        call.body_size += earlier.size
        body = {name: value for name, value in body.items() if name != _PREVIOUS}
        answer_items = output if isinstance(output, list) else ()
        body["input"] = [*earlier.items, *answer_items, *_items_of(body.get("input"))]
    question = await call.question(body)
    if stored is not None and body.get("store") is not False:
        call.reply.tap = _Recorder(stored, owner, _items_of(body.get("input")), stream=question.stream).record
    await call.answer(question)


async def retrieve_response(call: ClientCall) -> None:
    """Return a stored response."""
    if parse_qs(call.query).get("stream") == ["true"]:
        raise GatewayFailure(INVALID, "a stored response is returned as a whole: leave out stream")
    await call.send_json((await _find(call)).response)


async def delete_response(call: ClientCall) -> None:
    """Delete a stored response."""
    id = call.path["id"]
    await _stored(call, id).delete(call.requester.owner, id)
    await call.send_json({"id": id, "object": "response", "deleted": True})


async def cancel_response(call: ClientCall) -> None:
    """Refuse to cancel a stored response: it is complete, because only answers that are read at once are running."""
    await _find(call)
    raise GatewayFailure(INVALID, "the response is complete; to cancel one that is running, close its connection")


async def list_input_items(call: ClientCall) -> None:
    """List the input of a stored response, the last item first unless the query says `order=asc`."""
    items = (await _find(call)).items
    query = {name: values[0] for name, values in parse_qs(call.query).items()}
    listed = [_listed(item, f"{call.path['id'].removeprefix('resp_')}_{at}") for at, item in enumerate(items)]
    if query.get("order") != "asc":
        listed.reverse()
    if after := query.get("after"):
        position = next((at for at, item in enumerate(listed) if item["id"] == after), None)
        if position is None:
            raise GatewayFailure(INVALID, f"after: there is no item {after!r:.100}")
        listed = listed[position + 1 :]
    text = query.get("limit", "20")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_LISTED):
        raise GatewayFailure(INVALID, f"limit must be a number from 1 to {MAX_LISTED}")
    page = listed[: int(text)]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    await call.send_json({"object": "list", "data": page, "has_more": len(page) < len(listed), **ends})


def _listed(item: Any, id: str) -> Json:
    """Return an item as lists have it: with a type, an id, and content in parts."""
    members: Json = dict(item) if isinstance(item, Mapping) else {}
    kind = str(members.get("type") or "message")
    if kind == "message" and isinstance(content := members.get("content"), str):
        part = "output_text" if members.get("role") == "assistant" else "input_text"
        members["content"] = [{"type": part, "text": content}]
    return {**members, "type": kind, "id": members.get("id") or f"{'msg' if kind == 'message' else 'item'}_{id}"}


def _stored(call: ClientCall, id: str) -> StoredResponses:
    if call.services.responses is None:
        raise _missing(id)
    return call.services.responses


async def _find(call: ClientCall) -> StoredResponse:
    id = call.path["id"]
    return await _stored(call, id).get(call.requester.owner, id)
