"""`toolwire mcp`: servers listed, approved, called and served, with the exit status that says how it went."""

import http.client
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.integration.mcp_parts import calls, raw, starts, tool

import toolwire
from toolwire.cli import run
from toolwire.mcp.servers import McpServer

SOURCE = str(Path(toolwire.__file__).parents[1])
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command with a home of its own; gives its status, what it printed and what it said."""
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("COLUMNS", "200")

    def ran(*arguments: str) -> tuple[int, str, str]:
        status = run(["mcp", *arguments])
        return (status, *capsys.readouterr())

    return ran


def configured(folder: Path, *servers: McpServer, **more: Any) -> str:
    """A file that names servers."""
    body = {
        server.name: {"command": server.command, "args": list(server.args), "env": server.env} for server in servers
    }
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {**body, **more}}))
    return str(path)


def test_servers_are_approved_listed_and_called(tmp_path: Path, cli: Run) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [
        tool("echo", inputSchema=schema),
        tool("wipe", annotations={"destructiveHint": True}),
        tool("fails"),
        {"name": "broken"},
    ]
    steps: dict[str, Any] = {
        "echo": [{"echo": True}],
        "fails": [{"result": {"content": [{"type": "text", "text": "no\x1b[2J"}], "isError": True}}],
    }
    server = raw(tmp_path, tools=tools, calls=steps)
    file = configured(tmp_path, server, missing={"command": "/no/such/program"}, off={"command": "x", "disabled": True})
    run_ = ("--tier", "RUN", "--config", file)

    status, out, err = cli("list", "--config", file)
    assert (status, starts(tmp_path)) == (1, 0)
    assert "raw not approved" in out
    assert f"runs {sys.executable} -I -S" in err
    assert "there is no terminal to ask at" in err
    assert cli("call", "raw", "echo", '{"n": 1}', *run_)[0] == 3

    status, _, err = cli("approve", "raw", "--yes", "--config", file)
    assert status == 0
    assert f"runs {sys.executable} -I -S" in err
    status, out, _ = cli("list", "raw", "off", "--config", file)
    assert status == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "raw ready (raw 1, MCP 2025-06-18)" in lines
    assert "echo RUN Does something." in lines
    assert "wipe RUN, asks Does something." in lines
    assert any(line.startswith("broken quarantined: ") for line in lines)
    assert "off off" in lines
    status, out, _ = cli("list", "--json", "--config", file)
    first = json.loads(out.splitlines()[0])
    assert (status, first["name"], first["tools"][0]["state"]) == (1, "raw", "approved")
    status, _, err = cli("approve", "missing", "--yes", "--config", file)
    assert (status, err.splitlines()[-1]) == (1, "toolwire: missing: there is no program or directory /no/such/program")

    assert cli("call", "raw", "echo", '{"n": "5"}', *run_)[:2] == (0, '{"n": 5}\n')
    status, out, _ = cli("call", "raw", "echo", '{"n": 5}', "--json", *run_)
    assert (json.loads(out)["result"]["result"], json.loads(out)["status"]) == ('{"n": 5}', 0)
    status, _, err = cli("call", "raw", "echo", '{"n": 5}', "--config", file)
    assert (status, err) == (3, "echo needs the tier RUN, and this session is at WALK. Add --tier RUN.\n")
    status, _, err = cli("call", "raw", "echo", '{"n": "x"}', *run_)
    assert status == 2
    assert "/n" in err
    status, _, err = cli("call", "raw", "fails", *run_)
    assert (status, err) == (1, "no\\x1b[2J\n")
    status, _, err = cli("call", "raw", "wipe", *run_)
    assert status == 3
    assert "needs an approval each time" in err
    assert cli("call", "raw", "wipe", "--yes", *run_)[0] == 0
    assert calls(tmp_path) == ["echo", "echo", "fails", "wipe"]


def test_json_output_contains_the_whole_call(tmp_path: Path, cli: Run) -> None:
    answer = {"content": [{"type": "text", "text": "two"}], "structuredContent": {"count": 2}}
    file = configured(tmp_path, raw(tmp_path, tools=[tool("t")], calls={"t": [{"result": answer}]}))
    assert cli("approve", "raw", "--yes", "--config", file)[0] == 0
    status, out, _ = cli("call", "raw", "t", "{'a': 1,}", "--json", "--tier", "RUN", "--config", file)
    payload = json.loads(out)
    assert (status, payload["call"]["server"], payload["call"]["arguments"]) == (0, "raw", {"a": 1})
    assert set(payload["call"]["repairs"]) >= {"single_quotes", "trailing_comma"}
    assert (payload["result"]["result"], payload["result"]["structured"]) == ("two", {"count": 2})


def test_images_and_files_are_described_and_written(tmp_path: Path, cli: Run) -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    paper = {"uri": "file:///tmp/a.pdf", "mimeType": "application/pdf", "blob": "JVBERi0="}
    content = [
        image,
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": paper},
    ]
    steps = {name: [{"result": {"content": parts}}] for name, parts in (("one", [image]), ("all", content))}
    server = raw(tmp_path, tools=[tool("one"), tool("all"), tool("none")], calls=steps)
    file = configured(tmp_path, server)
    assert cli("approve", "raw", "--yes", "--config", file)[0] == 0
    run_ = ("--tier", "RUN", "--config", file)
    assert cli("call", "raw", "one", *run_) == (0, "[image: image/png, 2 bytes]\n", "")
    target = tmp_path / "out.bin"
    status, out, err = cli("call", "raw", "all", "--output", str(target), *run_)
    assert (status, out.splitlines()) == (
        0,
        [
            "[resource file:///tmp/a.pdf (application/pdf)]",
            "[image: image/png, 2 bytes]",
            "[audio: audio/wav, 3 bytes]",
            "[document a.pdf: application/pdf, 5 bytes]",
        ],
    )
    assert target.read_bytes() == b"hi"
    assert (tmp_path / "out-2.bin").read_bytes() == bytes(3)
    assert (tmp_path / "out-3.bin").read_bytes() == b"%PDF-"
    assert len(err.splitlines()) == 3
    status, out, _ = cli("call", "raw", "all", "--json", *run_)
    assert [part["data"] for part in json.loads(out)["result"]["files"]] == ["AAAA", "JVBERi0="]
    status, out, err = cli("call", "raw", "none", "--output", str(target), *run_)
    assert (status, out) == (1, "none\n")
    assert "contains no image and no file" in err
    assert cli("call", "raw", "one", "-o", str(tmp_path), *run_)[0] == 1


def test_question_of_a_server_during_a_call_is_declined_and_reported(tmp_path: Path, cli: Run) -> None:
    older = raw(tmp_path, tools=[tool("t")], calls={"t": [{"ask": "Your\x1b[2J name?"}]})
    (tmp_path / "own.py").write_text("import toolwire\n\n\n" + DANGER)
    serve = ("-m", "toolwire", "mcp", "serve", "--tools", str(tmp_path / "own.py"), "--tier", "RUN")
    newer = McpServer(name="newer", command=sys.executable, args=serve, env={"PYTHONPATH": SOURCE})
    file = configured(tmp_path, older, newer)
    for name in ("raw", "newer"):
        assert cli("approve", name, "--yes", "--config", file)[0] == 0
    output = "asks in the middle of the call, which is declined here:"
    status, out, err = cli("call", "raw", "t", "--tier", "RUN", "--config", file)
    assert (status, json.loads(out)["action"]) == (0, "decline")
    assert f"raw {output} Your[2J name?" in err
    status, out, err = cli("call", "newer", "danger", "--tier", "RUN", "--yes", "--config", file)
    assert (status, out) == (1, "")
    assert f"newer {output} " in err
    assert "The client refused this call of danger: it declined the question that this server asked" in err


DANGER = """@toolwire.tool(requires_confirmation=True, tier=toolwire.Tier.RUN)
def danger() -> str:
    return "ran"
