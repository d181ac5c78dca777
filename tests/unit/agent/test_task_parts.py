"""Tasks and results of text, images and files, through the agent loop."""

import asyncio
import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from toolwire import (
    Client,
    FilePart,
    Finish,
    FinishReason,
    ImagePart,
    Message,
    Notes,
    ParsedResponse,
    Session,
    TextPart,
    ToolCall,
    ToolResult,
    attach,
    tool,
)
from toolwire.agent import Agent, PendingApprovals, RunEnded, TaskStarted
from toolwire.agent.codec import from_json, to_json
from toolwire.agent.task import more_than_text, task_message
from toolwire.errors import DefinitionError
from toolwire.models import TextBackend
from toolwire.models.backends import text_messages
from toolwire.models.process_sources import local_source
from toolwire.testing import ScriptedBackend, ScriptedTransport

PIXEL = ImagePart(base64.b64encode(b"\x89PNG\r\n\x1a\n...").decode())
REPORT = FilePart(base64.b64encode(b"%PDF-1.7 ...").decode(), name="report.pdf")
NOTES = FilePart.of_text("Snow: 3 cm", name="notes.txt")
TASK = ["Compare these.", PIXEL, REPORT]


@tool
def look() -> list[Any]:
    """Return what the camera sees."""
    return ["A picture and a report.", PIXEL, REPORT]


def test_text_of_a_task_is_reported_and_all_of_it_reaches_the_model() -> None:
    model, session, events = ScriptedBackend(["They differ."]), Session(), []

    async def work() -> None:
        async with aclosing(Agent(model, telemetry=False).run(TASK, session=session)) as running:
            events.extend([event async for event in running])

    asyncio.run(work())
    assert [event.task for event in events if isinstance(event, TaskStarted)] == ["Compare these."]
    expected = Session()
    expected.record_question("Compare these.")
    assert session._user_sentences == expected._user_sentences
    assert model.requests[0].messages[-1] == Message("user", TASK)
    assert events[-1].messages[0].parts == (TextPart("Compare these."), PIXEL, REPORT)


@pytest.mark.parametrize("task", [3, [], [3], {"a": 1}, [ToolResult("a", "b")], iter(["x"])])
def test_a_task_of_another_type_is_refused_at_once(task: Any) -> None:
    with pytest.raises(TypeError, match="task must be text, or a list of text, images and files"):
        Agent(ScriptedBackend([]), telemetry=False).run(task)


def test_client_asks_with_text_and_parts() -> None:
    transport = ScriptedTransport("openai_chat", [ParsedResponse("A dot.")])
    client = Client("openai_chat", "m", transport=transport)
    assert client.ask_sync(["What is on this picture?", PIXEL]).content == "A dot."
    (message,) = transport.requests[0]["messages"]
    assert message["content"][0] == {"type": "text", "text": "What is on this picture?"}
    assert message["content"][1]["image_url"]["url"] == PIXEL.as_url


class Recorder:
    """A model in this process that remembers what it is asked."""

    def __init__(self) -> None:
        self.asked: list[list[Mapping[str, str]]] = []

    def stream(self, messages: Sequence[Mapping[str, str]], /, *, max_tokens: int = 9) -> Iterator[str | Finish]:
        self.asked.append(list(messages))
        yield '<tool_call>{"name": "look", "arguments": {}}</tool_call>' if len(self.asked) == 1 else "Seen."
        yield Finish(FinishReason.STOP)


def test_model_of_text_alone_reads_what_it_is_not_shown() -> None:
    model = Recorder()
    agent = Agent(TextBackend(local_source(model), format="hermes"), [look], telemetry=False)  # type: ignore[arg-type]
    assert asyncio.run(agent.ask(["Compare these.", PIXEL, NOTES])) == "Seen."
    asked, answered = model.asked[0][-1]["content"], model.asked[1][-1]["content"]
    assert "Compare these." in asked
    assert "Image (image/png): it cannot be shown here." in asked
    assert "Document notes.txt:\nSnow: 3 cm" in asked
    assert "A picture and a report." in answered
    assert "Document report.pdf (application/pdf): it cannot be shown here." in answered


def test_model_of_text_alone_notes_what_it_is_not_shown() -> None:
    notes = Notes()

    async def ask() -> None:
        async with aclosing(local_source(Recorder())([Message("user", ["x", PIXEL, NOTES])], notes=notes)) as events:  # type: ignore[arg-type, call-arg]
            async for _ in events:
                pass

    asyncio.run(ask())
    assert [(note.kind, note.where) for note in notes] == [("dropped", "image"), ("changed", "document notes.txt")]


