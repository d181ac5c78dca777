"""Turns of recorded runs as the inspector's page shows requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolwire.inspector.exchange_summary import Json
from toolwire.text.tokens import estimate_tokens

_KINDS = {"content": "text", "call start": "call", "call end": "end of call"}


def view_of_turn(run: Mapping[str, Any], turn: Mapping[str, Any], messages: Mapping[int, Mapping[str, Any]]) -> Json:
    """Return the view of one request of a recorded run; see `exchange_view.view_of`.

    Args:
        run: the row of the run.
        turn: the row of the turn.
        messages: the rows of the run's messages, by their numbers.
    """
    sent = [messages[number] for number in turn.get("request") or () if number in messages]
    error, failed = str(turn.get("error") or ""), str(turn.get("failed") or "")
    calls = [_call(at, call) for at, call in enumerate(turn.get("calls") or ())]
    problems = turn.get("problems") or {}
    first, seconds = turn.get("time_to_first_event"), turn.get("seconds") or 0.0
    api = str(turn.get("api") or "text")
    body = {"messages": [{"role": message["role"], "content": message["text"]} for message in sent]}
    row: Json = {
        "id": f"{run['id']}.{turn['round']}.{turn.get('attempt', 1)}",
        "number": 0,
        "version": 0,
        "at": turn.get("started_at") or run.get("started_at") or 0.0,
        "state": "failed" if error else "done",
        "status": 0,
        "client": str(turn.get("agent") or run.get("agent") or ""),
        "session": str(run["id"]),
        "model": str(turn.get("model") or run.get("model") or ""),
        "path": "",
        "api_in": "agent",
        "api_out": api,
        "backend": "",
        "backend_model": str(turn.get("model") or ""),
        "attempts": 1,
        "format": str(turn.get("format") or ""),
        "passed": False,
        "stream": True,
        "first": None if first is None else round(first * 1000, 1),
        "total": round(seconds * 1000, 1),
        "input": turn.get("input_tokens"),
        "output": turn.get("output_tokens"),
        "cached": turn.get("cached_tokens"),
        "estimated": False,
        "cost": None,
        "calls": [call["name"] for call in calls],
        "incomplete": 0,
        "repairs": sum((turn.get("repairs") or {}).values()),
        "problems": problems,
        "finish": str(turn.get("finish") or ""),
        "notes": 0,
        "failure": error,
        "pinned": False,
        "resent_from": "",
        "characters": len(turn.get("raw") or ""),
    }
    events = [_event(*entry) for entry in turn.get("events") or ()]
    attempt = {"backend": "", "api": api, "model": row["backend_model"], "format": row["format"], "status": 0}
    attempt |= {"passed": False, "failure": error, "asked": 0, "answered": row["first"], "same": True, "request": None}
    return {
        "record": "exchange",
        "row": row,
        "start": 0,
        "steps": [{"n": 0, "t": row["total"], "raw": turn.get("raw") or "", "events": events}],
        "calls": calls,
        "read_as": row["format"],
        "content": "".join(event["text"] for event in events if event["kind"] == "text"),
        "reasoning": "".join(event["text"] for event in events if event["kind"] == "reasoning"),
        "problems": [{"kind": kind, "position": 0, "message": "", "raw": failed} for kind in problems],
        "notes": [],
        "truncated": False,
        "headers": {},
        "request": body,
        "attempts": [attempt],
        "tools": [],
        "parts": [
            {
                "place": f"messages[{at}]",
                "kind": "tool" if message["role"] == "tools" else "message",
                "label": message["role"],
                "tokens": estimate_tokens(len(message["text"])),
            }
            for at, message in enumerate(sent)
        ],
        "prefix": None,
        "sent": "",
    }


def _event(kind: str, text: str, count: int = 1) -> Json:
    return {"kind": _KINDS.get(kind, kind), "text": text + (f" ({count} pieces)" if count > 1 else "")}


def _call(at: int, call: Mapping[str, Any]) -> Json:
    text = str(call.get("arguments") or "")
    try:
        arguments: Any = json.loads(text)
    except ValueError:
        arguments = {}
    outcome = str(call.get("result") or "") if call.get("ok") else str(call.get("error") or "")
    issue = str(call.get("issue") or "")
    return {
        "index": at,
        "name": str(call.get("tool") or ""),
        "id": str(call.get("id") or ""),
        "begun": None,
        "ended": None,
        "complete": True,
        "known": True,
        "server": "",
        "format": str(call.get("format") or ""),
        "confidence": call.get("confidence", 1.0),
        "repairs": list(call.get("repairs") or ()),
        "issues": [{"pointer": "", "message": f"{issue}: {outcome}"}] if issue else [],
        "arguments": arguments,
        "text": text,
        "raw": "",
        "decision": str(call.get("decision") or ""),
        "result": outcome,
    }
