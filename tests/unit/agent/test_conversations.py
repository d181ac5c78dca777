"""Conversations and sessions as text, and conversations that are stored by name."""

import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import toolwire
from toolwire import (
    Agent,
    CitationPart,
    CitedSource,
    ConfigurationError,
    ConversationError,
    FilePart,
    ImagePart,
    JournalError,
    Message,
    OpaquePart,
    ParsedResponse,
    Part,
    ProviderError,
    ReasoningPart,
    Session,
    TextPart,
    Tier,
    ToolCall,
    ToolResult,
    dump_messages,
    dump_session,
    load_messages,
    load_session,
)
from toolwire.agent import Conversation, ConversationStore, RunEnded
from toolwire.testing import ScriptedBackend

OPAQUE = OpaquePart({"cache_control": {"type": "ephemeral"}, "n": [1, None, 2.5]}, "anthropic_messages")
IMAGE = ImagePart("aGk=", "image/png", extra=OPAQUE)
PARTS: dict[type, Any] = {
    TextPart: TextPart("How\nlong? \u202e \x1b[1m \ud800 ü", OPAQUE),
    ReasoningPart: ReasoningPart("hm", "sig", "openai_responses", {"id": "r1"}),
    ImagePart: IMAGE,
    FilePart: FilePart("aGk=", "application/pdf", name="bill.pdf", extra=OPAQUE),
    ToolCall: ToolCall(
        "f", {"deep": {"a": [1, 2.5, True, None, "x"]}}, "c1", "s", "<f>", "hermes", ("coerced",), 0.5, True, OPAQUE
    ),
    ToolResult: ToolResult("c1", "f", {"x": [1]}, "no", images=(IMAGE,), extra=OPAQUE),
    CitationPart: CitationPart((CitedSource(url="https://example.com", title="A", quote="said"),), 0, 4, OPAQUE),
    OpaquePart: OPAQUE,
}


def one_message(text: str) -> str:
    return json.dumps({"toolwire_conversation": 1, "messages": [{"role": "user", "parts": [json.loads(text)]}]})


# -- as text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", get_args(Part))
def test_every_part_comes_back_whole(kind: type) -> None:
    messages = (Message("user", (PARTS[kind], PARTS[kind])), Message("assistant", ()))
    text = dump_messages(messages)
    assert text.isascii()
    back = load_messages(text)
    assert back == messages
    for name in type(PARTS[kind]).__slots__:  # some fields are not compared
        assert getattr(back[0].parts[1], name) == getattr(PARTS[kind], name)


def test_part_of_a_newer_version_is_kept_and_written_again() -> None:
    part = {"is": "HologramPart", "cells": [1, 2], "extra": {"a": "b"}}
    messages = load_messages(one_message(json.dumps(part)))
    assert messages[0].parts == (OpaquePart(part, "toolwire"),)
    assert json.loads(dump_messages(messages))["messages"][0]["parts"] == [part]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "not a conversation"),
        ('{"messages": []}', "not a conversation"),
        ('{"toolwire_conversation": 1}', "no list of messages"),
        ('{"toolwire_conversation": 2, "messages": []}', "of another version, 2; only 1 can be read"),
        (
            '{"toolwire_conversation": 1, "messages": [{"role": "king", "parts": []}]}',
            "'king' is not 'system'",
        ),
        ('{"toolwire_conversation": 1, "messages": [{"role": "user", "parts": {}}]}', "is not a list"),
        (one_message('{"is": "TextPart", "text": 1}'), "1 is not .*str"),
        (one_message('{"is": "TextPart", "text": "a", "colour": "red"}'), "a TextPart has no 'colour'"),
        (one_message('{"is": "ToolCall", "name": "f", "repairs": "ab"}'), "is not a list"),
        (one_message('{"is": "ToolCall", "name": "f", "arguments": []}'), "is not .*dict"),
    ],
)
def test_other_text_is_not_a_conversation(text: str, message: str) -> None:
    with pytest.raises(ConversationError, match=message):
        load_messages(text)


def test_value_without_json_form_is_refused() -> None:
    with pytest.raises(ConversationError, match="recorded as JSON"):
        dump_messages([Message("tool", (ToolResult("c", "f", float("nan")),))])
    with pytest.raises(TypeError, match="messages"):
        dump_messages("hello")  # type: ignore[arg-type]


