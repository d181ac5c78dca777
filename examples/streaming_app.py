"""A Starlette app that streams what an agent does to a browser, as server-sent events.

    pip install 'toolwire[agent,mcp]'       # starlette and uvicorn come with the extra mcp
    OPENAI_API_KEY=... uvicorn examples.streaming_app:app
    curl -N '127.0.0.1:8000/ask?question=Is+it+raining+in+Paris'

TOOLWIRE_EXAMPLE_URL selects a server of your own instead of OpenAI's.
"""

import json
import os
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from toolwire import Agent, CallStart, Client, ContentDelta, tool
from toolwire.agent import AgentEvent, RunEnded, ToolFinished


@tool
def get_weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: rain"


def for_browser(event: AgentEvent) -> dict[str, Any] | None:
    """Return the part of an event that a page shows, or None."""
    match event:
        case ContentDelta(text):
            return {"type": "text", "text": text}
        case CallStart(name=name):
            return {"type": "call", "tool": name}
        case ToolFinished(outcome):
            return {"type": "result", "text": outcome.result.text}
        case RunEnded(reason=reason):
            return {"type": "end", "reason": reason}
        case _:
            return None


async def stream(question: str) -> AsyncIterator[str]:
    """Yield the events of a run; a client that disconnects ends the run."""
    async with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
        async for event in Agent(client, [get_weather]).run(question):
            if (data := for_browser(event)) is not None:
                yield f"data: {json.dumps(data)}\n\n"


async def ask(request: Request) -> StreamingResponse:
    """Answer the question in the query."""
    return StreamingResponse(stream(request.query_params["question"]), media_type="text/event-stream")


app = Starlette(routes=[Route("/ask", ask)])
