"""A Starlette app in which a person approves calls later: in another request, and perhaps in another process.

pip install 'toolwire[agent,mcp]'       # starlette and uvicorn come with the extra mcp
OPENAI_API_KEY=... uvicorn examples.approval_app:app
curl -d 'Please delete old.txt.' 127.0.0.1:8000/ada
curl -d '{"decisions": {"call_1": true}, "digest": "f00"}' 127.0.0.1:8000/ada/decisions
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from toolwire import Agent, Client, ConversationError, JournalError, present, tool
from toolwire.agent import AgentEvent, ConversationStore, RunEnded

store = ConversationStore("sqlite:///chats.sqlite3")


@tool(destructive=True)
def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is deleted"


@asynccontextmanager
async def open_agent() -> AsyncIterator[Agent]:
    """Open an agent that ends a run where a person has to decide."""
    async with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
        yield Agent(client, [delete_file], confirm="defer")


async def shown(events: AsyncIterator[AgentEvent]) -> JSONResponse:
    """Return the answer of a run, or its questions to a person."""
    *_, end = [event async for event in events]
    assert isinstance(end, RunEnded)
    if end.pending is None:
        return JSONResponse({"answer": end.answer or end.detail})
    questions = {question.id: present(question.approval) for question in end.pending.approvals}
    return JSONResponse({"questions": questions, "digest": end.pending.digest}, status_code=202)


async def ask(request: Request) -> JSONResponse:
    """Continue the conversation with the text of the request."""
    conversation = store.open(request.path_params["name"])
    async with open_agent() as agent:
        events = agent.run((await request.body()).decode(), conversation=conversation)
        return await shown(events)


async def decide(request: Request) -> JSONResponse:
    """Resume what waits in the conversation, with the decisions of a person."""
    form, conversation = await request.json(), store.open(request.path_params["name"])
    if conversation.pending is None:
        return JSONResponse({"error": "nothing waits for an approval"}, status_code=409)
    async with open_agent() as agent:
        decisions, digest = form["decisions"], form["digest"]
        events = agent.resume(conversation.pending, decisions, digest=digest, conversation=conversation)
        return await shown(events)


async def conflict(request: Request, error: Exception) -> JSONResponse:
    """Report decisions about something else, or another process that was faster."""
    return JSONResponse({"error": str(error)}, status_code=409)


app = Starlette(
    routes=[Route("/{name}", ask, methods=["POST"]), Route("/{name}/decisions", decide, methods=["POST"])],
    exception_handlers={ConversationError: conflict, JournalError: conflict},
)
