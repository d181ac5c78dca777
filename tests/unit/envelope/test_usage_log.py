"""Telemetry: what is recorded, what is not, and that it never gets in the way."""

from __future__ import annotations

import json
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from toolwire.envelope.envelope import Envelope
from toolwire.envelope.settings import Settings
from toolwire.envelope.store import HandleStore
from toolwire.envelope.usage_log import (
    GONE,
    MAX_INPUT,
    MAX_OUTPUT_TEXT,
    MAX_ROWS,
    UsageLog,
    UsageRecord,
    redacted,
    redacted_arguments,
    redacted_command,
)
from toolwire.errors import ToolError
from toolwire.messages import ToolCall, ToolResult


@pytest.mark.mission("G20")
def test_calls_are_recorded_and_summed(tmp_path: Path) -> None:
    telemetry = UsageLog(tmp_path / "telemetry.db")
    for number in range(20):
        telemetry.record(UsageRecord("grep", "envelope", output=10, latency_ms=number, truncated=number < 5))
    telemetry.record(
        UsageRecord("cat", "envelope", output=3, error="not_readable", agent="me", session="s", handle="res_0")
    )
    grep, cat = telemetry.stats()
    assert (grep.cmd, grep.calls, grep.truncated, grep.errors, grep.output) == ("grep", 20, 5, 0, 200)
    assert (grep.median_ms, grep.p95_ms) == (10, 19)
    assert (cat.calls, cat.errors) == (1, 1)
    last, before, *_ = telemetry.records()
    assert (last.cmd, last.agent, last.session, last.handle, last.error) == ("cat", "me", "s", "res_0", "not_readable")
    assert last.timestamp > 0
    assert before.truncated is False
    assert stat.S_IMODE((tmp_path / "telemetry.db").stat().st_mode) == 0o600
    telemetry.close()


@pytest.mark.mission("G20")
def test_the_output_is_recorded_only_if_enabled(tmp_path: Path) -> None:
    record = UsageRecord("cat", "envelope", output_text="api_key=abcdefgh\n" + "x" * 20_000)
    for wanted in (False, True):
        telemetry = UsageLog(tmp_path / f"{wanted}.db", output_text=wanted)
        telemetry.record(record)
        (found,) = telemetry.records()
        assert len(found.output_text) == MAX_OUTPUT_TEXT * wanted
        assert "abcdefgh" not in found.output_text
        telemetry.close()


def test_one_switch_turns_it_off(tmp_path: Path) -> None:
    telemetry = UsageLog.of(Settings(state=str(tmp_path), telemetry=False))
    telemetry.record(UsageRecord("grep", "envelope"))
    assert list(tmp_path.iterdir()) == []


def test_an_unusable_file_is_ignored(tmp_path: Path) -> None:
    locked = tmp_path / "locked.db"
    telemetry = UsageLog(locked)
    telemetry.record(UsageRecord("grep", "envelope"))
    other = sqlite3.connect(locked, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    telemetry.record(UsageRecord("grep", "envelope"))
    other.close()
    assert len(telemetry.records()) == 1
    telemetry.close()

    (tmp_path / "folder.db").mkdir()
    (tmp_path / "file").touch()
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"\0broken" * 1_000)
    for path in (tmp_path / "folder.db", tmp_path / "file" / "below.db", Path("/dev/null"), broken):
        telemetry = UsageLog(path)
        telemetry.record(UsageRecord("grep", "envelope"))
        telemetry.close()
    with pytest.raises(ToolError, match=r"folder\.db"):
        UsageLog(tmp_path / "folder.db").stats()


def test_another_programs_table_is_ignored(tmp_path: Path) -> None:
    rows = sqlite3.connect(tmp_path / "telemetry.db")
    rows.execute("CREATE TABLE calls (something TEXT)")
    rows.close()
    telemetry = UsageLog(tmp_path / "telemetry.db")
    telemetry.record(UsageRecord("grep", "envelope"))
    with pytest.raises(ToolError):
        telemetry.stats()
    telemetry.close()


def test_old_rows_are_removed(tmp_path: Path) -> None:
    telemetry = UsageLog(tmp_path / "telemetry.db")
    telemetry.record(UsageRecord("first", "envelope"))
    rows = sqlite3.connect(tmp_path / "telemetry.db")
    rows.execute("UPDATE calls SET id = ?", (MAX_ROWS - 1,))
    rows.execute("INSERT INTO calls (id, cmd) VALUES (1, 'older')")
    rows.commit()
    rows.close()
    telemetry.record(UsageRecord("last", "envelope"))
    assert [one.cmd for one in telemetry.records()] == ["last", "first", "older"]
    rows = sqlite3.connect(tmp_path / "telemetry.db")
    rows.execute("UPDATE calls SET id = id + 999 WHERE cmd = 'last'")
    rows.commit()
    rows.close()
    telemetry.record(UsageRecord("newest", "envelope"))
    telemetry.close()


