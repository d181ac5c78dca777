"""Conversations that are too long: what the model reads of them, and the events that say so."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolwire import Agent, FinishReason, ParsedResponse, ProviderError, ToolCall, Usage, tool
from toolwire.agent import AgentConfig, ContextReduced, ConversationStore, Hooks, RunEnded, Summarize, TurnInfo
from toolwire.agent.journal import MemoryJournal
from toolwire.errors import ConfigurationError
from toolwire.messages import Message, OpaquePart, TextPart, ToolResult
from toolwire.providers.request import SUMMARY
from toolwire.testing import ScriptedBackend


@tool
def read(page: int) -> str:
    """Return a page."""
    return f"page {page}: " + "x" * 2_000


def calling(page: int) -> ParsedResponse:
    call = ToolCall("read", {"page": page}, f"call_{page}")
    return ParsedResponse(tool_calls=(call,), finish_reason=FinishReason.TOOL_CALLS)


def prose(count: int) -> list[Message]:
    """A conversation without calls, of about 100 tokens a message."""
    return [Message(("user", "assistant")[at % 2], (TextPart(f"message {at} " + "y" * 400),)) for at in range(count)]  # type: ignore[arg-type]


def run(agent: Agent, **options: Any) -> tuple[list[ContextReduced], RunEnded]:
    events: list[Any] = list(agent.run_sync("Go on.", **options))
    return [event for event in events if isinstance(event, ContextReduced)], events[-1]


def whole(messages: Sequence[Message]) -> bool:
    """Return whether each call has its result, and each result its call."""
    calls = [part.id for message in messages for part in message.parts if isinstance(part, ToolCall)]
    results = [part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)]
    return calls == results


def test_trimming_is_reported() -> None:
    backend = ScriptedBackend(["Done."])
    (event,), ended = run(Agent(backend, config=AgentConfig(context=500)), history=prose(20))
    assert event.left_out > 10
    assert event.tokens > 500 >= event.reduced_tokens
    assert (event.summary, event.shortened) == ("", 0)
    assert len(ended.messages) == 22  # the conversation itself stays


def test_nothing_is_reported_without_need() -> None:
    events, _ = run(Agent(ScriptedBackend(["Done."]), config=AgentConfig(context=50_000)), history=prose(20))
    assert events == []


def test_old_results_are_shortened_before_anything_is_summarised() -> None:
    backend = ScriptedBackend([*(calling(page) for page in range(6)), "Done."])
    config = AgentConfig(context=2_500, compaction=Summarize(keep=2))
    events, ended = run(Agent(backend, [read], config), history=())
    assert events
    assert [(event.summary, event.problem, event.left_out) for event in events] == [("", "", 0)] * len(events)
    lengths = [len(part.text) for message in ended.messages for part in message.parts if isinstance(part, ToolResult)]
    assert lengths[0] < 500
    assert lengths[-1] > 2_000
    assert whole(ended.messages)
    assert ended.answer == "Done."


def test_older_part_is_summarised_by_the_model_of_choice() -> None:
    writer, backend = (
        ScriptedBackend([ParsedResponse("Much was said.", usage=Usage(100, 5))]),
        ScriptedBackend(["Done."]),
    )
    config = AgentConfig(context=1_000, compaction=Summarize(writer, keep=3))
    history = prose(20)
    (event,), ended = run(Agent(backend, config=config), history=history)
    assert event.summary == "Much was said."
    assert event.left_out == len(history) + 1 - 1 - 3  # with the task; without the first message and the newest steps
    assert event.reduced_tokens < 750 < event.tokens
    first, note, *_, task, answer = ended.messages
    assert first == history[0]
    assert note == Message("user", (TextPart(f"{SUMMARY}\nMuch was said."),))
    assert (task.parts, answer.parts) == ((TextPart("Go on."),), (TextPart("Done."),))
    assert backend.requests[0].messages == ended.messages[:-1]
    assert "message 5" in str(writer.requests[0].messages)
    assert ended.usage.input_tokens >= 100


def test_calls_are_not_parted_from_their_results() -> None:
    writer = ScriptedBackend(["S"] * 20)
    backend = ScriptedBackend([*(calling(page) for page in range(12)), "Done."])
    config = AgentConfig(context=1_200, compaction=Summarize(writer, keep=1))
    events, ended = run(Agent(backend, [read], config))
    assert any(event.summary for event in events)
    assert all(whole(request.messages) for request in backend.requests)
    assert whole(ended.messages)
    assert "Go on." in str(ended.messages[0])


def test_failed_summary_is_reported_and_the_conversation_trimmed() -> None:
    writer, backend = ScriptedBackend([ProviderError("down")]), ScriptedBackend(["Done."])
    config = AgentConfig(context=1_000, compaction=Summarize(writer))
    (failed, trimmed), ended = run(Agent(backend, config=config), history=prose(20))
    assert failed.problem == "down"
    assert trimmed.left_out > 0
    assert ended.answer == "Done."


def test_summary_is_not_asked_for_again_when_a_run_is_resumed() -> None:
    class Cut(MemoryJournal):
        async def write(self, name: str, text: str) -> None:
            if name == "answer.1":
                raise RuntimeError("the process ends here")
            await super().write(name, text)

    def agent(*summaries: str) -> Agent:
        config = AgentConfig(context=1_000, compaction=Summarize(ScriptedBackend(summaries), keep=3))
        return Agent(ScriptedBackend(["Done."]), config=config)

    journal = Cut()
    with pytest.raises(RuntimeError, match="ends here"):
        run(agent("Much was said."), history=prose(20), journal=journal, run_id="r")
    (event,), ended = run(agent(), history=prose(20), journal=MemoryJournal(journal.records), run_id="r")
    assert event.summary == "Much was said."
    assert "Much was said." in str(ended.messages[1])


def test_hook_changes_the_messages_of_a_prompt_alone() -> None:
    rounds: list[int] = []

    def without_secrets(messages: Sequence[Message], turn: TurnInfo) -> Sequence[Message]:
        rounds.append(turn.round)
        return [message for message in messages if "secret" not in str(message)]

    backend = ScriptedBackend(["Done."])
    history = [Message("user", (TextPart("a secret"),)), Message("assistant", (TextPart("Yes."),))]
    config = AgentConfig(system="S", hooks=Hooks(messages=(without_secrets,)))
    _, ended = run(Agent(backend, config=config), history=history)
    assert rounds == [1]
    assert "secret" not in str(backend.requests[0].messages)
    assert [message.role for message in backend.requests[0].messages] == ["system", "assistant", "user"]
    assert ended.messages[0] == history[0]


def test_compaction_needs_a_limit() -> None:
    with pytest.raises(ConfigurationError, match="needs context="):
        AgentConfig(compaction=Summarize())
    with pytest.raises(ValueError, match="at least 1"):
        Summarize(keep=0)


def test_stored_conversation_continues_from_the_summary(tmp_path: Path) -> None:
    path = str(tmp_path / "chats")
    ConversationStore(path).open("ada").save(prose(20))
    writer = ScriptedBackend(["Much was said."])
    config = AgentConfig(context=1_000, compaction=Summarize(writer, keep=3))
    _, ended = run(Agent(ScriptedBackend(["Done."]), config=config), conversation=ConversationStore(path).open("ada"))
    # A store of its own stands for a later process: what it loads is what the run ended with, and not the whole.
    later = ConversationStore(path).open("ada")
    assert later.messages == ended.messages
    assert len(later.messages) < 10
    backend = ScriptedBackend(["Again."])
    events, _ = run(Agent(backend, config=config), conversation=later)
    assert events == []
    assert backend.requests[0].messages[:-1] == ended.messages
    assert len(writer.requests) == 1
    assert f"{SUMMARY}\nMuch was said." in [part.text for message in later.messages for part in text_parts(message)]


def text_parts(message: Message) -> list[TextPart]:
    return [part for part in message.parts if isinstance(part, TextPart)]


def test_trimmed_conversation_is_stored_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "chats")
    ConversationStore(path).open("ada").save(prose(20))
    agent = Agent(ScriptedBackend(["Done."]), config=AgentConfig(context=500))
    events, _ = run(agent, conversation=ConversationStore(path).open("ada"))
    assert events
    assert ConversationStore(path).open("ada").messages[:20] == tuple(prose(20))


def test_summary_of_the_server_stays_in_a_stored_conversation(tmp_path: Path) -> None:
    path = str(tmp_path / "chats")
    summary = OpaquePart({"type": "compaction", "content": "Tea."}, "anthropic_messages")
    response = ParsedResponse("Done.", parts=(summary, TextPart("Done.")))
    run(Agent(ScriptedBackend([response])), conversation=ConversationStore(path).open("ada"))
    backend = ScriptedBackend(["Again."])
    run(Agent(backend), conversation=ConversationStore(path).open("ada"))
    assert summary in [part for message in backend.requests[0].messages for part in message.parts]
