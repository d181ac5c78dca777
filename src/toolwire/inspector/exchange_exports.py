"""Exchanges for use elsewhere: a command of curl, and a row of the conformance tests."""

from __future__ import annotations

import json
import shlex
from typing import Any

from toolwire.inspector.exchange_summary import Json

SENT_HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta")
"""Headers of a client that change the meaning of its body."""


def curl_command(view: Json, base_url: str) -> str:
    """Return a command for a shell that sends the client's request again; the key is a variable of the shell.

    Args:
        view: the view of the exchange.
        base_url: the gateway's address.
    """
    path = view["row"]["path"].partition("?")[0]
    query = "?alt=sse" if "streamGenerateContent" in path else ""
    words = ["curl", "--no-buffer", shlex.quote(base_url + path + query)]
    headers = {"content-type": "application/json"}
    headers |= {name: view["headers"][name] for name in SENT_HEADERS if view.get("headers", {}).get(name)}
    lines = [" ".join(words), *(f"  --header {shlex.quote(f'{name}: {value}')}" for name, value in headers.items())]
    lines.append('  --header "authorization: Bearer $TOOLWIRE_KEY"')
    body = json.dumps(view.get("request"), ensure_ascii=False)
    lines.append(f"  --data-raw {shlex.quote(body)}")
    return " \\\n".join(lines) + "\n"


def conformance_row(view: Json) -> Json:
    """Return a row of the conformance tests: the answer and what was read from it, to be checked by a person.

    The answer of a model that writes text alone becomes a row of text, that of an API a row of recorded traffic.
    """
    row = view["row"]
    attempt = view["attempts"][-1] if view.get("attempts") else {}
    raw = "".join(step["raw"] for step in view["steps"])
    calls = [
        {"name": call["name"], "arguments": call.get("arguments", {}), "repairs": call["repairs"]}
        for call in view["calls"]
        if call["complete"]
    ]
    id = f"inspector/{row['model'] or 'model'}/{row['id'][:12]}"
    if row["api_out"] == "text":
        expected = {"calls": calls, "content": view["content"], "problems": [p["kind"] for p in view["problems"]]}
        kind = "complete" if row["finish"] in ("stop", "tool_calls") else "truncated"
        return {
            "id": id,
            "format": view["read_as"],
            "tools": _tools(view.get("request")),
            "text": raw,
            "kind": kind,
            "expect": expected,
            "source": f"{row['backend_model'] or row['model']}, through the gateway",
        }
    return {
        "id": id,
        "provider": row["backend"],
        "model": row["backend_model"],
        "api": row["api_out"],
        "status": attempt.get("status", 0),
        "kind": "recorded",
        "stream": row["stream"],
        "request": view.get("request") if attempt.get("same") else attempt.get("request"),
        "response": None if row["stream"] else _parsed(raw),
        "sse": raw if row["stream"] else None,
        "calls": [{"name": call["name"], "arguments": call["arguments"]} for call in calls],
        "text": view["content"],
    }


def _parsed(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def _tools(body: Any) -> list[Any]:
    tools = body.get("tools") if isinstance(body, dict) else None
    return tools if isinstance(tools, list) else []
