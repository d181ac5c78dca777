"""One run of a command-line client: a gateway, a scripted model behind it, and the client, on loopback alone.

Run as a program in a network namespace of its own, it prints what came of the run as JSON: nothing that the client
sends leaves the machine, and its home folder is empty.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.clients.client_recipes import RECIPES, Recipe

from toolwire import Client, FinishReason, Message, ParsedResponse, ToolCall, ToolResult, get_api, render_calls
from toolwire.client.exchange import HttpAnswer, HttpRequest
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Upstream
from toolwire.gateway.serving import ServerOptions, serve
from toolwire.gateway.upstreams import ApiUpstream, TextUpstream
from toolwire.messages import TextPart
from toolwire.models import TextBackend, client_source
from toolwire.providers.request import ChatRequest
from toolwire.testing import ScriptedTransport

NOTE = "the colour is vermilion"
ANSWER = "It says that the colour is vermilion."
CLIENT_SECONDS = 120


class ReadingServer:
    """A server whose model reads one file with a tool, and then says what is in it.

    Args:
        call: the call that it makes where the tool is offered and no result is there yet.
        api: the API of the server.
        text_format: the wire format in which the model writes the call in its text; "" for a call of the API.
    """

    def __init__(self, call: ToolCall, api: str, text_format: str = "") -> None:
        self._call = call
        self._api = get_api(api)
        self._text_format = text_format
        self.requests: list[ChatRequest] = []

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpAnswer]:
        """Answer a request."""
        body = self._api.decode_request(json.loads(request.body))
        self.requests.append(body)
        names = [tool.name for tool in body.tools]
        is_offered = self._call.name in (_text_of(body.messages) if self._text_format else names)
        if not is_offered or _results_in(body, self._text_format):
            answer = ParsedResponse(ANSWER, finish_reason=FinishReason.STOP)
        elif self._text_format:
            answer = ParsedResponse(render_calls([self._call], format=self._text_format))
        else:
            answer = ParsedResponse("", tool_calls=(self._call,), finish_reason=FinishReason.TOOL_CALLS)
        async with ScriptedTransport(self._api, [answer]).open(request) as response:
            yield response

    def results(self) -> list[str]:
        """Return the results of tools that arrived."""
        return [text for request in self.requests for text in _results_in(request, self._text_format)]


def _text_of(messages: Sequence[Message]) -> str:
    return "".join(part.text for message in messages for part in message.parts if isinstance(part, TextPart))


def _results_in(request: ChatRequest, text_format: str) -> list[str]:
    """Return the results of a request; those of a model that reads text alone are in its messages."""
    if text_format:
        text = _text_of(request.messages)
        return [text] if NOTE in text else []
    parts = (part for message in request.messages for part in message.parts)
    return [part.text for part in parts if isinstance(part, ToolResult)]


def filled(value: Any, places: dict[str, str]) -> Any:
    """Return a value with what stands for the places of a run replaced by them."""
    if isinstance(value, str):
        for name, text in places.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, dict):
        return {filled(key, places): filled(member, places) for key, member in value.items()}
    return [filled(item, places) for item in value] if isinstance(value, list) else value


async def client_output(recipe: Recipe, places: dict[str, str]) -> tuple[int, str]:
    """Run a client, and return its exit status and what it printed."""
    for path, content in recipe.files.items():
        file = Path(filled(path, places))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled(content, places) if isinstance(content, str) else json.dumps(filled(content, places)))
    home = places["HOME"]
    own = {"HOME": home, "TMPDIR": home, "TERM": "dumb", "LANG": "C.UTF-8", "NO_COLOR": "1", "CI": "1"}
    environment = {"PATH": os.environ["PATH"], **own, **filled(dict(recipe.variables), places)}
    program = [*(["node"] if recipe.is_script else []), f"{places['PACKAGES']}/node_modules/{recipe.program}"]
    process = await asyncio.create_subprocess_exec(
        *program,
        *filled(list(recipe.arguments), places),
        cwd=places["PROJECT"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), CLIENT_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return -1, f"no end within {CLIENT_SECONDS} seconds"
    return process.returncode or 0, output.decode("utf-8", "replace")


def upstream_of(server: ReadingServer, api: str, text_format: str) -> Upstream:
    """Return the backend of a gateway that asks a server."""
    path = "/v1" if api in ("openai_compatible", "openai_responses") else ""
    client = Client(api, "backend", base_url=f"http://backend{path}", transport=server)
    if text_format:
        return TextUpstream(TextBackend(client_source(client), format=text_format, model="served"))
    return ApiUpstream(client, model="served", calls_in_text="none")


async def run(name: str, packages: str, api: str, text_format: str) -> dict[str, Any]:
    """Run a client against a gateway, and return its exit status, its output, and the results that the model got."""
    recipe = RECIPES[name]
    with tempfile.TemporaryDirectory(prefix="client-", ignore_cleanup_errors=True) as home:
        project = Path(home, "project")
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        (project / "note.txt").write_text(NOTE + "\n")
        places = {"HOME": home, "PROJECT": str(project), "PACKAGES": packages, "FILE": str(project / "note.txt")}
        tool, arguments = recipe.reads
        server = ReadingServer(ToolCall(tool, filled(dict(arguments), places), "call_1"), api, text_format)
        models = ModelTable([ServedModel("*", (upstream_of(server, api, text_format),))])
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(models, ServerOptions(port=0, grace=1), ready=url.set_result))
        try:
            status, output = await client_output(recipe, {**places, "URL": await url})
        finally:
            serving.cancel()
            await asyncio.wait({serving})
        tools = [[tool.name for tool in request.tools] for request in server.requests]
        return {"status": status, "output": output, "results": server.results(), "tools": tools}


if __name__ == "__main__":
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    print(json.dumps(asyncio.run(run(*sys.argv[1:]))))
