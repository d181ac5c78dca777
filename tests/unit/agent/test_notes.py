"""What cannot be said to a model as it is, is told, once."""

import asyncio

import toolwire
from toolwire import FinishReason, ParsedResponse, ToolCall
from toolwire.agent import Agent
from toolwire.agent.run_events import TranslationNoted
from toolwire.client.client import Client
from toolwire.models.backends import ApiBackend
from toolwire.testing import ScriptedTransport


@toolwire.tool
def look(where: str) -> str:
    """Look somewhere."""
    return where


def test_loss_in_translation_to_an_api_is_an_event() -> None:
    api = toolwire.get_api("openai_chat")
    tools = [look, {"name": "strange" + "e" * 80, "description": "Strange.", "parameters": {"type": "object"}}]
    answers = [
        ParsedResponse(tool_calls=(ToolCall("look", {"where": "x"}, "1"),), finish_reason=FinishReason.TOOL_CALLS),
        ParsedResponse("Seen."),
    ]

    async def main() -> list[object]:
        async with Client(api, model="m", key="k", transport=ScriptedTransport(api, answers)) as client:
            return [event async for event in Agent(ApiBackend(client), tools).run("Look.")]

    noted = [event.note for event in asyncio.run(main()) if isinstance(event, TranslationNoted)]
    assert noted
    assert len(noted) == len(set(noted)), "though the model was asked twice"
    assert all(note.where.startswith("strange") for note in noted)
