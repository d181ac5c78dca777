"""Structured output over real connections: streamed by each API in its own bytes, whole and in parts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import Agent, Client, FinishReason, ParsedResponse, ToolCall, tool
from toolwire.agent import AgentConfig, AgentEvent, DurableRuns, PartialOutput, RunEnded
from toolwire.models import ApiBackend, TextBackend, client_source
from toolwire.testing import ScriptedBackend


class City(BaseModel):
    name: str
    people: int


DATA = {"name": "Bern", "people": 130_000}
BERN = City(name="Bern", people=130_000)
NATIVE = ParsedResponse(json.dumps(DATA))
CALL = ParsedResponse(tool_calls=(ToolCall("final_answer", DATA, "call_1"),), finish_reason=FinishReason.TOOL_CALLS)
TYPES = {"bedrock_converse": "application/vnd.amazon.eventstream", "ollama": "application/x-ndjson"}


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


async def run(agent: Agent[Any]) -> list[AgentEvent]:
    return [event async for event in agent.run("Which city?")]


@pytest.mark.parametrize("mode", ["native", "tool"])
@pytest.mark.parametrize("name", toolwire.apis())
def test_every_api_streams_an_output(name: str, mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("OPENAI_API_VERSION", "2026-01-01")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    api = toolwire.get_api(name)
    bodies: list[Any] = []

    def answer(asked: Asked) -> Answer:
        bodies.append(json.loads(asked.body))
        response = NATIVE if mode == "native" else CALL
        stream = b"".join(api.encode_stream(toolwire.replay(response), model="m"))
        return Answer(stream, content_type=TYPES.get(name, "text/event-stream"))

    async def work(url: str) -> list[AgentEvent]:
        async with Client(name, "m", base_url=url, key="k") as client:
            config = AgentConfig(output_mode=mode)
            return await run(Agent(ApiBackend(client), [clock], config, output_type=City, telemetry=False))

    with serving(answer) as url:
        events = asyncio.run(work(url))
    end = events[-1]
    assert isinstance(end, RunEnded)
    assert (end.reason, end.output) == ("answered", BERN)
    parts = [event.value for event in events if isinstance(event, PartialOutput)]
    assert parts[-1] == DATA
    (body,) = bodies
    assert ("final_answer" in json.dumps(body.get("tools") or body.get("toolConfig"))) is (mode == "tool")


def test_a_text_model_behind_an_api_corrects_itself() -> None:
    api = toolwire.get_api("openai")
    texts = [
        "The city is Bern.",
        toolwire.render_calls([ToolCall("final_answer", {"name": "Bern"})], format="hermes"),
        toolwire.render_calls([ToolCall("final_answer", DATA)], format="hermes"),
    ]
    prompts: list[str] = []

    def answer(asked: Asked) -> Answer:
        prompts.append(json.loads(asked.body)["messages"][-1]["content"])
        stream = b"".join(api.encode_stream(toolwire.replay(ParsedResponse(texts[len(prompts) - 1])), model="m"))
        return Answer(stream, content_type="text/event-stream")

    async def work(url: str) -> City:
        async with Client("openai", "m", base_url=url, key="k", text_format=None) as client:
            backend = TextBackend(client_source(client), format="hermes", model="m")
            return await Agent(backend, [clock], output_type=City, telemetry=False).ask("Which city?")

    with serving(answer) as url:
        assert asyncio.run(work(url)) == BERN
    assert '"name": "final_answer"' in prompts[1]
    assert "people" in prompts[2]


def test_output_of_a_recorded_run_is_restored(tmp_path: Path) -> None:
    wrapped = ToolCall("final_answer", {"response": DATA}, "call_1")
    backend = ScriptedBackend([ParsedResponse(tool_calls=(wrapped,), finish_reason=FinishReason.TOOL_CALLS)])
    agent = Agent(backend, [], AgentConfig(name="geographer"), output_type=City | None, telemetry=False)

    async def work() -> list[RunEnded]:
        ends: list[RunEnded] = []
        async with DurableRuns(agent, database=str(tmp_path / "runs.db")) as runs:
            async for event in runs.run("Which city?", run_id="one"):
                ends += [event] if isinstance(event, RunEnded) else []
            async for event in runs.watch("one"):
                ends += [event] if isinstance(event, RunEnded) else []
        return ends

    first, restored = asyncio.run(work())
    assert first.output == restored.output == BERN
    assert json.loads(restored.answer) == DATA
