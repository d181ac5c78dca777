"""Conversations in files: back as they were, or refused."""

import os
from pathlib import Path
from typing import Any

import pytest

from toolwire import ImagePart, Message, OpaquePart, ReasoningPart, TextPart, ToolCall, ToolResult
from toolwire.cli import transcript
from toolwire.cli.console import CliError
from toolwire.cli.transcript import AutosavedChat, load, newest, save

WHOLE = (
    Message("system", (TextPart("Be brief."),)),
    Message("user", (TextPart("How\nlong? \u202e \x1b[1m ü"), ImagePart("aGk=", "image/png"))),
    Message(
        "assistant",
        (
            ReasoningPart("hm", signature="sig", provider="anthropic_messages"),
            OpaquePart({"a": [1, None]}, "gemini"),
            ToolCall("f", {"deep": {"a": [1, 2.5, True, None, "x"]}}, "c1", repairs=("coerced",), raw="<f>"),
        ),
    ),
    Message(
        "tool", (ToolResult("c1", "f", {"x": [1]}), ToolResult("c2", "f", error="no", images=(ImagePart(url="u"),)))
    ),
    Message("assistant", (TextPart("Two."),)),
)


def test_a_conversation_comes_back_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "kept.json")
    save(path, WHOLE[:1], "m")
    save(path, WHOLE, "m")
    back = load(path)
    assert back == WHOLE
    assert back[2].parts[2].raw == "<f>"  # type: ignore[union-attr]
    assert [one.name for one in tmp_path.iterdir()] == ["kept.json"]
    assert (tmp_path / "kept.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("[]", "is not a conversation"),
        ('{"messages": []}', "is not a conversation"),
        ('{"toolwire_conversation": 2, "messages": []}', "another version"),
        ('{"toolwire_conversation": 1, "messages": [1]}', "cannot be read"),
        ('{"toolwire_conversation": 1, "messages": [{"role": "king", "parts": []}]}', "'king' is not"),
        ('{"toolwire_conversation": 1, "messages": [{"role": "user", "parts": [{"is": 1}]}]}', "cannot be read"),
        (
            '{"toolwire_conversation": 1, "messages": [{"role": "user", "parts": [{"is": "TextPart"}]}]}',
            "cannot be read",
        ),
    ],
)
def test_what_is_no_conversation_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(CliError, match=said):
        load(str(path))


def test_what_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="cannot be written"):
        save(str(tmp_path / "no" / "where.json"), WHOLE, "m")


def test_an_empty_conversation(tmp_path: Path) -> None:
    path = str(tmp_path / "kept.json")
    nothing: Any = ()
    save(path, nothing, "m")
    assert load(path) == ()


def test_copies_are_kept_of_the_last_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("TOOLWIRE_RECORD", raising=False)
    monkeypatch.setattr(transcript, "MAX_COPIES", 3)
    with pytest.raises(CliError, match=r"no conversation is saved in .*--resume FILE"):
        newest()
    made = [AutosavedChat(tmp_path / "state" / "conversations" / f"{at}.json") for at in range(5)]
    for at, copy in enumerate(made):
        copy.save(WHOLE[: at + 1], "m")
        os.utime(copy.path, ns=(at, at))
    made[2].save(WHOLE, "m")
    assert newest() == made[2]
    assert load(str(newest().path)) == WHOLE
    assert [copy.path.exists() for copy in made] == [False, False, True, True, True]
    assert {one.stat().st_mode & 0o777 for one in made[2].path.parent.iterdir()} == {0o600}
    assert newest().path.parent.stat().st_mode & 0o777 == 0o700
    made[2].forget()
    made[2].forget()
    assert newest() == made[4]
    monkeypatch.setattr(transcript, "MAX_COPY_BYTES", 100)
    with pytest.raises(CliError, match="/save FILE saves it"):
        made[4].save(WHOLE, "m")
    for switch in ("off", "figures"):
        monkeypatch.setenv("TOOLWIRE_RECORD", switch)
        assert AutosavedChat.standard() is None


def test_a_link_that_waits_beside_the_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o666)
    (tmp_path / ".chat.json.new").symlink_to(victim)
    (tmp_path / "chat.json").symlink_to(victim)
    save(str(tmp_path / "chat.json"), [], "m")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "chat.json").is_symlink()
    assert (tmp_path / "chat.json").stat().st_mode & 0o777 == 0o600
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".chat.json.new", "chat.json", "victim"]
