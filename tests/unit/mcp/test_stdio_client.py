"""Messages of programs: read one by one, also where a part of one is nested deeply."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from toolwire.mcp.stdio_client import _message, _OpenRequests


def listing(depth: int) -> bytes:
    schema: object = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    tools = [{"name": "good", "inputSchema": {"type": "object"}}, {"name": "deep", "inputSchema": schema}]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode()


def test_a_schema_that_is_nested_deeply_does_not_stop_the_tools_beside_it() -> None:
    message = _message(listing(300))
    assert isinstance(message, SessionMessage)
    assert "good" in str(message)[:2_000]


def test_a_message_that_cannot_be_read_is_an_error() -> None:
    assert isinstance(_message(b"{"), ValueError)
    assert isinstance(_message(b"[" * 100_000), ValueError)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"result": None}, "(result: Input should be a valid dictionary)"),
        ({"result": []}, "(result: Input should be a valid dictionary)"),
        ({"result": {}, "jsonrpc": "1.0"}, "(jsonrpc: Input should be '2.0')"),
        ({}, "(result: Field required)"),
        ({"error": "no"}, "(error: Input should be a valid dictionary or instance of ErrorData)"),
        ({"error": {"code": 1}}, "(error.message: Field required)"),
    ],
)
@pytest.mark.parametrize("id", [7, "seven"])
def test_an_answer_that_cannot_be_read_ends_its_request(answer: dict[str, object], why: str, id: int | str) -> None:
    message = _message(json.dumps({"jsonrpc": "2.0", "id": id, **answer}).encode())
    assert isinstance(message, SessionMessage)
    assert isinstance(message.message, JSONRPCError)
    assert message.message.id == id
    assert why in message.message.error.message


def test_an_error_without_an_id_belongs_to_no_request_if_two_are_open() -> None:
    requests = _OpenRequests()
    error = _message(b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}}')

    def ask(id: int | str) -> None:
        requests.sent(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=id, method="ping")))

    assert requests.answered(error) is error  # no request is open
    ask(1)
    ask("two")
    assert requests.answered(error) is error
    requests.answered(_message(b'{"jsonrpc": "2.0", "id": 1, "result": {}}'))
    ended = requests.answered(error)
    assert isinstance(ended, SessionMessage)
    assert isinstance(ended.message, JSONRPCError)
    assert (ended.message.id, ended.message.error.message) == ("two", "no")
    assert requests.answered(error) is error  # it has been answered


def test_an_identifier_may_be_written_with_a_fraction() -> None:
    message = _message(b'{"jsonrpc": "2.0", "id": 7.0, "result": {}}')
    assert isinstance(message, SessionMessage)
    assert isinstance(message.message, JSONRPCResponse)
    assert repr(message.message.id) == "7"
    assert isinstance(_message(b'{"jsonrpc": "2.0", "id": 7.5, "result": {}}'), ValueError)


@pytest.mark.parametrize("value", [{"id": True, "result": None}, {"result": None}, {"id": 1, "method": 5}, [], None])
def test_a_message_that_answers_nothing_is_an_error(value: object) -> None:
    assert isinstance(_message(json.dumps(value).encode()), ValueError)


KILLED_BETWEEN = """
import anyio, os, signal, sys
from contextlib import contextmanager
from toolwire.mcp import stdio_client
from toolwire.mcp.servers import Launch

@contextmanager
def die(group):
    os.kill(os.getpid(), signal.SIGKILL)
    yield

async def main():
    launch = Launch("stdio", ("sh", "-c", "echo started > started"))
    async with stdio_client.open_program(launch, sys.stderr, limit=1_000, on_refusal=print):
        pass

stdio_client.watch_group = die
anyio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_no_server_starts_if_its_client_is_killed_before_it_is_watched(tmp_path: Path) -> None:
    # The program has the standard error of this process, so its end is the end of the program.
    ended = subprocess.run([sys.executable, "-c", KILLED_BETWEEN], cwd=tmp_path, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGKILL, b"")
    assert not (tmp_path / "started").exists()
