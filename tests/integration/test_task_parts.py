"""Tasks and results of text, images and files, over connections and in a database of runs."""

import asyncio
from pathlib import Path

from tests.integration.models import calling, scripted
from tests.unit.agent.test_task_parts import REPORT, TASK, look

from toolwire import Client, Message, ParsedResponse, ToolCall
from toolwire.agent import Agent
from toolwire.agent.durable import DurableRuns
from toolwire.agent.task import task_message
from toolwire.models import ApiBackend
from toolwire.testing import ScriptedBackend

LOOK = ToolCall("look", {}, "call_1")


def test_tool_returns_parts_and_the_model_gets_them_over_an_api() -> None:
    async def work(url: str) -> str:
        async with Client("openai_chat", "m", base_url=url) as client:
            return await Agent(ApiBackend(client), [look], telemetry=False).ask(TASK)

    with scripted(calling(LOOK), ParsedResponse("I see.")) as server:
        assert asyncio.run(work(server.url)) == "I see."
    first, second = (asked["messages"] for asked in server.asked)
    assert [block["type"] for block in first[-1]["content"]] == ["text", "image_url", "file"]
    assert second[-2] == {"role": "tool", "tool_call_id": "call_1", "content": "A picture and a report."}
    assert [block["type"] for block in second[-1]["content"]] == ["text", "image_url", "file"]
    assert second[-1]["content"][2]["file"] == {"filename": "report.pdf", "file_data": REPORT.as_url}


def test_durable_run_records_the_parts_of_its_task(tmp_path: Path) -> None:
    model = ScriptedBackend(["They differ."])

    async def work() -> None:
        async with DurableRuns(Agent(model, telemetry=False), database=str(tmp_path / "runs.sqlite3")) as runs:
            assert await runs.ask(TASK, run_id="a") == "They differ."
            assert [info.task for info in runs.store.all()] == ["Compare these."]
            request = runs.store.request("a")
            assert request.content == task_message(TASK).parts

    asyncio.run(work())
    assert model.requests[0].messages[-1] == Message("user", TASK)
