"""`toolwire chat`, in a real pseudo-terminal and through a pipe, with a model on loopback."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.models import Scripted, calling, scripted

import toolwire
from toolwire import Message, ParsedResponse, ToolCall
from toolwire.agent import ConversationStore
from toolwire.cli import run
from toolwire.telemetry import Archive

COMMAND = [sys.executable, "-m", "toolwire", "chat"]
READ = ToolCall("read_file", {"path": "a.txt"}, "c1")
WRITE = ToolCall("write_file", {"path": "b.txt", "content": "new\n"}, "c1")


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TOOLWIRE_STATE": str(folder / "state"), "TERM": "xterm-256color", "COLUMNS": "80"}


def piped(folder: Path, model: Scripted, lines: list[str], *options: str, status: int = 0) -> tuple[list[str], str]:
    """What comes out of a conversation through a pipe: answers, and everything else."""
    done = subprocess.run(
        [*COMMAND, "--root", str(folder), *(model.options if model.url else ()), *options],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        env=environment(folder),
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    return tmp_path


def test_lines_in_answers_out(folder: Path) -> None:
    kept = folder / "kept.json"
    with scripted(
        ParsedResponse("Hello."), calling(READ), ParsedResponse("Two lines."), ParsedResponse("Again two.")
    ) as model:
        out, notes = piped(
            folder,
            model,
            [
                "Hi",
                "How long is a.txt?",
                f"/save {kept}",
                "/retry",
                "/undo",
                "/bogus",
                "/tools",
                "/tier run",
                "/quit",
                "no",
            ],
        )
    assert out == ["Hello.", "Two lines.", "Again two."]
    assert len(model.asked) == 4, "nothing was asked after /quit"
    for part in (
        'call    read_file {"path": "a.txt"}',
        "result  one",
        "unknown command /bogus",
        "execute_command  run, asks",
    ):
        assert part in notes
    assert "removed: How long is a.txt?" in notes
    assert [message["role"] for message in model.asked[3]["messages"]] == ["system", "user", "assistant", "user"]
    assert oct(kept.stat().st_mode & 0o777) == "0o600"

    with scripted(ParsedResponse("As I said, two.")) as model:
        out, notes = piped(folder, model, ["Are you sure?", "/clear", "Who?"], "--resume", str(kept))
    assert out == ["As I said, two."] * 2
    assert "you  How long is a.txt?" in notes
    roles = [message["role"] for message in model.asked[0]["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert model.asked[0]["messages"][4]["tool_calls"][0]["function"]["arguments"] == '{"path": "a.txt"}'
    assert len(model.asked[1]["messages"]) == 2


def test_the_last_conversation_can_be_taken_up(folder: Path) -> None:
    copies = folder / "state" / "conversations"
    with scripted(
        ParsedResponse("Hello."), ParsedResponse("Who?"), ParsedResponse("Still here."), ParsedResponse("Yes.")
    ) as model:
        piped(folder, model, ["Hi", "Again", "/undo"])
        out, notes = piped(folder, model, ["Are you there?"], "--resume", "last")
        piped(folder, model, ["Really?"], "--resume", "last")
    assert out == ["Still here."]
    assert "you  Hi" in notes
    assert "1 question so far" in notes
    asked = [message["content"] for message in model.asked[3]["messages"] if message["role"] == "user"]
    assert asked == ["Hi", "Are you there?", "Really?"], "what was taken up is kept on"
    assert [oct(one.stat().st_mode & 0o777) for one in copies.iterdir()] == ["0o600"] * 3
    with scripted(ParsedResponse("Hello.")) as model:
        piped(folder, model, ["Hi", "/undo"])
        assert len(list(copies.iterdir())) == 3, "what is forgotten is not kept"
        done = subprocess.run(
            [*COMMAND, "--root", str(folder), *model.options, "--resume", "last"],
            input="",
            capture_output=True,
            text=True,
            env=environment(folder / "elsewhere"),
            timeout=120,
            check=False,
        )
    assert done.returncode != 0
    assert "no conversation is saved" in done.stderr


def test_formats_can_be_changed_and_the_last_answer_looked_at(folder: Path) -> None:
    written = toolwire.render_calls([READ], format="hermes")
    with scripted(ParsedResponse("a"), ParsedResponse(written), ParsedResponse("b")) as model:
        out, notes = piped(
            folder, model, ["Hi", "/format hermes", "Read it", "/trace", "/format nothing", "/format default"]
        )
    assert out == ["a", "b"], "each answer once, whatever /trace shows"
    assert "tools" in model.asked[0]
    assert "tools" not in model.asked[1]
    assert "raw     <tool_call>" in notes
    assert "unknown wire format 'nothing'" in notes
    assert notes.rstrip().endswith("calls are fields of openai_chat")


def test_the_coach_of_a_conversation_chooses_turn_by_turn(folder: Path) -> None:
    with scripted(ParsedResponse("Hello.")) as model:
        out, notes = piped(folder, model, ["/format coach", "Hi"])
    assert out == ["Hello."]
    assert "the coach chooses; at present hermes" in notes
    (turn,) = Archive(folder / "state" / "turns.db").run().turns
    assert turn["choice"]


def test_a_format_keeps_the_fallback_of_a_file(folder: Path) -> None:
    with scripted(ParsedResponse("Hello."), ParsedResponse("Again.")) as model:
        (folder / "t.toml").write_text(
            '[profiles.p]\nmodel = "m"\nurl = "http://127.0.0.1:9"\nfallback = ["q"]\nretry = { attempts = 1 }\n\n'
            f'[profiles.q]\nmodel = "n"\nurl = "{model.url}"\n\n[agents.a]\nprofile = "p"\nformat = "pythonic"\n'
        )
        lines = ["/format hermes", "Hi", "/format default", "Again"]
        out, notes = piped(folder, Scripted(), lines, "--config", str(folder / "t.toml"))
    assert out == ["Hello.", "Again."], "the second model answers in any format"
    assert "calls are written as hermes" in notes
    assert "calls are written as pythonic" in notes, "the default is that of the agent"


def test_a_session_by_name_is_continued_and_left_alone(folder: Path) -> None:
    with scripted(ParsedResponse("Hello Ada."), ParsedResponse("Ada."), ParsedResponse("Who?")) as model:
        piped(folder, model, ["I am Ada."], "--session", "ada")
        out, notes = piped(folder, model, ["Who am I?", "/clear", "And now?"], "--session", "ada")
        assert out == ["Ada.", "Who?"]
        assert "it   Hello Ada." in notes
        assert "the session ada stays as it was" in notes
        assert "I am Ada." in model.said(1)
        assert "I am Ada." not in model.said(2)
        piped(folder, model, ["/undo", "x", "/undo"], "--session", "ada")
        piped(folder, model, ["Well?"], "--session", "ada")
    assert model.said(4)[-5:] == ["I am Ada.", "Hello Ada.", "Who am I?", "Ada.", "Well?"]
    assert sorted(path.name for path in (folder / "state" / "conversations").iterdir()), "the second one has a copy"


def test_a_required_call_is_missing(folder: Path) -> None:
    with scripted(calling(READ), ParsedResponse("Two."), ParsedResponse("I guess.")) as model:
        out, notes = piped(folder, model, ["How long?", "And now?"], "--require-tool-call", status=1)
    assert out == ["Two.", "I guess."]
    assert notes.count("no tool was run, and --require-tool-call asks for one") == 1


def test_a_session_that_another_chat_continued_goes_on_as_a_branch(folder: Path) -> None:
    store = ConversationStore(str(folder / "state" / "conversations.sqlite3"))

    def interfere(request: dict[str, Any]) -> ParsedResponse:
        if len(store.all()) == 0:
            store.open("ada").save([Message("user", "mine")])
        return ParsedResponse("Hello.")

    with scripted(interfere) as model:
        _, notes = piped(folder, model, ["Hi", "Again"], "--session", "ada")
    assert "this chat continues there" in notes.replace("\n", " ")
    assert {info.name: info.length for info in store.all()} == {"ada": 1, "ada (2)": 4}


def test_files_are_attached_to_the_next_message_alone(folder: Path) -> None:
    (folder / "a.pdf").write_bytes(b"%PDF-1.4")
    lines = ["/attach gone.pdf", f"/attach {folder}/a.pdf", "/attach https://x.test/b.png", "Look.", "Thanks."]
    with scripted(ParsedResponse("Nice.")) as model:
        out, notes = piped(folder, model, lines, "--attach", str(folder / "a.pdf"))
    assert out == ["Nice."] * 2
    assert "cannot attach gone.pdf: No such file" in notes
    assert "attached to the next message: a.pdf, a.pdf, https://x.test/b.png" in notes.replace("\n", " ")
    sent = [message["content"] for message in model.asked[1]["messages"] if message["role"] == "user"]
    assert [part["type"] for part in sent[0]] == ["text", "file", "file", "image_url"]
    assert sent[1] == "Thanks."


def test_two_names_of_a_conversation_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--base-url", "http://127.0.0.1:9", "--model", "m"]
    assert run(["chat", "--session", "a", "--resume", "last", *options]) == 2
    assert "each name a conversation" in capsys.readouterr().err


def test_what_goes_wrong_does_not_end_it(folder: Path) -> None:
    (folder / "bad.json").write_text('{"toolwire_conversation": 1, "messages": [{"role": "user", "parts": 3}]}')
    nobody = Scripted("http://127.0.0.1:9")
    typed = ["Hi", "/load gone.json", f"/load {folder}/bad.json", "/save /no/where", "/load", "/undo"]
    out, notes = piped(folder, nobody, typed, status=1)
    assert out == []
    for part in (
        "cannot be reached",
        "cannot read gone.json",
        "bad.json: the conversation cannot be read",
        "/no/where cannot be written",
    ):
        assert part in notes


# -- a terminal ------------------------------------------------------------------------------------------------------


class Terminal:
    """A program in a pseudo-terminal: what it shows, and somebody who types."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.process_id, self._file = pty.fork()
        if self.process_id == 0:
            os.execvpe(command[0], command, env)
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self._text = ""
        self._seen = 0
        self._news = threading.Condition()
        self.ended = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                piece = os.read(self._file, 65_536)
            except OSError:
                piece = b""
            with self._news:
                self._text += piece.decode("utf-8", "replace")
                self.ended = not piece
                self._news.notify_all()
            if b"\x1b[6n" in piece:
                os.write(self._file, b"\x1b[1;1R")  # prompt_toolkit asks where the cursor is
            if not piece:
                return

    @property
    def shown(self) -> str:
        """All of it, without what moves the cursor and colours."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r", "", self._text)

    def wait(self, text: str) -> str:
        """Until this is shown, behind what was waited for before."""
        with self._news:
            found = self._news.wait_for(lambda: text in self.shown[self._seen :] or self.ended, timeout=60)
            assert found and text in self.shown[self._seen :], f"no {text!r} in {self.shown[self._seen :]!r}"
            self._seen = self.shown.index(text, self._seen) + len(text)
            return self.shown

    def type(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    def leave(self) -> int:
        """Its exit status, once it has ended."""
        _, status = os.waitpid(self.process_id, 0)
        os.close(self._file)
        return os.waitstatus_to_exitcode(status)


@contextmanager
def terminal(folder: Path, model: Scripted, *options: str) -> Iterator[Terminal]:
    made = Terminal([*COMMAND, "--root", str(folder), *model.options, *options], environment(folder))
    try:
        made.wait("Ctrl-D leaves.")
        made.wait(READY)
        yield made
    finally:
        try:
            os.kill(made.process_id, signal.SIGKILL)
            os.waitpid(made.process_id, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


ENTER = "\r"
READY = "m, fields of openai_chat, "
"""Stands below the line that is typed, before the tools that are offered."""
CTRL_C, CTRL_D = "\x03", "\x04"

needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")


@needs_terminal
def test_a_conversation_in_a_terminal(folder: Path) -> None:
    with (
        scripted(calling(READ, content="I look."), ParsedResponse("It has two lines.")) as model,
        terminal(folder, model) as screen,
    ):
        screen.type("How long is a.txt?" + ENTER)
        screen.wait("I look.")
        screen.wait('read_file {"path": "a.txt"}')
        screen.wait("result  one")
        screen.wait("It has two lines.")
        screen.wait(READY)
        screen.type("\x1b[200~pasted\nlines\x1b[201~")
        screen.wait("lines")
        screen.type(ENTER)
        screen.wait("It has two lines.")
        screen.wait(READY)
        screen.type("\x1b[A")  # up: what was said before
        screen.wait("lines")
        screen.type(CTRL_C)
        screen.type(CTRL_D)
        assert screen.leave() == 0
    assert model.asked[2]["messages"][-1]["content"] == "pasted\nlines"
    assert screen.shown.count("It has two lines.") == 2, "nothing is written twice"
    assert oct((folder / "state" / "chat_history").stat().st_mode & 0o777) == "0o600"


@needs_terminal
def test_approvals_are_asked_for_and_nothing_typed_before_answers_them(folder: Path) -> None:
    go = threading.Event()

    def slow(body: dict[str, Any]) -> ParsedResponse:
        go.wait(60)
        return calling(ToolCall("write_file", {"path": "b.txt", "content": "other\n"}, "c2"))

    with (
        scripted(calling(WRITE), ParsedResponse("Written."), slow, ParsedResponse("Not written.")) as model,
        terminal(folder, model, "--tier", "run") as screen,
    ):
        screen.type("Write b.txt" + ENTER)
        screen.wait("what it would do")
        screen.wait("Run it?")
        screen.type("y" + ENTER)
        screen.wait("Written.")
        assert (folder / "b.txt").read_text() == "new\n"
        screen.wait(READY)
        screen.type("Write it again" + ENTER)
        screen.wait("the model reads")
        screen.type("y" + ENTER)
        go.set()
        screen.wait("Run it?")
        screen.type("n" + ENTER)
        screen.wait("refused")
        screen.wait("Not written.")
        assert (folder / "b.txt").read_text() == "new\n"
        screen.wait(READY)
        screen.type("/quit" + ENTER)
        assert screen.leave() == 0


@needs_terminal
def test_ctrl_c_stops_the_answer_and_a_second_one_leaves(folder: Path) -> None:
    hang = threading.Event()

    def slow(body: dict[str, Any]) -> ParsedResponse:
        hang.wait(60)
        return ParsedResponse("too late")

    with scripted(calling(READ), slow, ParsedResponse("And now?")) as model:
        try:
            with terminal(folder, model) as screen:
                screen.type("How long is a.txt?" + ENTER)
                screen.wait("result  one")
                screen.wait("the model reads")
                screen.type(CTRL_C)
                screen.wait("stopped")
                screen.wait(READY)
                screen.type("Go on" + ENTER)
                screen.wait("And now?")
                screen.wait(READY)
                screen.type(CTRL_C)
                screen.wait("Ctrl-C again leaves.")
                screen.type(CTRL_C)
                assert screen.leave() == 0
        finally:
            hang.set()
    roles = [message["role"] for message in model.asked[2]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user"], "what was done before it was stopped is known"


@needs_terminal
def test_ctrl_c_at_once_after_a_stop_leaves(folder: Path) -> None:
    hang = threading.Event()

    def slow(body: dict[str, Any]) -> ParsedResponse:
        hang.wait(60)
        return ParsedResponse("too late")

    with scripted(slow) as model:
        try:
            with terminal(folder, model) as screen:
                screen.type("Hi" + ENTER)
                screen.wait("the model reads")
                screen.type(CTRL_C)
                screen.wait("the question was removed")
                screen.wait(READY)
                screen.type(CTRL_C)
                assert screen.leave() == 0
        finally:
            hang.set()