"""


def test_tools_are_listed_under_their_server_names(tmp_path: Path, cli: Run) -> None:
    file = configured(tmp_path, *(raw(tmp_path, name, tools=[tool("same"), tool(name)]) for name in ("one", "two")))
    status, out, _ = cli("list", "one", "--config", file)
    assert (status, f"`toolwire mcp approve one --config {file}` asks about it" in " ".join(out.split())) == (1, True)
    status, _, err = cli("call", "one", "same", "--tier", "RUN", "--config", file)
    assert (status, f"`toolwire mcp approve one --config {file}` asks about it" in err) == (3, True)
    for name in ("one", "two"):
        assert cli("approve", name, "--yes", "--config", file)[0] == 0
    for names in (["one"], ["one", "two"]):
        status, out, _ = cli("list", *names, "--config", file)
        listed = [line.split()[0] for line in out.splitlines() if " RUN " in line]
        assert (status, listed) == (0, [word for name in names for word in ("same", name)])
    assert cli("call", "two", "same", "--tier", "RUN", "--config", file)[:2] == (0, "same\n")


@pytest.mark.need(30)
def test_changed_description_is_not_approved_by_yes_for_a_call(tmp_path: Path, cli: Run) -> None:
    file = configured(tmp_path, raw(tmp_path, tools=[tool("t")]))
    assert cli("approve", "raw", "--yes", "--config", file)[0] == 0
    raw(tmp_path, tools=[tool("t", "Something else.")])
    status, out, _ = cli("list", "--config", file)
    assert status == 0
    assert '+ "Something else."' in " ".join(out.split())
    status, _, err = cli("call", "raw", "t", "--tier", "RUN", "--yes", "--config", file)
    assert status == 3
    assert f"`toolwire mcp approve raw t --config {file}` does" in err
    status, _, err = cli("call", "raw", "t", "--tier", "RUN", "--config", file)
    assert (status, f"`toolwire mcp approve raw t --config {file}` shows its description" in err) == (3, True)
    assert not calls(tmp_path)
    assert cli("approve", "raw", "--config", file)[0] == 3
    status, _, err = cli("approve", "raw", "t", "--yes", "--config", file)
    assert (status, err.splitlines()[-1]) == (0, "raw: 1 of 1 tools approved")
    assert cli("call", "raw", "t", "--tier", "RUN", "--config", file)[:2] == (0, "t\n")


@pytest.mark.need(29)
def test_rules_apply_to_calls(tmp_path: Path, cli: Run) -> None:
    file = configured(tmp_path, raw(tmp_path, tools=[tool("t")]))
    rules = tmp_path / "rules.toml"
    rules.write_text('[[policy.rules]]\neffect = "deny"\ntool = "raw.t"\nreason = "not here"\n')
    assert cli("approve", "raw", "--yes", "--config", file)[0] == 0
    status, _, err = cli("call", "raw", "t", "--tier", "RUN", "--policy", str(rules), "--config", file)
    assert (status, err) == (3, "not here\n")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["list"], 2, "name the file with the servers with --config"),
        (["list", "--config", "FILE", "nobody"], 2, "there is no MCP server 'nobody'; there are: raw"),
        (["list", "--config", "none.json"], 2, "none.json: cannot be read"),
        (["call", "raw", "none", "--config", "FILE"], 2, "raw has no tool 'none'; it has t"),
        (["call", "raw", "t", "{", "--config", "FILE"], 2, "the arguments cannot be used"),
        (
            ["call", "raw", "t", "--tier", "FLY", "--config", "FILE"],
            2,
            "unknown tier 'FLY'; the tiers are crawl, walk, run",
        ),
        (["approve", "raw", "none", "--config", "FILE"], 2, "the server raw has no tool 'none'"),
        (["serve"], 2, "there are no tools to serve"),
        (["serve", "--root", "none"], 2, "none"),
    ],
)
def test_errors_are_one_line(arguments: list[str], status: int, message: str, tmp_path: Path, cli: Run) -> None:
    file = configured(tmp_path, raw(tmp_path, tools=[tool("t")]))
    assert cli("approve", "raw", "--yes", "--config", file)[0] == 0
    exit_status, out, err = cli(*(file if word == "FILE" else word for word in arguments))
    assert (exit_status, out) == (status, "")
    assert message in err.splitlines()[-1]


def test_user_configuration_is_read_by_default(tmp_path: Path, cli: Run) -> None:
    server = raw(tmp_path, tools=[tool("t")])
    (tmp_path / "config" / "toolwire").mkdir(parents=True)
    words = ", ".join(json.dumps(word) for word in server.args)
    text = f'[mcp.servers.raw]\ncommand = "{server.command}"\nargs = [{words}]\ntier = "WALK"\n'
    (tmp_path / "config" / "toolwire" / "config.toml").write_text(text)
    assert cli("approve", "raw", "--yes")[0] == 0
    assert cli("call", "raw", "t")[:2] == (0, "t\n")


def _at_a_terminal(folder: Path, answer: str, *arguments: str) -> tuple[int, str]:
    """The command with somebody at the keyboard."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": SOURCE, "TERM": "dumb"}
    command = [sys.executable, "-m", "toolwire", "mcp", *arguments]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    output = b""
    try:
        while b"[y/N]" not in output:
            output += os.read(leader, 4_096)
        os.write(leader, answer.encode())
        while True:
            try:
                piece = os.read(leader, 4_096)
            except OSError:  # how Linux says that nobody writes any more
                break
            if not piece:
                break
            output += piece
    finally:
        process.wait()
        os.close(leader)
    return process.returncode, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output.decode("utf-8", "replace"))