LETTERS = "aB3" * 12
SECRETS = [
    f"sk-proj-{LETTERS}",
    f"sk-ant-api03-{LETTERS}",
    "AKIA" + "ABCD1234" * 2,
    f"ghp_{LETTERS}",
    f"github_pat_11{LETTERS}",
    f"xoxb-1234-{LETTERS}",
    f"AIza{LETTERS}",
    f"eyJ{LETTERS}.eyJ{LETTERS}.{LETTERS}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{LETTERS}\n{LETTERS}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{LETTERS} cut here",
]
NAMED = [
    ("password=hunter22", "hunter22"),
    ('"api_key": "abcd1234"', "abcd1234"),
    ("DB_PASSWORD: s3cret!x", "s3cret!x"),
    ("Authorization: Bearer abcdef123456", "abcdef123456"),
    ("curl -H 'authorization: token abcdef12'", "abcdef12"),
    ("mysql --password hunter22 -u me", "hunter22"),
    ("postgres://me:hunter22@host/db", "hunter22"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI"),
    ("export TOKEN='abcdefgh'", "abcdefgh"),
]


@pytest.mark.parametrize(("text", "secret"), [*((one, one) for one in SECRETS), *NAMED])
def test_secrets_are_removed(text: str, secret: str) -> None:
    found = redacted(f"before {text} after", 10_000)
    assert secret not in found
    assert GONE in found
    assert found.startswith("before")


@pytest.mark.parametrize(
    "argv",
    [
        ["mysql", "--password", "S3cr&t!word"],
        ["mysql", "--password=S3cr&t!word"],
        ["mysql", "-pS3cr&t!word", "shop"],
        ["curl", "-H", "X-Api-Key: abc S3cr&t!word"],
        ["curl", "-u", "bob:S3cr&t!word", "https://host"],
        ["curl", "-ubob:S3cr&t!word", "https://host"],
        ["psql", "postgres://bob:p@x/S3cr&t!word@host/db"],
        ["env", "DB_PASSWORD=correct S3cr&t!word staple", "x"],
        ["x", "--password", "-S3cr&t!word"],
        ["x", "--secret", "a'S3cr&t!word"],
        ["run", "/usr/bin/sshpass", "-p", "S3cr&t!word", "ssh", "host"],
        ["docker", "login", "-u", "me", "-p", "S3cr&t!word"],
    ],
)
def test_secrets_in_commands_are_removed(argv: list[str]) -> None:
    for found in (redacted_command(argv, 1_000), redacted_arguments({"args": argv}, 1_000)):
        assert "S3cr&t" not in found
        assert "word" not in found.replace("--password", "")
        assert GONE in found
        assert argv[0] in found


def test_commands_without_secrets_are_unchanged() -> None:
    argv = ["docker", "run", "-p", "80:80", "-u", "me", "grep", "-rn", "a b", "http://host:80/x"]
    assert redacted_command(argv, 1_000) == "docker run -p 80:80 -u me grep -rn 'a b' http://host:80/x"


def test_secrets_in_arguments_are_removed() -> None:
    told = {"password": 'a"S3cr&t', "deep": [{"apiKey": "S3 cr"}, 1], "max_tokens": 7, "token": "", "path": "x"}
    kept = {"password": GONE, "deep": [{"apiKey": GONE}, 1], "max_tokens": 7, "token": "", "path": "x"}
    assert json.loads(redacted_arguments(told, 1_000)) == kept


def test_surrogates_are_escaped(tmp_path: Path) -> None:
    telemetry = UsageLog(tmp_path / "telemetry.db", output_text=True)
    odd = "caf\udce9"
    telemetry.record(UsageRecord(odd, odd, odd, handle=odd, error=odd, output_text=odd, agent=odd, session=odd))
    (found,) = telemetry.records()
    assert {found.cmd, found.input, found.output_text, found.agent, found.session} == {"caf\\udce9"}
    telemetry.close()
    store = HandleStore(tmp_path / "handles.db")
    kept, text = store.get(store.put(odd, cmd=odd, agent=odd, session=odd))
    assert (kept.cmd, kept.agent, kept.session, text) == (*["caf\\udce9"] * 3, odd)
    store.close()


@pytest.mark.mission("G20")
def test_a_failing_usage_log_never_breaks_a_call(tmp_path: Path) -> None:
    telemetry = UsageLog(tmp_path / "telemetry.db")
    envelope = Envelope(settings=Settings(state=str(tmp_path)), telemetry=telemetry)
    round_and_round: dict[str, Any] = {"path": "caf\udce9"}
    assert "short" in envelope.shape(ToolCall("ls", round_and_round, "1"), ToolResult("1", "ls", "short")).text
    round_and_round["again"] = round_and_round
    assert "short" in envelope.shape(ToolCall("ls", round_and_round, "2"), ToolResult("2", "ls", "short")).text
    assert [one.input for one in telemetry.records()] == ['{"path": "caf\\udce9"}']
    telemetry.close()
    envelope.store.close()


@pytest.mark.parametrize("at", range(MAX_INPUT - 30, MAX_INPUT + 2, 3))
def test_a_secret_at_the_limit_is_removed_whole(at: int) -> None:
    found = redacted("." * at + SECRETS[0], MAX_INPUT)
    assert len(found) <= MAX_INPUT
    assert "sk-" not in found


@pytest.mark.parametrize(
    "text", ["def tokenize(text):", "the secretary said: no", "grep -rn foo src", "author: somebody"]
)
def test_words_that_resemble_secrets_are_unchanged(text: str) -> None:
    assert redacted(text, 1_000) == text


@pytest.mark.parametrize(
    "unit", ["-", "a", "token", "token=", "eyJa.", "sk-", " ", "://a:", "-----BEGIN PRIVATE KEY-----", "--a"]
)
def test_long_texts_are_redacted_in_linear_time(unit: str) -> None:
    assert len(redacted(unit * 20_000, MAX_OUTPUT_TEXT)) <= MAX_OUTPUT_TEXT
