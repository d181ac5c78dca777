"""Vercel's AI SDK reads runs as its front ends do: its own transport asks a server, and its own reader makes a message.

The package `ai` is fetched once from npm into the cache folder. Without it, these tests are skipped with the reason.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.npm_packages import installed
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import ArgumentsDelta, CallStart, ContentDelta, Finish, FinishReason, Message, ParsedResponse, ToolCall
from toolwire.agent import Agent
from toolwire.messages import ReasoningPart, TextPart
from toolwire.testing import ScriptedBackend
from toolwire.web import VERCEL_HEADERS, vercel_run, vercel_stream

pytestmark = pytest.mark.npm
PACKAGE = "ai@6.0.326"
PROGRAM = Path(__file__).with_name("ai_sdk") / "read_chat.mjs"


@pytest.fixture(scope="module")
def program() -> Path:
    """The program beside an installed package, since Node looks for packages in the folders above a program."""
    return Path(shutil.copy(PROGRAM, installed(PACKAGE)))


@toolwire.tool
async def stock(item: str) -> AsyncGenerator[Any]:
    """Return how much of an item there is."""
    yield "looking"
    yield {"tea": {"boxes": 12}}[item]


def calling(*items: str) -> ParsedResponse:
    calls = tuple(ToolCall("stock", {"item": item}, f"call_{item}") for item in items)
    parts = (ReasoningPart("Tea?"), TextPart("I look."), *calls)
    return ParsedResponse("I look.", "Tea?", calls, parts=parts, finish_reason=FinishReason.TOOL_CALLS)


def shown(program: Path, agent: Agent[str]) -> dict[str, Any]:
    """Return what a page shows of a run, as the AI SDK reports it."""
    questions: list[str] = []

    async def body(question: str) -> bytes:
        return b"".join([piece async for piece in vercel_stream(agent.run(question), message_id="answer")])

    def answer(asked: Asked) -> Answer:
        messages = json.loads(asked.body)["messages"]
        questions.append("".join(part["text"] for part in messages[-1]["parts"] if part["type"] == "text"))
        headers = {name: value for name, value in VERCEL_HEADERS.items() if name != "content-type"}
        return Answer(asyncio.run(body(questions[-1])), headers=headers, content_type=VERCEL_HEADERS["content-type"])

    with serving(answer) as url:
        command = ["node", os.fspath(program), f"{url}/chat", "How much tea?"]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr
    assert questions == ["How much tea?"]
    read: dict[str, Any] = json.loads(finished.stdout)
    assert read["finished"]
    return read


def continued(program: Path, agent: Agent[str], *earlier: dict[str, Any]) -> dict[str, Any]:
    """Return the message that a page gets for a question after earlier messages, from a server that uses them."""

    async def body(request: bytes) -> bytes:
        return b"".join([piece async for piece in vercel_run(agent, request)])

    with serving(lambda asked: Answer(asyncio.run(body(asked.body)), content_type="text/event-stream")) as url:
        command = ["node", os.fspath(program), f"{url}/chat", "How much tea?", json.dumps(earlier)]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr
    message: dict[str, Any] = json.loads(finished.stdout)["message"]
    return message


def parts(message: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the parts of a message in short."""
    return [
        (part["type"], *(part[key] for key in ("state", "text", "input", "output", "errorText") if key in part))
        for part in message["parts"]
    ]


def test_a_run_with_calls_becomes_one_message(program: Path) -> None:
    model = ScriptedBackend([calling("tea", "salt"), "12 boxes."])
    read = shown(program, Agent(model, [stock]))
    assert (read["message"]["id"], read["message"]["role"], read["errors"]) == ("answer", "assistant", [])
    failed = parts(read["message"]).pop(4)
    assert failed[:3] == ("dynamic-tool", "output-error", {"item": "salt"})
    assert "KeyError" in failed[3]
    assert [part for part in parts(read["message"]) if part != failed] == [
        ("step-start",),
        ("reasoning", "done", "Tea?"),
        ("text", "done", "I look."),
        ("dynamic-tool", "output-available", {"item": "tea"}, {"boxes": 12}),
        ("step-start",),
        ("text", "done", "12 boxes."),
    ]


def test_the_messages_of_the_page_are_the_history_of_the_next_run(program: Path) -> None:
    model = ScriptedBackend([calling("tea", "salt"), "12 boxes.", "As I said."])
    agent = Agent(model, [stock])
    question = {"id": "q", "role": "user", "parts": [{"type": "text", "text": "How much tea?"}]}
    continued(program, agent, question, continued(program, agent))
    calls = tuple(ToolCall("stock", {"item": item}, f"call_{item}") for item in ("tea", "salt"))
    assert model.requests[2].messages == (
        Message("user", "How much tea?"),
        Message("assistant", (TextPart("I look."), *calls)),
        model.requests[1].messages[-1],  # the results, as the first run has them
        Message("assistant", "12 boxes."),
        Message("user", "How much tea?"),
    )


def test_a_call_that_waits_for_an_approval_is_a_part_of_the_message(program: Path) -> None:
    @toolwire.tool(destructive=True)
    def order(item: str) -> str:
        """Order an item."""
        return "ordered"

    model = ScriptedBackend([ParsedResponse(tool_calls=(ToolCall("order", {"item": "tea"}, "call_1"),))])
    read = shown(program, Agent(model, [order], confirm="defer"))
    (approval,) = [part for part in read["message"]["parts"] if part["type"] == "data-approval"]
    assert (approval["data"]["toolCallId"], approval["data"]["toolName"]) == ("call_1", "order")
    assert read["errors"] == []


def test_a_call_that_was_cut_off_and_a_run_that_failed_are_errors_of_the_page(program: Path) -> None:
    cut = [
        ContentDelta("Let"),
        CallStart(0, "stock", "call_1"),
        ArgumentsDelta(0, '{"item": "t'),
        Finish(FinishReason.LENGTH),
    ]
    read = shown(program, Agent(ScriptedBackend([cut]), [stock]))
    assert len(read["errors"]) == 1
    assert "the answer was cut off at the model's limit" in read["errors"][0]
