"""Every program in `examples` runs and prints what its reader expects, without a network."""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import importlib.util
import io
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.integration.models import calling, scripted
from tests.integration.servers import Answer, Asked, serving

from toolwire import ParsedResponse, ProviderError, Tier, ToolCall, get_api, replay
from toolwire.models import WEIGHTS, fetch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb"))
PUBLIC = {"toolwire"} | {
    f"toolwire.{name}"
    for name in ("agent", "mcp", "models", "openapi", "policy", "telemetry", "testing", "web", "wire")
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    yield


def call(name: str, /, *, call_id: str = "call_1", **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, call_id)


def run(
    name: str,
    *arguments: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Return what a program prints, run in this process."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def lines_of(name: str) -> int:
    """Return the number of lines of a program, without docstrings."""
    program = ast.parse((EXAMPLES / name).read_text("utf-8"))
    return len([line for line in ast.unparse(program.body[1:]).splitlines() if line.strip() and '"""' not in line])


def start(name: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a program in a process of its own."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)


def test_agent_with_api_calls_the_tool_and_prints_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted(calling(call("get_weather", city="Paris", days=7)), ParsedResponse("Yes, take one.")) as server:
        options = ("--base-url", server.url, "--model", "m")
        assert run("agent_with_api.py", *options, monkeypatch=monkeypatch, capsys=capsys) == "Yes, take one.\n"
    assert server.said(1)[-1] == "Paris: rain for 7 days"


def test_structured_output_prints_a_value(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(ParsedResponse('{"name": "London", "country": "United Kingdom"}')) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        printed = run("structured_output.py", monkeypatch=monkeypatch, capsys=capsys)
    assert printed == "name='London' country='United Kingdom'\n"
    assert server.asked[0]["response_format"]["json_schema"]["name"] == "City"


def test_parts_asks_about_a_picture_and_a_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "chart.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7")
    with scripted(ParsedResponse("It does.")) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        files = [str(tmp_path / name) for name in ("chart.png", "report.pdf")]
        assert run("parts.py", *files, monkeypatch=monkeypatch, capsys=capsys) == "It does.\n"
    question, picture, report = server.asked[0]["messages"][-1]["content"]
    assert question == {"type": "text", "text": "Does the picture agree with the report?"}
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert report["file"]["filename"] == "report.pdf"


def test_tools_get_dependencies_that_the_model_does_not_see(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = (calling(call("order", item="cup")), calling(call("my_orders")), ParsedResponse("A cup and tea."))
    with scripted(*steps) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        assert run("dependencies.py", monkeypatch=monkeypatch, capsys=capsys) == "A cup and tea.\n"
    assert server.said(2)[-1] == '["tea", "cup"]'
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in server.asked[0]["tools"]}
    assert list(offered["my_orders"]["properties"]) == []
    assert list(offered["order"]["properties"]) == ["item"]


def test_model_fallback_asks_the_second_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths: list[str] = []

    def answer(request: Asked) -> Answer:
        paths.append(request.path)
        if request.path == "/chat/completions":
            return Answer(b'{"error": {"message": "overloaded"}}', status=503)
        stream = b"".join(get_api("anthropic").encode_stream(replay(ParsedResponse("Paris.")), model="m"))
        return Answer(stream, content_type="text/event-stream")

    with serving(answer) as url:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        assert run("model_fallback.py", monkeypatch=monkeypatch, capsys=capsys) == "Paris.\n"
    assert paths == ["/chat/completions"] * 2 + ["/v1/messages"]


def test_handoff_prints_the_answer_of_the_other_agent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = calling(call("transfer_to_billing")), calling(call("find_invoice", number=7)), ParsedResponse("12 EUR.")
    with scripted(*answers) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        assert run("handoff.py", monkeypatch=monkeypatch, capsys=capsys) == "12 EUR.\n"
    assert [body["tools"][0]["function"]["name"] for body in server.asked] == [
        "transfer_to_billing",
        "find_invoice",
        "find_invoice",
    ]
    assert "questions about invoices" in server.said(1)[0]


def test_compaction_asks_the_small_model_for_a_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted(ParsedResponse("Twenty notes about tea."), ParsedResponse("Tea.")) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        assert run("compaction.py", monkeypatch=monkeypatch, capsys=capsys) == "Tea.\n"
    assert [body["model"] for body in server.asked] == ["gpt-5-nano", "gpt-5-mini"]
    assert any("Twenty notes about tea." in text for text in server.said(1))


@pytest.mark.model
def test_agent_with_local_model_ends_with_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        fetch(WEIGHTS["0.5b"])
    except ProviderError as error:
        pytest.skip(f"no model: {error}")
    (tmp_path / "notes.txt").write_text("The meeting is on Tuesday at noon.\n")
    options = ("When is the meeting? Read notes.txt.", "--root", str(tmp_path), "--model", "0.5b")
    assert run("agent_with_local_model.py", *options, monkeypatch=monkeypatch, capsys=capsys).strip()


async def get(app: Starlette, path: str, query: str) -> list[str]:
    """Return the pieces of the body that an ASGI app sends."""
    pieces: list[str] = []
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()  # the client stays connected
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and message["body"]:
            pieces.append(message["body"].decode())

    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
    await app(scope, receive, send)
    return pieces


def test_streaming_app_sends_one_event_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = calling(call("get_weather", city="Paris")), ParsedResponse("Yes.")
    with scripted(*answers) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        app = runpy.run_path(str(EXAMPLES / "streaming_app.py"))["app"]
        pieces = asyncio.run(get(app, "/ask", "question=Is+it+raining"))
    assert [json.loads(piece.removeprefix("data: ")) for piece in pieces] == [
        {"type": "call", "tool": "get_weather"},
        {"type": "result", "text": "Paris: rain"},
        {"type": "text", "text": "Yes."},
        {"type": "end", "reason": "answered"},
    ]


def test_approve_later_resumes_in_another_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    questions: list[str] = []
    monkeypatch.setattr(builtins, "input", lambda question: questions.append(question) or "y")
    with scripted(calling(call("delete_file", name="old.txt")), ParsedResponse("It is gone.")) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        asked = run("approve_later.py", monkeypatch=monkeypatch, capsys=capsys)
        assert asked == "delete_file waits for an approval\n"
        assert run("approve_later.py", monkeypatch=monkeypatch, capsys=capsys) == "It is gone.\n"
    assert "old.txt" in questions[0]
    assert server.said(1)[-1] == "old.txt is deleted"


def test_approval_app_resumes_what_another_process_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    answers = calling(call("delete_file", name="old.txt")), ParsedResponse("It is gone.")
    with scripted(*answers) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        path = str(EXAMPLES / "approval_app.py")
        # Each request reaches an app of its own, as in several processes.
        asked = asyncio.run(post(runpy.run_path(path)["app"], "/ada", "Please delete old.txt."))
        assert "old.txt" in asked["questions"]["call_1"]
        decisions = {"decisions": {"call_1": True}, "digest": asked["digest"]}
        stale = json.dumps({**decisions, "digest": "0"})
        refused = asyncio.run(post(runpy.run_path(path)["app"], "/ada/decisions", stale))
        assert refused == {"error": "these are not the pending approvals that the decisions are about"}
        decided = [
            asyncio.run(post(runpy.run_path(path)["app"], "/ada/decisions", json.dumps(decisions))) for _ in range(2)
        ]
        assert len(server.asked) == 2
        assert "old.txt is deleted" in server.said(1)
    assert decided == [{"answer": "It is gone."}, {"error": "nothing waits for an approval"}]


async def post(app: Starlette, path: str, body: str) -> Any:
    """Return the JSON that an ASGI app answers."""
    pieces: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body.encode(), "more_body": False}

    async def send(message: Any) -> None:
        pieces.append(message.get("body", b""))

    await app({"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}, receive, send)
    return json.loads(b"".join(pieces))


async def run_cells(cells: list[str]) -> str:
    """Run the cells of a notebook in one namespace, with top-level `await`, and return what they print."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as output:
        for number, cell in enumerate(cells):
            pending = eval(compile(cell, f"cell {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if pending is not None:
                await pending
    return output.getvalue()


def test_notebook_runs_cell_by_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    answers = (
        calling(call("mean", numbers=[2, 4, 9])),
        ParsedResponse("It is 5."),
        calling(call("mean", numbers=[1, 2])),
        ParsedResponse("It is 1.5."),
        ParsedResponse("You are welcome."),
    )
    with scripted(*answers) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        output = asyncio.run(run_cells(cells))
    assert output == "It is 5.\nresult: 1.5\nIt is 1.5.\nYou are welcome.\n"
    assert "It is 1.5." in server.said(4)  # the history was passed on
    assert all(not cell.get("outputs") for cell in notebook["cells"])


def test_mcp_client_uses_the_tools_of_the_mcp_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted(calling(call("read_stock", item="tea")), ParsedResponse("3 are left.")) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        assert run("mcp_client.py", monkeypatch=monkeypatch, capsys=capsys) == "3 are left.\n"
    assert server.said(1)[-1] == "3"


def test_object_tools_share_the_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    questions: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question: questions.append(question) or "y")
    steps = calling(call("pending")), calling(call("cancel", item="milk")), ParsedResponse("The milk is cancelled.")
    with scripted(*steps) as server:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        printed = run("object_tools.py", monkeypatch=monkeypatch, capsys=capsys)
    assert printed == "The milk is cancelled.\nstill ordered: tea\n"
    assert server.said(1)[-1] == '["tea", "milk"]'
    assert questions == ["cancel {'item': 'milk'}? [y/n] "]


def test_openapi_tools_call_the_api(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Answer:
        asked.append(request)
        return Answer(b"3")

    (tmp_path / "shop.yaml").write_text(
        "openapi: 3.1.0\ninfo: {title: shop, version: '1'}\npaths:\n  /stock/{item}:\n    get:\n"
        "      operationId: readStock\n"
        "      parameters: [{name: item, in: path, required: true, schema: {type: string}}]\n"
    )
    steps = calling(call("readStock", item="green tea")), ParsedResponse("3 are left.")
    with scripted(*steps) as server, serving(answer, get=True) as url:
        monkeypatch.setenv("TOOLWIRE_EXAMPLE_URL", server.url)
        monkeypatch.setenv("SHOP_TOKEN", "s")
        arguments = (str(tmp_path / "shop.yaml"), f"{url}/v1")
        assert run("openapi_tools.py", *arguments, monkeypatch=monkeypatch, capsys=capsys) == "3 are left.\n"
    assert server.said(1)[-1] == "3"
    assert [(item.path, item.headers["authorization"]) for item in asked] == [("/v1/stock/green%20tea", "Bearer s")]


def test_mcp_server_prints_its_address_and_token(capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(EXAMPLES / "mcp_server.py"))["main"]
    announce = main.__globals__["announce"]

    async def serve_until_announced() -> None:
        announced = asyncio.Event()
        main.__globals__["announce"] = lambda listening: (announce(listening), announced.set())
        server = asyncio.create_task(main(Tier.WALK, 0))
        await announced.wait()
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server

    asyncio.run(serve_until_announced())
    output = capsys.readouterr().out
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp  Authorization: Bearer \S{16,}\n", output)


def test_durable_worker_resumes_after_a_crash_without_a_second_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = (
        calling(call("order", item="tea", call_id="call_1")),
        calling(call("order", item="milk", call_id="call_2")),
        ParsedResponse("Both are on their way."),
    )
    with scripted(*answers) as server:
        options = ("--database", str(tmp_path / "runs.sqlite3"), "--base-url", server.url)
        crashed = start("durable_worker.py", "begin", "order-7", "Order tea, then milk.", "--crash", *options)
        assert crashed.returncode == 1
        assert crashed.stdout.decode() == "ordering tea\ntea is on its way\n"
        output = run("durable_worker.py", "resume", "order-7", *options, monkeypatch=monkeypatch, capsys=capsys)
    assert output.splitlines() == [
        "tea is on its way",
        "-- what follows is new",
        "ordering milk",
        "milk is on its way",
        "Both are on their way.",
    ]
    assert len(server.asked) == 3


def test_team_shows_the_work_of_its_members(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = (
        calling(call("counter", task="How much tea?")),
        calling(call("count_stock", item="tea")),
        ParsedResponse("3"),
        calling(call("buyer", task="What does tea cost?")),
        calling(call("find_price", item="tea")),
        ParsedResponse("4.50 EUR"),
        ParsedResponse("There are 3; more cost 4.50 EUR each."),
    )
    with scripted(*answers) as server:
        output = run("team.py", "--base-url", server.url, monkeypatch=monkeypatch, capsys=capsys)
    assert output.splitlines() == [
        "counter: count_stock -> 3",
        "buyer: find_price -> 4.50 EUR",
        "There are 3; more cost 4.50 EUR each.",
    ]


def test_reread_log_prints_a_row_for_each_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [line.split() for line in run("reread_log.py", monkeypatch=monkeypatch, capsys=capsys).splitlines()]
    assert rows[0] == ["id", "hermes", "pythonic", "auto"]
    assert rows[1] == ["a", "get_weather(Paris,", "2)", "text", "get_weather(Paris,", "2)"]
    assert rows[4] == ["d", "truncated", "text", "truncated"]
    assert rows[5] == ["e", "text", "get_weather(Lima,", "1)", "get_weather(Lima,", "1)"]


def test_translate_stream_writes_the_events_of_the_other_api() -> None:
    response = calling(call("get_weather", city="Paris"), content="I look it up.")
    source = b"".join(get_api("openai_chat").encode_stream(replay(response), model="big-1", id="7"))
    translated = start("translate_stream.py", stdin=source).stdout.decode()
    events = re.findall(r"^event: (\w+)$", translated, re.MULTILINE)
    assert (events[0], events[-1]) == ("message_start", "message_stop")
    assert '"name":"get_weather"' in translated
    assert '"stop_reason":"tool_use"' in translated
    assert '"id":"msg_7"' in translated
    assert '"model":"big-1"' in translated
    half = start("translate_stream.py", stdin=source[: len(source) // 2])
    assert "dropped truncated: The stream broke off before the answer was over." in half.stderr.decode()


def test_own_format_renders_streams_and_reports_truncation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("own_format.py", monkeypatch=monkeypatch, capsys=capsys).splitlines() == [
        '@@call get_weather => {"city": "Paris"} @@end',
        "'I look it up. ' {'city': 'Paris', 'days': 3} ('coerced',)",
        "() truncated",
    ]


def test_own_policy_allows_asks_and_denies(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    questions: list[str] = []
    monkeypatch.setattr(builtins, "input", lambda question: questions.append(question) or "y")
    names = ("old.txt", "build.log", "notes.txt")
    calls = [call("delete_file", call_id=f"call_{number}", name=name) for number, name in enumerate(names)]
    with scripted(calling(*calls), ParsedResponse("I kept notes.txt.")) as server:
        output = run("own_policy.py", "--base-url", server.url, monkeypatch=monkeypatch, capsys=capsys)
    assert questions == ["Run it? [y/n] "]
    assert "old.txt" in output
    assert output.endswith("I kept notes.txt.\nleft: notes.txt\n")
    assert server.said(1)[-3:] == ["old.txt is deleted", "build.log is deleted", "Error: Notes are never deleted."]


def test_test_an_agent_passes() -> None:
    spec = importlib.util.spec_from_file_location("test_an_agent", EXAMPLES / "test_an_agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 1
    for test in tests:
        test()


COMPARED = re.findall(
    r"^\| [^|]+ \| `examples/(\w+\.py)` \| (\d+) \| (?:(\d+), [\w-]+(?: \*)?)? ?\|$",
    (ROOT / "docs" / "explanation" / "comparison.md").read_text("utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("name", "lines", "other"), COMPARED)
def test_program_has_the_lines_of_the_comparison_and_no_more_than_others(name: str, lines: str, other: str) -> None:
    assert lines_of(name) == int(lines)
    assert not other or int(lines) <= int(other)


def test_comparison_has_all_jobs() -> None:
    assert len(COMPARED) == 23
    assert sum(bool(other) for _, _, other in COMPARED) == 19


def test_readme_lists_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| \[`(\S+)`\]\(\1\) \|", text, re.MULTILINE)) == PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_example_imports_only_public_modules(name: str) -> None:
    text = (EXAMPLES / name).read_text("utf-8")
    imported = set(re.findall(r"(?:from|import) (toolwire[\w.]*)", text))
    assert imported
    assert imported <= PUBLIC


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.endswith(".py")])
def test_example_says_how_to_run_it(name: str) -> None:
    docstring = ast.get_docstring(ast.parse((EXAMPLES / name).read_text("utf-8"))) or ""
    assert f"examples/{name}" in docstring or f"examples.{name.removesuffix('.py')}:app" in docstring
    assert len((EXAMPLES / name).read_text("utf-8").splitlines()) <= 75