def test_session_comes_back_with_all_that_decisions_depend_on() -> None:
    session = Session(tier=Tier.WALK, untrusted=True)
    session.record_question("Delete the report.")
    session.record_plan("planned")
    session.record_use("used")
    session.record_call("delete", 100.0)
    session.record_refusal("declined")
    session.record_decision("yes", approved=True)
    session.record_decision("no", approved=False)
    # The clock of the other process began elsewhere, so times are compared by their age.
    back = load_session(dump_session(session, clock=lambda: 160.0), clock=lambda: 1_060.0)
    (at,) = back._call_times.pop("delete")
    assert pytest.approx(at, abs=1.0) == 1_000.0
    session._call_times.clear()
    assert back == session


def test_other_text_is_not_a_session() -> None:
    with pytest.raises(ConversationError, match="not a session"):
        load_session("{}")
    with pytest.raises(ConversationError, match="another version, 9"):
        load_session('{"toolwire_session": 9}')
    with pytest.raises(ConversationError, match="cannot be read"):
        load_session('{"toolwire_session": 1, "colour": "red"}')


# -- stored ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> ConversationStore:
    return ConversationStore(f"sqlite:///{tmp_path}/chats.sqlite3")


@toolwire.tool(destructive=True)
def delete(name: str) -> str:
    """Delete a file."""
    return f"{name} is gone"


def agent(*answers: ParsedResponse | str, **options: Any) -> Agent:
    return Agent(ScriptedBackend(answers), [delete], telemetry=False, **options)


def texts(conversation: Conversation) -> list[str]:
    return [part.text for message in conversation.messages for part in message.parts if isinstance(part, TextPart)]


def test_runs_continue_a_conversation(store: ConversationStore, tmp_path: Path) -> None:
    assert agent("Hello Ada.").ask_sync("I am Ada.", conversation=store.open("ada")) == "Hello Ada."
    second = agent("Ada.")
    conversation = ConversationStore(str(tmp_path / "chats.sqlite3")).open("ada")
    assert second.ask_sync("Who am I?", conversation=conversation) == "Ada."
    assert texts(store.open("ada")) == ["I am Ada.", "Hello Ada.", "Who am I?", "Ada."]
    assert len(second.backend.requests[0].messages) == 3  # type: ignore[attr-defined]
    assert (conversation.version, store.open("ada").version, len(conversation.messages)) == (2, 2, 4)
    assert (tmp_path / "chats.sqlite3").stat().st_mode & 0o777 == 0o600


def test_session_is_stored_too(store: ConversationStore) -> None:
    first = store.open("ada")
    first.session.untrusted = True
    agent("Hello.").ask_sync("Hi!", conversation=first)
    assert store.open("ada").session.untrusted


def test_conversation_that_changed_since_it_was_opened_stops_the_run_at_its_start(store: ConversationStore) -> None:
    stale = store.open("ada")
    agent("Hello.").ask_sync("Hi!", conversation=store.open("ada"))
    late = agent("Hello too.")
    with pytest.raises(ConversationError, match="'ada' was changed since it was opened: open it again"):
        late.ask_sync("Hi!", conversation=stale)
    assert late.backend.requests == []  # type: ignore[attr-defined]


def test_message_of_the_slower_run_is_stored_as_a_branch(store: ConversationStore) -> None:
    async def both() -> tuple[list[Any], ConversationError]:
        events = agent("Slow answer.").run("Slow?", conversation=store.open("ada"))
        seen = [await anext(events)]
        await agent("Fast answer.").ask("Fast?", conversation=store.open("ada"))
        with pytest.raises(ConversationError) as conflict:
            while True:
                seen.append(await anext(events))
        return seen, conflict.value

    seen, conflict = asyncio.run(both())
    assert isinstance(seen[-1], RunEnded)
    assert conflict.branch == "ada (2)"
    assert texts(store.open("ada")) == ["Fast?", "Fast answer."]
    assert texts(store.open("ada (2)")) == ["Slow?", "Slow answer."]


def test_later_change_of_an_older_version_is_stored_as_a_branch(store: ConversationStore) -> None:
    store.open("ada").save([Message("user", "1")])
    first, second = store.open("ada"), store.open("ada")
    first.save([*first.messages, Message("user", "2")])
    for number in (2, 3):
        with pytest.raises(ConversationError, match="was changed since it was opened") as conflict:
            second.save([*second.messages, Message("user", "other")])
        assert conflict.value.branch == f"ada ({number})"
        assert texts(store.open(f"ada ({number})")) == ["1", "other"]
    assert texts(store.open("ada")) == ["1", "2"]


