"""What commands write does not steer a terminal, whatever is in the files that they read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import toolwire
from toolwire import FinishReason, ParsedResponse, cli

EVIL = "red \x1b[31m \x1b]0;owned\x07 \x9b2J \u202e hidden"
STEERING = frozenset("\x1b\x07\x9b\u202e")
API = toolwire.get_api("openai_chat")
ANSWER = ParsedResponse(EVIL, finish_reason=FinishReason.STOP)
CALL = {"name": "x", "arguments": {"a": EVIL}}


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "content"),
    [
        ("render calls --format hermes", json.dumps([CALL])),
        ("render results --format hermes", json.dumps([{"call_id": "1", "tool_name": "x", "result": EVIL}])),
        ("convert --from openai_chat --to anthropic_messages", json.dumps(API.encode_response(ANSWER))),
        (
            "convert --kind stream --from openai_chat --to anthropic_messages",
            b"".join(API.encode_stream(toolwire.replay(ANSWER), model="m")).decode(),
        ),
        ("parse --format hermes", EVIL),
    ],
    ids=["calls", "results", "response", "stream", "parse"],
)
def test_nothing_steers_a_terminal(
    arguments: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = _Terminal(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    monkeypatch.setattr("sys.stdout", output)
    monkeypatch.setenv("TERM", "dumb")
    (tmp_path / "file").write_text(content)
    assert cli.run([*arguments.split(), str(tmp_path / "file")]) == 0
    output.flush()
    shown = output.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert "hidden" in shown
    assert not STEERING & set(shown)
