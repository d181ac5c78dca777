"""Token counts of the gateway: each part of a request counts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import Scripted, asked, gateway, run

WORDS = "word " * 1_000


def source(media_type: str, size: int = 4_000) -> dict[str, Any]:
    return {"type": "base64", "media_type": media_type, "data": "QUFB" * (size // 4)}


PICTURE = {"type": "image", "source": source("image/png")}
PAGES = {"type": "document", "source": source("application/pdf", 40_000)}
TEXT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": WORDS}}
TOOLS = [{"name": "f", "description": WORDS, "input_schema": {"type": "object"}}]
SEARCH = [{"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["example.org"] * 100}]
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}


def said(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [*parts, {"type": "text", "text": "What is it?"}]}]}


def resulting(*parts: Any) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": list(parts)}
    return {"messages": [{"role": "assistant", "content": [CALL]}, {"role": "user", "content": [result]}]}


def tokens(part: dict[str, Any]) -> int:
    _, body = asked("messages", tools=False)
    counted = run(gateway(Scripted()), "/v1/messages/count_tokens", {**body, **part})
    return int(counted.json["input_tokens"])


@pytest.mark.parametrize(
    ("part", "without", "least"),
    [
        ({"system": WORDS}, {}, 1_000),
        ({"tools": TOOLS}, {}, 1_000),
        ({"tools": SEARCH}, {}, 200),
        (said(PICTURE), said(), 100),
        (said(PAGES), said(), 1_000),
        (said(TEXT), said(), 1_000),
        (resulting(PICTURE), resulting(), 100),
        (resulting(PAGES), resulting(), 1_000),
    ],
    ids=["instructions", "tools", "tools of a provider", "picture", "pages", "text", "picture result", "pages result"],
)
def test_each_part_of_a_request_has_its_tokens(part: dict[str, Any], without: dict[str, Any], least: int) -> None:
    assert tokens(part) - tokens(without) >= least