def test_result_of_media_alone_is_text_in_a_text_format_and_its_media_follow() -> None:
    result = Message("tool", (ToolResult("call_1", "look", images=(PIXEL,), files=(REPORT,)),))
    (message,) = text_messages([result], format="hermes")
    assert "The file follows." in message.text
    assert "null" not in message.text
    assert message.parts[1:] == (PIXEL, REPORT)


@pytest.mark.parametrize("part", [PIXEL, REPORT, NOTES, FilePart(url="https://x/a.mp4", media_type="video/mp4")])
def test_recorded_parts_are_read_back(part: Any) -> None:
    media = (part,) if isinstance(part, FilePart) else ()
    message = Message("user", (TextPart("x"), part, ToolResult("a", "b", files=media)))
    assert from_json(Message, to_json(message)) == message


def test_pending_approvals_contain_the_parts_of_the_task() -> None:
    @tool(destructive=True)
    def delete() -> str:
        """Delete everything."""
        return "Deleted."

    call = ParsedResponse(tool_calls=(ToolCall("delete", {}, "call_1"),), finish_reason=FinishReason.TOOL_CALLS)
    model = ScriptedBackend([call, "Done."])
    agent = Agent(model, [delete], confirm="defer", telemetry=False)

    async def work() -> list[Any]:
        async with aclosing(agent.run(TASK)) as running:
            return [event async for event in running]

    ended = asyncio.run(work())[-1]
    assert isinstance(ended, RunEnded)
    assert ended.pending is not None
    pending = PendingApprovals.from_json(ended.pending.to_json())
    assert (pending.task, pending.content) == ("Compare these.", task_message(TASK).parts)
    end = list(agent.resume_sync(pending, {"call_1": True}))[-1]
    assert isinstance(end, RunEnded)
    assert end.answer == "Done."
    assert model.requests[-1].messages[0] == Message("user", TASK)


def test_text_is_all_of_a_task_that_is_text() -> None:
    assert more_than_text(task_message("x")) == more_than_text(task_message(["x"])) == ()
    assert more_than_text(task_message(["x", "y"])) == (TextPart("x"), TextPart("y"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.PNG", b"\x89PNG", ImagePart(base64.b64encode(b"\x89PNG").decode(), "image/png")),
        ("a.pdf", b"%PDF-", FilePart(base64.b64encode(b"%PDF-").decode(), "application/pdf", name="a.pdf")),
        ("a.md", b"# A", FilePart.of_text("# A", "text/markdown", name="a.md")),
        ("a.mp3", b"ID3", FilePart(base64.b64encode(b"ID3").decode(), "audio/mpeg", name="a.mp3")),
    ],
)
def test_file_is_attached_by_its_suffix(name: str, content: bytes, expected: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert attach(tmp_path / name) == attach(str(tmp_path / name)) == expected


def test_unknown_types_and_large_files_are_not_attached(tmp_path: Path) -> None:
    path = tmp_path / "a.xyz"
    path.write_bytes(b"12345")
    with pytest.raises(DefinitionError, match=r"a\.xyz has the suffix '\.xyz', which shows no media type"):
        attach(path)
    assert attach(path, media_type="text/plain") == FilePart.of_text("12345", name="a.xyz")
    with pytest.raises(DefinitionError, match=r"a\.xyz has 5 bytes; at most 4 can be attached"):
        attach(path, media_type="text/plain", max_bytes=4)
    with pytest.raises(FileNotFoundError):
        attach(tmp_path / "b.pdf")


def test_a_folder_or_a_missing_file_is_not_reported_as_an_unknown_media_type(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        attach(tmp_path)
    with pytest.raises(FileNotFoundError):
        attach(tmp_path / "report")


def test_files_are_brought_into_one_form() -> None:
    assert FilePart(url="data:application/pdf;base64,AAAA") == FilePart("AAAA", "application/pdf")
    assert FilePart("AAAA", "audio/MP3; rate=1").media_type == "audio/mpeg"
    assert (REPORT.media_type, REPORT.kind) == ("application/pdf", "document")
    assert [FilePart("AA==", kind).kind for kind in ("audio/wav", "video/mp4", "")] == ["audio", "video", "document"]
    assert (NOTES.text, REPORT.text, FilePart("/w==", "text/plain").text) == ("Snow: 3 cm", None, None)
    with pytest.raises(TypeError, match="name must be text"):
        FilePart(name=3)  # type: ignore[arg-type]
