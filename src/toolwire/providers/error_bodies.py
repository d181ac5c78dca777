"""Errors that take the place of an answer, in the ways of servers, gateways and proxies that follow no API.

A body with the status 200, or a part of a stream, may be such an error in every API. The modules of the APIs read their
own errors; what they cannot read, or read nothing from, is looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolwire.text.json_text import json_excerpt

MEMBERS = frozenset(
    ("error", "errors", "detail", "message", "Message", "msg", "error_message", "error_msg", "error_description")
)
"""Members that contain an error or its text. FastAPI writes `detail`, AWS `Message`, Cloudflare `errors`."""
_TEXTS = ("message", "Message", "msg", "error_description", "error_message", "error_msg", "detail", "title")
_NESTED = ("error", "errors", "detail")
_EVENT = re.compile(r"[a-z_-]+(?:\.[a-z_-]+)*")
"""A word for the kind of an event or an object, unlike the name of an exception or the address of a problem."""


def error_in(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the error that a body consists of, with its text as `message`; None if it consists of something else.

    Call it for bodies that the module of their API reads nothing from: an answer may have such members, too.
    """
    for name in _NESTED:
        value = body.get(name)
        if name == "errors" and isinstance(value, list) and value and isinstance(value[0], Mapping):
            value = value[0]  # the first of several
        if isinstance(value, Mapping) and value:
            return {**value, "message": _text_of(value) or json_excerpt(dict(value))}
        if isinstance(value, list) and value:
            return {**body, "message": json_excerpt(value)}
    text = _text_of(body) or body.get("error")
    return {**body, "message": str(text)} if text else None


def may_be_error(part: Mapping[str, Any]) -> bool:
    """Return whether a part of a stream may be an error: it has such a member, and is not named as another event."""
    return not MEMBERS.isdisjoint(part) and not any(map(_is_event, map(part.get, ("object", "type", "event_type"))))


def _text_of(error: Mapping[str, Any]) -> str:
    texts = (error.get(name) for name in _TEXTS)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _is_event(word: Any) -> bool:
    """Return whether a word names an event that is not an error, as `response.created` does."""
    return isinstance(word, str) and bool(_EVENT.fullmatch(word)) and not word.endswith(("error", "exception"))
