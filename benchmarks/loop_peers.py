"""Compare the agent loop with those of other frameworks: processor time of a round over one scripted server.

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install -e '.[agent]' 'pydantic-ai-slim[openai]' openai-agents
    /tmp/peers/bin/python benchmarks/loop_peers.py [--json]

A round is: ask over HTTP, read an answer with one call, validate and run the call, send the result. The server speaks
Chat Completions on this machine, streamed and whole. It runs in a process of its own, and so does each framework; the
processor time of the framework alone is counted. The frameworks take turns; the figure is the least of several tries.
None of them records or traces anything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROUNDS = 20
"""Rounds of a run; the last is an answer in prose."""
RUNS = 10
"""Runs of one try, after one that is not counted."""
TRIES = 3
PROSE = "Let me look at the next file; it should say more about the matter than the one before did. "
ANSWER = "That is all there is to say about it. " * 10
PIECE = 12
"""Characters of text or arguments in one event of a stream."""
TASK = "Note what you find."
Round = Callable[[], Awaitable[str]]


# -- the server ----------------------------------------------------------------------------------------------------


class Scripted(BaseHTTPRequestHandler):
    """Answers with a call until the conversation contains enough results."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        """Answer a request."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        step = sum(message["role"] == "tool" for message in request["messages"])
        arguments = json.dumps({"path": "src/part.py", "line": step, "text": "the text that stands there"})
        done = step >= ROUNDS - 1
        streamed = bool(request.get("stream"))
        body = stream_body(step, arguments, done) if streamed else whole_body(step, arguments, done)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def head(step: int, kind: str) -> dict[str, Any]:
    """Return the members that all bodies have."""
    return {"id": f"chatcmpl-{step}", "object": kind, "created": 1_700_000_000, "model": "scripted"}


USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def whole_body(step: int, arguments: str, done: bool) -> bytes:
    """Return a whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": ANSWER if done else PROSE}
    if not done:
        function = {"name": "note", "arguments": arguments}
        message["tool_calls"] = [{"id": f"call_{step}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if done else "tool_calls"}
    return json.dumps({**head(step, "chat.completion"), "choices": [choice], "usage": USAGE}).encode()


def stream_body(step: int, arguments: str, done: bool) -> bytes:
    """Return the events of a streamed answer."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    text = ANSWER if done else PROSE
    deltas += [{"content": text[at : at + PIECE]} for at in range(0, len(text), PIECE)]
    if not done:
        begin = {"index": 0, "id": f"call_{step}", "type": "function", "function": {"name": "note", "arguments": ""}}
        deltas += [{"tool_calls": [begin]}]
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": arguments[at : at + PIECE]}}]}
            for at in range(0, len(arguments), PIECE)
        ]
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    end = {"index": 0, "delta": {}, "finish_reason": "stop" if done else "tool_calls"}
    chunks += [{"choices": [end]}, {"choices": [], "usage": USAGE}]
    lines = [f"data: {json.dumps({**head(step, 'chat.completion.chunk'), **chunk})}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


# -- the frameworks ------------------------------------------------------------------------------------------------


async def note(path: str, line: int, text: str) -> str:
    """Note something about a line of a file."""
    return f"noted line {line} of {path}"


def toolwire_streamed(url: str) -> Round:
    """Return one run of Toolwire's agent."""
    import toolwire
    from toolwire.agent import Agent, AgentConfig, Budget
    from toolwire.models import ApiBackend

    client = toolwire.Client("openai_chat", "scripted", base_url=url, key="k")
    config = AgentConfig(system="You note what you find.", budget=Budget(rounds=ROUNDS + 1))
    agent = Agent(ApiBackend(client), [note], config, telemetry=False)
    return lambda: agent.ask(TASK)


def _pydantic_agent(url: str) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key="k"))
    return Agent(model, instructions="You note what you find.", tools=[note])


def pydantic_ai_whole(url: str) -> Round:
    """Return one run of Pydantic AI, with whole answers."""
    agent = _pydantic_agent(url)

    async def run() -> str:
        return str((await agent.run(TASK)).output)

    return run


def pydantic_ai_streamed(url: str) -> Round:
    """Return one run of Pydantic AI, with streamed answers."""
    agent = _pydantic_agent(url)

    async def run() -> str:
        output = ""
        async with agent.run_stream_events(TASK) as events:
            async for event in events:
                if hasattr(event, "result"):
                    output = str(event.result.output)
        return output

    return run


def _openai_agent(url: str) -> Any:
    from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI(base_url=url, api_key="k"))
    return Agent(name="noter", instructions="You note what you find.", model=model, tools=[function_tool(note)])


def openai_agents_whole(url: str) -> Round:
    """Return one run of the OpenAI Agents SDK, with whole answers."""
    from agents import Runner

    agent = _openai_agent(url)

    async def run() -> str:
        return str((await Runner.run(agent, TASK, max_turns=ROUNDS + 1)).final_output)

    return run


def openai_agents_streamed(url: str) -> Round:
    """Return one run of the OpenAI Agents SDK, with streamed answers."""
    from agents import Runner

    agent = _openai_agent(url)

    async def run() -> str:
        result = Runner.run_streamed(agent, TASK, max_turns=ROUNDS + 1)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    return run


FRAMEWORKS: dict[str, Callable[[str], Round]] = {
    "Toolwire, streamed": toolwire_streamed,
    "Pydantic AI, streamed": pydantic_ai_streamed,
    "Pydantic AI, whole": pydantic_ai_whole,
    "OpenAI Agents SDK, streamed": openai_agents_streamed,
    "OpenAI Agents SDK, whole": openai_agents_whole,
}


async def measure(name: str, url: str) -> float:
    """Return the processor time of a round, in milliseconds."""
    run = FRAMEWORKS[name](url)
    begun = 0.0
    for at in range(RUNS + 1):
        if at == 1:
            begun = time.process_time()
        answer = await run()
        assert answer.strip() == ANSWER.strip(), answer
    return (time.process_time() - begun) / RUNS / ROUNDS * 1e3


def compare() -> dict[str, float | None]:
    """Return the least processor time of a round for each framework; None for one that is not installed."""
    command = [sys.executable, os.fspath(__file__)]
    server = subprocess.Popen([*command, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        least: dict[str, float | None] = dict.fromkeys(FRAMEWORKS)
        for _ in range(TRIES):
            for name in FRAMEWORKS:
                worker = subprocess.run([*command, "--worker", name, url], capture_output=True, text=True, check=False)
                if worker.returncode:
                    print(f"{name}: {worker.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                    continue
                taken = float(worker.stdout)
                least[name] = min(taken, least[name] or taken)
    finally:
        server.kill()
    return least


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--worker", nargs=2, metavar=("NAME", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
        print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
        server.serve_forever()
    elif options.worker:
        print(asyncio.run(measure(*options.worker)))
    else:
        figures = compare()
        if options.json:
            print(json.dumps(figures))
            return
        own = figures["Toolwire, streamed"]
        print(f"{'':30} ms a round  Toolwire's share")
        for name, taken in figures.items():
            share = f"{own / taken:.0%}" if own and taken else ""
            print(f"{name:30} {'not installed' if taken is None else f'{taken:10.2f}'}  {share:>8}")


if __name__ == "__main__":
    main()