def test_runs_that_share_an_object_lose_no_message(store: ConversationStore) -> None:
    conversation = store.open("ada")

    async def both() -> None:
        first = agent("One.").run("First?", conversation=conversation)
        second = agent("Two.").run("Second?", conversation=conversation)
        assert [event async for event in first]
        with pytest.raises(ConversationError, match="was changed since it was opened"):
            await anext(second)  # its history is older than what the first has saved

        first, second = (agent(text).run(text, conversation=conversation) for text in ("Three.", "Four."))
        await anext(first)
        await anext(second)
        assert [event async for event in first]
        with pytest.raises(ConversationError) as conflict:
            assert [event async for event in second]
        assert conflict.value.branch == "ada (2)"

    asyncio.run(both())
    assert texts(store.open("ada")) == ["First?", "One.", "Three.", "Three."]
    assert texts(store.open("ada (2)")) == ["First?", "One.", "Four.", "Four."]
    # The object has what was stored under its name, so the next run continues that.
    assert (conversation.version, texts(conversation)) == (2, ["First?", "One.", "Three.", "Three."])


def test_task_without_any_answer_is_not_stored(store: ConversationStore) -> None:
    call = ParsedResponse("", tool_calls=(ToolCall("look", {}, "c1"),))
    unreachable = ProviderError("it cannot be reached")

    @toolwire.tool
    def look() -> str:
        """Look."""
        return "seen"

    def ask(*script: Any) -> list[str]:
        model = Agent(ScriptedBackend(script), [look], telemetry=False)
        assert model.run_to_end_sync("Hi!", conversation=store.open("ada")).reason == "error"
        return [message.role for message in store.open("ada").messages]

    assert ask(unreachable) == []
    assert ask(call, unreachable) == ["user", "assistant", "tool"]  # what was done is not forgotten
    assert ask(unreachable) == ["user", "assistant", "tool"]


def test_branch_of_a_long_name_can_be_opened(store: ConversationStore) -> None:
    name = "x" * 200
    for _ in range(2):
        stale = Conversation(store, name)
        with contextlib.suppress(ConversationError):
            store.open(name).save([Message("user", "Hi!")])
        with pytest.raises(ConversationError) as conflict:
            stale.save([Message("user", "Hello!")])
        assert texts(store.open(conflict.value.branch)) == ["Hello!"]


PROGRAM = """
import sys
from toolwire import ConversationError, Message
from toolwire.agent import ConversationStore
store = ConversationStore(sys.argv[1])
for number in range(15):
    conversation = store.open("all")
    try:
        conversation.save([*conversation.messages, Message("user", f"{sys.argv[2]}{number}")])
    except ConversationError as error:
        assert error.branch, error
"""


def test_processes_that_write_at_once_lose_no_message(store: ConversationStore, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "chats.sqlite3")]
    processes = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "ab"]
    assert [process.communicate(timeout=60)[1] for process in processes] == [b"", b""]
    said = {text for info in store.all() for text in texts(store.open(info.name))}
    assert said == {f"{name}{number}" for name in "ab" for number in range(15)}


def test_conversations_are_listed_and_deleted(store: ConversationStore) -> None:
    for name in ("ada", "bob"):
        store.open(name).save([Message("user", "Hi!")])
    assert [(info.name, info.length, info.version, info.pending) for info in store.all()] == [
        ("bob", 1, 1, False),
        ("ada", 1, 1, False),
    ]
    store.delete("bob")
    with pytest.raises(ConversationError, match=r"there is no conversation 'Ada'; did you mean ada\?"):
        store.delete("Ada")
    assert [info.name for info in store.all()] == ["ada"]
    assert store.open("bob").version == 0


def test_branch_copies_a_conversation_up_to_a_message(store: ConversationStore) -> None:
    call = ToolCall("delete", {"name": "a"}, "c1")
    messages = [
        Message("user", "Hi!"),
        Message("assistant", "Hello."),
        Message("user", "Delete a."),
        Message("assistant", (call,)),
        Message("tool", (ToolResult("c1", "delete", "gone"),)),
    ]
    original = store.open("ada")
    original.session.untrusted = True
    original.save(messages)
    branch = store.branch("ada", "ada, polite", at=2)
    assert branch.messages == store.open("ada, polite").messages == tuple(messages[:2])
    assert store.open("ada, polite").session.untrusted
    branch.save([*branch.messages, Message("user", "Thanks!")])
    assert store.open("ada").messages == tuple(messages)
    assert len(store.branch("ada", "copy").messages) == 5
    for name, new, at, message in (
        ("ada", "copy", 1, "there is a conversation 'copy' already"),
        ("ada", "x", 4, "message 4 calls tools"),
        ("ada", "x", 9, "has 5 messages, so it has no branch at 9"),
        ("eve", "x", None, "there is no conversation 'eve'"),
    ):
        with pytest.raises(ConversationError, match=message):
            store.branch(name, new, at)