def test_user_at_the_terminal_is_asked(tmp_path: Path) -> None:
    file = configured(tmp_path, raw(tmp_path, tools=[tool("t")]))
    call = ("call", "raw", "t", "--tier", "RUN", "--config", file)
    status, output = _at_a_terminal(tmp_path, "\n", *call)
    assert (status, starts(tmp_path)) == (3, 0)
    assert "has not been used before" in output
    status, output = _at_a_terminal(tmp_path, "y\n", *call)
    assert (status, calls(tmp_path)) == (0, ["t"]), output


def test_http_server_prints_its_address_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "TOOLWIRE_MCP_TOKEN": "", "COLUMNS": "200"}
    for more, expected in ((["--no-token"], "there is no token"), ([], "Authorization: Bearer ")):
        command = [sys.executable, "-m", "toolwire", "mcp", "serve", "--root", str(tmp_path), "--http", "0", *more]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert process.stderr is not None
        with process.stderr as lines:
            assert re.search(r"serving http://127\.0\.0\.1:\d+/mcp", lines.readline())
            assert expected in lines.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130


PATIENCE = 200
"""Seconds after which a process counts as hanging; the programs of the tools would end by themselves after 300.

On a busy machine a server takes more than 30 seconds to start.
"""
SLOW = """
import os
import pathlib
import subprocess
import sys
import time

import toolwire


@toolwire.tool(isolated=True)
def alone(place: str) -> str:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    folder = pathlib.Path(place)
    (folder / "part").write_text(f"{os.getpid()} {child.pid}")
    (folder / "part").rename(folder / "pids")
    time.sleep(300)
    return ""
"""
SCRIPT = "echo $$ $PPID > part; sleep 300 & echo $! >> part; mv part pids; wait"


