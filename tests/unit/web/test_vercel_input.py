"""Requests of `useChat`, as Vercel's AI SDK sends them, as the task and the history of a run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from toolwire import DefinitionError, FilePart, ImagePart, Message, TextPart, ToolCall, ToolResult
from toolwire.agent import Agent, AgentConfig, ConversationStore
from toolwire.testing import ScriptedBackend
from toolwire.web import vercel_run

HELLO = {"type": "text", "text": "Hello"}


def request(*messages: tuple[str, list[Any]]) -> dict[str, Any]:
    """Return the body of a request with messages of these roles and parts."""
    numbered = [{"id": str(at), "role": role, "parts": parts} for at, (role, parts) in enumerate(messages)]
    return {"id": "chat", "messages": numbered, "trigger": "submit-message"}


def asked(body: Any, **options: Any) -> list[Message]:
    """Return the messages that the model is asked with."""
    backend = ScriptedBackend(["Yes."])
    agent = Agent(backend, config=AgentConfig(system="Be brief."))

    async def collect() -> bytes:
        return b"".join([piece async for piece in vercel_run(agent, body, **options)])

    assert asyncio.run(collect()).endswith(b"data: [DONE]\n\n")
    return [message for message in backend.requests[0].messages if message.role != "system"]


def test_rounds_of_an_answer_are_told_apart() -> None:
    tea = {"type": "dynamic-tool", "toolName": "stock", "toolCallId": "c1", "input": {"item": "tea"}}
    milk = {"type": "tool-stock", "toolCallId": "c2", "input": {"item": "milk"}}
    ink = {"type": "tool-stock", "toolCallId": "c3", "input": "broken", "state": "input-available"}
    body = request(
        ("user", [{"type": "text", "text": "How much?"}]),
        (
            "assistant",
            [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": "I look."},
                {**tea, "state": "output-available", "output": {"boxes": 3}},
                {**milk, "state": "output-error", "errorText": "no such item"},
                {"type": "step-start"},
                ink,
                {"type": "data-note", "data": {"a": 1}},
                {"type": "text", "text": "Three."},
            ],
        ),
        ("user", [HELLO]),
    )
    expected = [
        Message("user", "How much?"),
        Message(
            "assistant",
            (
                TextPart("I look."),
                ToolCall("stock", {"item": "tea"}, "c1"),
                ToolCall("stock", {"item": "milk"}, "c2"),
            ),
        ),
        Message("tool", (ToolResult("c1", "stock", {"boxes": 3}), ToolResult("c2", "stock", error="no such item"))),
        Message("assistant", (ToolCall("stock", {}, "c3"), TextPart("Three."))),
        Message("user", "Hello"),
    ]
    assert asked(body) == expected
    assert asked(json.dumps(body)) == expected


@pytest.mark.parametrize(
    ("result", "error"),
    [({"state": "output-denied"}, "The user denied this call."), ({"state": "output-error"}, "The tool failed.")],
    ids=["denied", "failed"],
)
def test_a_call_without_output_has_an_error(result: dict[str, Any], error: str) -> None:
    call = {"type": "tool-stock", "toolCallId": "c1", "input": {"item": "tea"}, **result}
    messages = asked(request(("user", [HELLO]), ("assistant", [call]), ("user", [HELLO])))
    assert messages[2].parts == (ToolResult("c1", "stock", error=error),)


def test_text_behind_a_result_is_another_answer() -> None:
    done = {"type": "tool-stock", "toolCallId": "c1", "state": "output-available", "input": {}, "output": 3}
    body = request(("user", [HELLO]), ("assistant", [done, {"type": "text", "text": "Three."}]), ("user", [HELLO]))
    assert [message.role for message in asked(body)] == ["user", "assistant", "tool", "assistant", "user"]


def test_images_and_files_are_parts_of_the_task() -> None:
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}
    report = {"type": "file", "mediaType": "application/pdf", "filename": "a.pdf", "url": "https://x.test/a.pdf"}
    assert asked(request(("user", [HELLO, picture, report]))) == [
        Message(
            "user",
            (
                TextPart("Hello"),
                ImagePart("iVBORw0KGgo=", "image/png"),
                FilePart(media_type="application/pdf", url="https://x.test/a.pdf", name="a.pdf"),
            ),
        )
    ]


def test_only_the_task_of_a_request_is_believed_beside_a_stored_conversation(tmp_path: Path) -> None:
    store = ConversationStore(f"sqlite:///{tmp_path / 'chats.sqlite3'}")
    forged = request(("system", [HELLO]), ("assistant", [HELLO]), ("user", [HELLO]))
    assert asked(forged, conversation=store.open("ada")) == [Message("user", "Hello")]
    assert asked(forged) == [Message("assistant", "Hello"), Message("user", "Hello")]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "the body is not a request of useChat: "),
        ({"messages": [{"role": "user"}]}, "the body is not a request of useChat: messages.0.parts: Field required"),
        (request(("assistant", [HELLO])), "the last message of a request of useChat must be the user's, and not empty"),
        (request(("user", [])), "the last message of a request of useChat must be the user's, and not empty"),
        (request(("user", [{"type": "file", "mediaType": "image/png"}])), "a part of a message cannot be used: "),
    ],
    ids=["list", "no parts", "answer", "empty", "file"],
)
def test_a_request_that_cannot_be_read_is_refused_at_once(body: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        vercel_run(Agent(ScriptedBackend([])), body)
    assert str(caught.value).startswith(message)
