"""A Starlette app that front ends for AG-UI, such as CopilotKit, talk to.

pip install 'toolwire[agent,mcp]'       # starlette and uvicorn come with the extra mcp
OPENAI_API_KEY=... uvicorn examples.ag_ui_app:app
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from toolwire import Agent, tool
from toolwire.web import ag_ui_run


@tool
def get_weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: rain"


agent = Agent("openai:gpt-5-mini", [get_weather])


async def run(request: Request) -> StreamingResponse:
    """Answer the last message of a conversation; a client that disconnects ends the run."""
    return StreamingResponse(ag_ui_run(agent, await request.body()), media_type="text/event-stream")


app = Starlette(routes=[Route("/", run, methods=["POST"])])
