"""The programs in `examples` that name their model in one text: each runs as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.models import Scripted, calling, scripted

from toolwire import ParsedResponse, ToolCall

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
START = """
import runpy, sys
from dataclasses import replace
from toolwire.client.endpoints import ENDPOINTS

ENDPOINTS["openai_chat"] = replace(ENDPOINTS["openai_chat"], base_url=sys.argv[1])  # in place of api.openai.com
runpy.run_path(sys.argv[2], run_name="__main__")
"""
"""Runs a program with a server of the test as the provider's endpoint."""
TO_APP = """
from starlette.testclient import TestClient

names = runpy.run_path(sys.argv[2])
response = TestClient(names["app"]).post("/", content=sys.argv[3])
print(response.headers["content-type"], response.text, sep="\\n")
"""
Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a program in an empty directory, and returns what it prints."""

    def start(name: str, server: Scripted, *arguments: str, code: str = START) -> str:
        command = [sys.executable, "-c", code, server.url, str(EXAMPLES / name), *arguments]
        environment = {**os.environ, "OPENAI_API_KEY": "none"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=False)
        assert not done.returncode, done.stderr.decode()
        return done.stdout.decode()

    return start


def test_ask_sync_prints_the_answer_and_the_pieces_of_another_one(run: Run) -> None:
    call = ToolCall("get_weather", {"city": "Paris"}, "call_1")
    with scripted(calling(call), ParsedResponse("Yes."), ParsedResponse("No, it is dry.")) as server:
        assert run("ask_sync.py", server) == "Yes.\nNo, it is dry."
    assert server.said(1)[-1] == "Paris: rain"


def test_conversations_continue_in_another_process(run: Run) -> None:
    with scripted(ParsedResponse("Hello Ada."), ParsedResponse("Ada.")) as server:
        assert run("conversations.py", server) == "Ada.\n"
        assert run("conversations.py", server) == "Ada.\n"
    assert server.said(3) == ["I am Ada.", "Hello Ada.", "Who am I?", "Ada.", "I am Ada.", "Ada.", "Who am I?"]


@pytest.mark.parametrize(
    ("answer", "printed"),
    [
        ({"order": 7, "amount": 12.5}, "refund 12.5 for order 7\n"),
        ({"text": "Do you have tea?"}, "answer: Do you have tea?\n"),
    ],
)
def test_union_output_is_a_value_of_one_of_the_types(run: Run, answer: dict[str, Any], printed: str) -> None:
    with scripted(ParsedResponse(json.dumps({"response": answer}))) as server:
        assert run("union_output.py", server) == printed
    schema = server.asked[0]["response_format"]["json_schema"]["schema"]
    assert set(schema["$defs"]) == {"Refund", "Question"}


def test_budgets_end_a_run_and_show_what_it_used(run: Run) -> None:
    with scripted(ParsedResponse("Tea, O tea.")) as server:
        answer, used = run("budgets.py", server).splitlines()
    assert answer == "Tea, O tea."
    assert used.startswith("answered: ")
    assert server.asked[0]["stream_options"] == {"include_usage": True}


def test_observability_prints_the_spans_of_the_run_and_of_its_request(run: Run) -> None:
    with scripted(ParsedResponse("Paris.")) as server:
        printed = run("observability.py", server)
    assert '"name": "invoke_agent agent"' in printed
    assert '"name": "chat gpt-5-mini"' in printed
    assert printed.endswith("Paris.\n")


def test_ag_ui_app_answers_a_front_end_that_sends_the_conversation(run: Run) -> None:
    call = ToolCall("get_weather", {"city": "Rome"}, "call_1")
    messages = [
        {"id": "1", "role": "user", "content": "Is it raining in Paris?"},
        {"id": "2", "role": "assistant", "content": "Yes."},
        {"id": "3", "role": "user", "content": "And in Rome?"},
    ]
    body = {"threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": [], "state": {}}
    with scripted(calling(call), ParsedResponse("It rains too.")) as server:
        code = START[: START.index("runpy.run_path")] + TO_APP
        kind, events = run("ag_ui_app.py", server, json.dumps(body), code=code).split("\n", 1)
    assert kind.startswith("text/event-stream")
    decoded = [json.loads(line.removeprefix("data: ")) for line in events.splitlines() if line]
    assert decoded[0] == {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    assert decoded[-1]["type"] == "RUN_FINISHED"
    assert "It rains too." in [event.get("delta") for event in decoded]
    assert server.said(0) == ["Is it raining in Paris?", "Yes.", "And in Rome?"]