def waiting(store: ConversationStore, name: str) -> Conversation:
    asked = ParsedResponse("", tool_calls=(ToolCall("delete", {"name": "a"}, "c1"),))
    end: Any = [*agent(asked, confirm="defer").run_sync("Delete a.", conversation=store.open(name))][-1]
    assert end.reason == "pending"
    return store.open(name)


def test_pending_approvals_are_resumed_once_among_all_processes(store: ConversationStore) -> None:
    conversation, other = waiting(store, "ada"), store.open("ada")
    assert [info.pending for info in store.all()] == [True]
    assert conversation.pending is not None and other.pending is not None
    resumed = agent("Done.", confirm="defer")
    assert resumed.ask_resumed_sync(conversation.pending, {"c1": True}, conversation=conversation) == "Done."
    with pytest.raises(ConversationError, match="was changed since it was opened"):
        agent("Done.", confirm="defer").ask_resumed_sync(other.pending, {"c1": True}, conversation=other)
    after = store.open("ada")
    assert after.pending is None
    assert texts(after) == ["Delete a.", "Done."]
    results = [part.text for message in after.messages for part in message.parts if isinstance(part, ToolResult)]
    assert results == ["a is gone"]


def test_pending_approvals_are_claimed_before_anything_runs(store: ConversationStore) -> None:
    conversation, other = waiting(store, "ada"), store.open("ada")
    assert conversation.pending is not None and other.pending is not None

    async def both() -> None:
        events = agent("Done.", confirm="defer").resume(conversation.pending, {"c1": True}, conversation=conversation)
        await anext(events)  # the run has begun, and nothing has been saved yet
        late = agent("Done.", confirm="defer").resume(other.pending, {"c1": True}, conversation=other)
        with pytest.raises(ConversationError, match="was changed since it was opened"):
            await anext(late)
        assert store.open("ada").pending is None
        assert [event async for event in events]

    asyncio.run(both())


def test_pending_approvals_of_another_conversation_are_refused(store: ConversationStore) -> None:
    first, second = waiting(store, "ada"), waiting(store, "bob")
    assert first.pending is not None
    with pytest.raises(JournalError, match="'bob' does not wait for these approvals"):
        agent(confirm="defer").resume(first.pending, {"c1": True}, conversation=second)
    branch = store.branch("ada", "copy")
    assert branch.pending is None


def test_new_task_gives_up_what_was_pending(store: ConversationStore) -> None:
    conversation = waiting(store, "ada")
    model = agent("Then not.", confirm="defer")
    assert model.ask_sync("Never mind.", conversation=conversation) == "Then not."
    assert store.open("ada").pending is None
    # The model reads that the call did not run.
    results = [part for message in model.backend.requests[0].messages for part in message.parts]  # type: ignore[attr-defined]
    assert ["did not run" in part.text for part in results if isinstance(part, ToolResult)] == [True]


def test_conversation_has_its_own_history(store: ConversationStore) -> None:
    with pytest.raises(ConfigurationError, match="has its own history and session"):
        agent().run("Hi!", conversation=store.open("ada"), session=Session())
    with pytest.raises(TypeError, match="conversation"):
        agent().run("Hi!", conversation="ada")  # type: ignore[typeddict-item]


@pytest.mark.parametrize("url", ["mysql://server/db", "sqlite://server/file", "sqlite:///"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(ConversationError, match="stored in sqlite:///path or postgresql://"):
        ConversationStore(url)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201])
def test_unusable_names_are_refused(name: str, store: ConversationStore) -> None:
    with pytest.raises(ConversationError, match="cannot be called"):
        store.open(name)


def test_file_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "chats").write_text("not a database, and long enough to be read as one " * 40)
    with pytest.raises(ConversationError, match="chats cannot be used"):
        ConversationStore(str(tmp_path / "chats")).open("ada")


def test_users_own_file_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path))
    ConversationStore().open("ada").save([Message("user", "Hi!")])
    assert (tmp_path / "conversations.sqlite3").exists()
