"""The SDK's dispatcher of messages, made to keep a server's readable tools when it lists unreadable ones too."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from toolwire.mcp.definitions import QuarantinedTool, clean

MAX_REASON = 500
"""Maximum length of a server's text in a message of ours, in characters."""

_COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class ListingDispatcher(JSONRPCDispatcher):
    """The SDK's dispatcher, with an event for its end; it sets aside single tools that the SDK cannot read.

    Without that, one malformed tool would make the SDK refuse the whole list.

    Attributes:
        ended: set when no message can arrive any more.
        listed: the readable tools of the last page, as received.
        unreadable: its other tools.
        size: size of that page, in bytes of JSON.
    """

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.ended = asyncio.Event()
        self.version = ""
        self.listed: list[Any] = []
        self.unreadable: list[QuarantinedTool] = []
        self.size = 0

    async def run(self, *args: Any, **options: Any) -> None:
        """Dispatch messages until none can arrive; then set `ended`."""
        try:
            await super().run(*args, **options)
        finally:
            self.ended.set()

    async def send_raw_request(self, method: str, *args: Any, **options: Any) -> dict[str, Any]:
        """Send a request and return its raw result; a list of tools holds only those that the SDK can read."""
        raw = await super().send_raw_request(method, *args, **options)
        if method == "tools/list":
            self.listed, self.unreadable = [], []
            self.size = len(json.dumps(raw, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
            tools = raw.get("tools")
            raw = {
                **raw,
                "tools": [tool for tool in (tools if isinstance(tools, list) else []) if self._readable(tool)],
            }
        return raw

    def _readable(self, tool: Any) -> bool:
        try:
            validate_server_result("tools/list", self.version, {"tools": [tool]} | _COMPLETE)
        except (ValueError, RecursionError) as error:  # other than those of validation: the SDK cannot write it
            reason = str(error)
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                reason = f"{'.'.join(str(key) for key in first['loc'] if key != 'tools')}: {first['msg']}"
            name = tool.get("name") if isinstance(tool, dict) else None
            shown = clean(name, MAX_REASON) if isinstance(name, str) else "(no name)"
            self.unreadable.append(QuarantinedTool(shown, clean(reason, MAX_REASON)))
            return False
        self.listed.append(tool)
        return True
