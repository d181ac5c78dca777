"""Responses of an HTTP API as results of tools: JSON values, text, images and files, within a size."""

from __future__ import annotations

import base64
import re
from http import HTTPStatus
from typing import Any

import httpx

from toolwire.errors import ToolError
from toolwire.runtime.attachments import media_part
from toolwire.text.json_text import standard_json, within_limits
from toolwire.text.truncate import truncate

MAX_ERROR = 800
"""Maximum length of an error's body for a model, in characters."""

_JSON = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?json")
_TEXT = re.compile(r"text/.*|application/(?:[\w.+-]+\+)?(?:xml|yaml|x-yaml|javascript|x-www-form-urlencoded)")


async def read_response(response: httpx.Response, max_bytes: int) -> Any:
    """Return the result of a call.

    Raises:
        ToolError: the status is not one of success, or the body is too long.
    """
    status = _status(response.status_code)
    if response.is_redirect:
        location = response.headers.get("location", "")
        raise ToolError(f"The server answered {status}, which was not followed: {truncate(location, 300)}")
    body = await _body(response, max_bytes)
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not response.is_success:
        text = _decoded(body, response) if _is_text(media_type) else ""
        raise ToolError(f"The server answered {status}" + (f": {truncate(text.strip(), MAX_ERROR)}" if text else "."))
    if not body:
        return status
    if _JSON.fullmatch(media_type):
        return _json(_decoded(body, response))
    if _is_text(media_type):
        return _decoded(body, response)
    data = base64.b64encode(body).decode("ascii")
    return media_part(media_type, data)


async def _body(response: httpx.Response, max_bytes: int) -> bytes:
    """Return the body.

    Raises:
        ToolError: it is too long, or compressed, which was not asked for: a small one could become huge.
    """
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise ToolError("The server compressed its answer, although it was asked not to.")
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > max_bytes:
            raise ToolError(f"The answer has more than {max_bytes:,} bytes; ask for less at a time.")
    return bytes(body)


def _is_text(media_type: str) -> bool:
    return not media_type or bool(_JSON.fullmatch(media_type) or _TEXT.fullmatch(media_type))


def _decoded(body: bytes, response: httpx.Response) -> str:
    try:
        return body.decode(response.charset_encoding or "utf-8", "replace")
    except LookupError:  # the server names an encoding that there is not
        return body.decode("utf-8", "replace")


def _json(text: str) -> Any:
    """Return a JSON value; or the text, if it is not one that a result may be."""
    try:
        value = standard_json(text)
        return value if within_limits(value) else text
    except (ValueError, RecursionError):
        return text


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)