def _ends(pid: int) -> bool:
    """Whether a process has ended, or is about to."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")
@pytest.mark.parametrize(
    ("tool_", "over", "number"),
    [
        ("execute_command", "stdio", signal.SIGTERM),
        ("execute_command", "http", signal.SIGINT),
        ("alone", "stdio", signal.SIGINT),
        ("alone", "http", signal.SIGTERM),
        ("te_run", "stdio", signal.SIGTERM),
        ("execute_command", "http", signal.SIGHUP),
        ("alone", "stdio", signal.SIGQUIT),
        ("execute_command", "stdio", signal.SIGKILL),
        ("alone", "http", signal.SIGKILL),
        ("te_run", "stdio", signal.SIGKILL),
    ],
)
def test_ended_server_leaves_no_processes(tool_: str, over: str, number: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "own.py").write_text(SLOW)
    (folder / "slow.sh").write_text(SCRIPT)
    arguments: dict[str, dict[str, Any]] = {
        "execute_command": {"command": ["sh", "slow.sh"]},
        "alone": {"place": str(folder)},
        "te_run": {"args": ["run", "sh", "slow.sh"]},
    }
    command = [sys.executable, "-m", "toolwire", "mcp", "serve", "--root", str(folder)]
    command += ["--tools", str(tmp_path / "own.py"), "--tier", "RUN", "--yes"]
    command += ["--envelope", "qwen-local"] if tool_ == "te_run" else []
    command += ["--http", "0", "--no-token"] if over == "http" else []
    state = str(tmp_path / "state")
    environment = {
        **os.environ,
        "PYTHONPATH": SOURCE,
        "TOOLWIRE_STATE": state,
        "COLUMNS": "200",
        "TMPDIR": str(tmp_path),
    }
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
    closing = ExitStack()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
        params = {"name": tool_, "arguments": arguments[tool_]}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        if over == "stdio":
            for message in (begin, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call):
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
        else:
            match = re.search(r"http://(\S+):(\d+)/mcp", process.stderr.readline())
            assert match is not None
            connection = http.client.HTTPConnection(match[1], int(match[2]), timeout=PATIENCE)
            closing.callback(connection.close)
            kinds = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
            connection.request("POST", "/mcp", json.dumps(begin), kinds)
            answer = connection.getresponse()
            answer.read()
            session = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
            connection.request("POST", "/mcp", json.dumps(call), {**kinds, **session})
        running = _written(folder / "pids", process)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        assert process.returncode in (128 + number, -number)
        assert len(running) >= 2
        left = [pid for pid in running if pid != process.pid]
        _until(lambda: all(map(_ends, left)))
        _until(lambda: not list(tmp_path.glob("toolwire-*")))
    finally:
        closing.close()
        process.kill()
        process.communicate()


def _written(path: Path, process: "subprocess.Popen[str]") -> list[int]:
    """The numbers in a file that another process writes."""
    _until(lambda: path.exists() or process.poll() is not None)
    return [int(item) for item in path.read_text().split()]


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
