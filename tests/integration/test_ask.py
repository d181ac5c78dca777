"""`toolwire ask`: a real agent, real tools, and a model on loopback."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.models import API, calling, scripted
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import ParsedResponse, ToolCall, Usage
from toolwire.agent import ConversationStore, PendingApprovals
from toolwire.cli import run
from toolwire.cli.agent_options import AgentOptions
from toolwire.cli.console import CliError
from toolwire.config.tables import load_configuration
from toolwire.telemetry import flush

FOLDER = Path(__file__).parents[1] / "unit" / "agent"
READ = ToolCall("read_file", {"path": "a.txt"}, "c1")
WRITE = ToolCall("write_file", {"path": "b.txt", "content": "new\n"}, "c1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 31)))
    return tmp_path


def test_the_answer_is_shown_once_and_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(calling(READ, content="Let me look."), ParsedResponse("It has 30 lines.")) as model:
        assert run(["ask", "How long?", "--root", str(root), *model.options]) == 0
    shown = capsys.readouterr()
    assert shown.out == "It has 30 lines.\n"
    rows = [row for row in shown.err.splitlines() if "runs are recorded in" not in row]  # said once on each machine
    assert rows[:3] == ["text    Let me look.", 'call    read_file {"path": "a.txt"}', "result  line 1"]
    assert rows[-1] == "        … (22 lines left out)"
    assert model.asked[0]["tools"][0]["function"]["name"] == "list_dir"
    names = [tool["function"]["name"] for tool in model.asked[0]["tools"]]
    assert names[:3] == ["list_dir", "read_file", "search_files"]
    assert len(names) == 6, "what changes something is offered too, and asks before it runs"


@pytest.mark.parametrize("takes", [True, False], ids=["takes it", "refuses it"])
def test_a_server_decodes_under_a_grammar_or_answers_without_one(
    takes: bool, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [toolwire.render_calls([READ], format="hermes"), "30"]
    bodies: list[dict[str, Any]] = []

    def answer(request: Asked) -> Answer:
        bodies.append(json.loads(request.body))
        if "structured_outputs" in bodies[-1] and not takes:
            return Answer(b'{"error": {"message": "bad rule at line 3"}}', status=400)
        stream = API.encode_stream(toolwire.replay(ParsedResponse(texts.pop(0))), model="m")
        return Answer(b"".join(stream), content_type="text/event-stream")

    options = ["--constrain", "auto", "--format", "hermes", "--api", "vllm", "--model", "m", "--root", str(root)]
    with serving(answer) as url:
        assert run(["ask", "How long?", "--base-url", url, *options]) == 0
    shown = capsys.readouterr()
    assert shown.out == "30\n"
    assert ["structured_outputs" in body for body in bodies] == ([True, True] if takes else [True, False, False])
    refusal = "the server refused the grammar, so the answer is not constrained"
    assert (refusal in shown.err, "bad rule at line 3" in shown.err) == (not takes, not takes)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--api", "vllm", "--model", "m"], "calls in the text in one wire format"),
        (["--api", "groq", "--model", "m", "-f", "hermes"], "field for grammars is known"),
        (["--api", "vllm", "--model", "m", "-f", "coach"], "one wire format"),
        (["--config", "x.toml"], "--config, whose profiles have a key"),
    ],
)
def test_a_constraint_without_effect_is_refused(
    options: list[str], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "k")
    assert run(["ask", "x", "--constrain", "auto", *options]) == 2
    assert why in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("switch", "said"), [("", [1, 0]), ("on", [1, 0]), ("off", [0, 0])])
def test_the_first_run_says_where_runs_are_recorded(
    switch: str,
    said: list[int],
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("TOOLWIRE_STATE", str(state))
    monkeypatch.setenv("TOOLWIRE_RECORD", switch)
    counts: list[int] = []
    for _ in said:
        with scripted(ParsedResponse("30")) as model:
            run(["ask", "How long?", "--root", str(root), *model.options])
        flush()
        errors = capsys.readouterr().err.replace("\n", "")
        counts.append(errors.count(f"runs are recorded in {state / 'turns.db'}"))
        assert errors.count("TOOLWIRE_RECORD=off switches this off") == counts[-1]
    assert counts == said


@pytest.mark.need(26)
def test_a_format_is_written_into_the_text(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = toolwire.render_calls([READ], format="hermes")
    with scripted(ParsedResponse(call), ParsedResponse("30")) as model:
        assert run(["ask", "How long?", "--root", str(root), "-f", "hermes", *model.options]) == 0
    assert "tools" not in model.asked[0]
    assert "<tool_call>" in model.said(0)[0]
    assert "line 30" in model.said(1)[-1]
    assert capsys.readouterr().out == "30\n"


@pytest.mark.need(38)
def test_a_trace_leaves_nothing_out(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = ToolCall("write_file", {"path": "a.txt", "content": ""}, "c2")
    first = ParsedResponse("", tool_calls=(READ, unknown), usage=Usage(100, 20))
    with scripted(first, ParsedResponse("30")) as model:
        run(["ask", "How long?", "--root", str(root), "--trace", *model.options])
    shown = capsys.readouterr().err
    for part in (
        "tier    RUN: this agent offers all its tools",
        "round   1",
        "raw     ",
        "usage   100 tokens read",
        "line 30",
        "decided ",
        "all     2 rounds",
    ):
        assert part in shown


@pytest.mark.mission("C41")
def test_changes_are_asked_about(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["ask", "Write b.txt.", "--root", str(root), "--tier", "run"]
    with scripted(calling(WRITE), ParsedResponse("I could not.")) as model:
        assert run([*options, *model.options]) == 0
    shown = capsys.readouterr().err
    assert "what it would do" in shown
    assert shown.index("call    write_file") < shown.index("tool    write_file"), "the call stands before the question"
    assert "nobody is at the terminal" in shown
    assert not (root / "b.txt").exists()
    with scripted(calling(WRITE), ParsedResponse("Done.")) as model:
        assert run([*options, "--yes", *model.options]) == 0
    assert (root / "b.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    ("task", "options", "number"),
    [
        ("Where is it?", ["--tier", "crawl"], 1),
        ("Where is it?", ["--tier", "walk"], 3),
        ("Where is it?", ["--tier", "run"], 6),
        ("Where is it?", [], 6),
        ("Where is it?", ["--gate", "intent"], 3),
        ("Delete a.txt.", ["--gate", "intent"], 6),
        ("Delete a.txt.", ["--gate", "intent", "--tier", "walk"], 3),
    ],
)
def test_tier_and_gate_say_which_tools_there_are(task: str, options: list[str], number: int, root: Path) -> None:
    with scripted(ParsedResponse("yes")) as model:
        run(["ask", task, "--root", str(root), *options, *model.options])
        assert len(model.asked[0]["tools"]) == number


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--gate", "words"], "--gate is intent"), (["--gate", "intent", "--config", "x.toml"], "cannot be combined")],
)
def test_gate_that_cannot_be_used_is_named(
    options: list[str], message: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted(ParsedResponse("yes")) as model:
        more = [] if "--config" in options else model.options
        assert run(["ask", "Where?", "--root", str(root), *options, *more]) == 2
    assert message in capsys.readouterr().err


def test_a_policy_denies(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[policy.rules]]\neffect = "deny"\ntool = "read_file"\nreason = "Not today."\n')
    with scripted(calling(READ), ParsedResponse("I may not.")) as model:
        run(["ask", "Read it.", "--root", str(root), "--policy", str(rules), *model.options])
    assert "Not today." in capsys.readouterr().err


def test_events_as_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(calling(READ), ParsedResponse("30")) as model:
        assert run(["ask", "How long?", "--root", str(root), "--json", *model.options]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds[:2] == ["task", "turn"]
    assert kinds[-1] == "end"
    assert {"call_start", "arguments", "call_end", "call", "result", "content", "finish"} <= set(kinds)
    (result,) = (event for event in events if event["event"] == "result")
    assert result["result"]["success"]
    assert (events[-1]["reason"], events[-1]["answer"], events[-1]["calls"]) == ("answered", "30", 1)


@pytest.mark.mission("C40")
def test_tools_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(
        'import toolwire\n\n\n@toolwire.tool\ndef double(n: int) -> int:\n    """Twice."""\n    return 2 * n\n'
    )
    with scripted(calling(ToolCall("double", {"n": 21}, "1")), ParsedResponse("42")) as model:
        assert (
            run(["ask", "Twice 21?", "--tools", str(tmp_path / "own.py"), "--require-tool-call", *model.options]) == 0
        )
    assert "result  42" in capsys.readouterr().err


def test_what_rests_on_nothing_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(ParsedResponse("I guess.")) as model:
        assert run(["ask", "How long?", "--root", str(root), *model.options]) == 0
        assert "is not based on any file or lookup" in capsys.readouterr().err
        assert run(["ask", "How long?", "--root", str(root), "--require-tool-call", *model.options]) == 1
        assert "no tool was run, and --require-tool-call asks for one" in capsys.readouterr().err
        assert run(["ask", "How long?", *model.options]) == 0
        assert "cannot look anything up\n" in capsys.readouterr().err
        assert run(["ask", "How long?", "--constrain", "required", *model.options]) == 0
        assert "cannot look anything up, and --constrain has no effect" in capsys.readouterr().err


def test_a_required_call_has_to_succeed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = ToolCall("read_file", {"path": "gone.txt"}, "c1")
    with scripted(calling(missing), ParsedResponse("30")) as model:
        assert run(["ask", "How long?", "--root", str(root), "--require-tool-call", *model.options]) == 1
    shown = capsys.readouterr()
    assert shown.out == "30\n", "the answer is shown all the same"
    assert "no tool call succeeded (1 failed or were denied), and --require-tool-call asks for one" in shown.err
    with scripted(calling(missing), ParsedResponse("30")) as model:
        assert run(["ask", "How long?", "--root", str(root), *model.options]) == 0
    assert "(1 failed or were denied), so the answer is not based on" in capsys.readouterr().err


def test_a_call_that_the_agent_requires_is_missed_in_the_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "toolwire.toml"
    with scripted(ParsedResponse("I guess."), ParsedResponse("30, I guess.")) as model:
        path.write_text(
            f'[profiles.p]\nmodel = "m"\nurl = "{model.url}"\n\n[agents.a]\nrequire_tool_call = true\n'
            'tools = { builtin = ["."] }\nbudget = { rounds = 2 }\n'
        )
        assert run(["ask", "How long?", "--config", str(path)]) == 1
    assert "no tool was run, and the agent's require_tool_call asks for one" in capsys.readouterr().err


def test_a_call_that_ends_the_turn_is_a_required_call(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        'import toolwire\n\n\n@toolwire.tool(ends_turn=True)\ndef done(text: str) -> str:\n    """End."""\n'
        "    return text\n"
    )
    options = ["ask", "Well?", "--tools", str(tmp_path / "own.py")]
    with scripted(calling(ToolCall("done", {"text": "yes"}, "1"))) as model:
        assert run([*options, *model.options]) == 0
        assert run([*options, "--require-tool-call", *model.options]) == 0, "its result is the answer"


@pytest.mark.mission("C41")
def test_an_end_without_an_answer_is_status_1(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["ask", "Read.", "--root", str(root), "--max-rounds", "2"]
    with scripted(calling(READ), ParsedResponse("as far as I know")) as model:
        assert run([*options, *model.options]) == 1
        shown = capsys.readouterr()
        assert shown.out == "as far as I know\n"
        assert "ended   budget: the budget of 2 rounds is used up" in shown.err


def test_an_agent_and_a_team_of_a_file(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted(
        calling(ToolCall("reader", {"task": "read a.txt"}, "1")),
        calling(READ),
        ParsedResponse("30 lines"),
        ParsedResponse("It has 30 lines."),
    ) as model:
        path = root / "toolwire.toml"
        path.write_text(
            f'[profiles.p]\nmodel = "m"\nurl = "{model.url}"\n\n[agents.lead]\n\n[agents.reader]\ntier = "walk"\n'
            'tools = { builtin = ["."] }\n\n[teams.office]\ncoordinator = "lead"\nmembers = { reader = "Reads." }\n'
        )
        assert run(["ask", "How long?", "--config", str(path)]) == 0
        shown = capsys.readouterr()
        assert shown.out == "It has 30 lines.\n"
        assert 'reader  calls read_file {"path": "a.txt"}' in shown.err
    with scripted(calling(READ), ParsedResponse("30")) as model:
        text = path.read_text()
        start = text.index("http")
        path.write_text(text[:start] + model.url + text[text.index('"', start) :])
        assert run(["ask", "How long?", "--config", str(path), "--agent", "reader"]) == 0
        assert capsys.readouterr().out == "30\n"
        assert run(["ask", "How long?", "--config", str(path), "--agent", "nobody"]) == 2
        assert "there is no agent 'nobody'; there are lead, reader" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--agent", "x"], "--agent needs --config"),
        (["--config", "x.toml", "--model", "m"], "--model cannot be combined with --config"),
        (["--tier", "fly"], "unknown tier 'fly'; the tiers are crawl, walk, run"),
        (["--tier", "wlk"], "unknown tier 'wlk'; did you mean walk?"),
        (["--config", "gone.toml"], "No such file or directory (`toolwire init gone.toml` writes one)"),
        (["--session", ""], "a conversation cannot be called ''"),
        (["--tools", "missing.py"], "no Python file is there"),
        (["--api", "nobody", "--model", "m"], "nobody"),
    ],
)
def test_options_that_cannot_be_meant(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = [] if "--model" in options or "--config" in options else ["--base-url", "http://127.0.0.1:9", "--model", "m"]
    assert run(["ask", "x", *options, *more]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "keys", [{}, {"ANTHROPIC_API_KEY": "x"}, {"OPENAI_API_KEY": "x", "GOOGLE_API_KEY": "y", "MISTRAL_API_KEY": "z"}]
)
@pytest.mark.parametrize("weights", [False, True])
def test_init_writes_what_can_be_loaded(
    keys: dict[str, str],
    weights: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from toolwire.client.endpoints import ENDPOINTS
    from toolwire.models.local.weights import WEIGHTS

    for name in {name for endpoint in ENDPOINTS.values() for name in endpoint.key}:
        monkeypatch.delenv(name, raising=False)
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TOOLWIRE_CACHE", str(tmp_path))
    monkeypatch.setattr("toolwire.cli.init_command.OLLAMA", ("127.0.0.1", 1))
    if weights:
        (tmp_path / WEIGHTS["0.5b"].filename).touch()
    path = tmp_path / "toolwire.toml"
    assert run(["init", str(path), "--json"]) == 0
    found = [one["name"] for one in json.loads(capsys.readouterr().out)["profiles"]]
    assert found == [
        *(["anthropic"] if "ANTHROPIC_API_KEY" in keys else []),
        *(["openai", "gemini", "mistral"] if len(keys) > 1 else []),
        *(["local"] if weights else []),
    ]
    made = load_configuration(path)
    assert list(made.profiles) == (found or ["local"])
    assert made.agents["reader"].profile == (found[0] if found else "local")
    assert set(made.agents) == {"reader", "editor"}
    assert "x" not in [line.partition("=")[2] for line in path.read_text().splitlines()]
    assert run(["init", str(path)]) == 1
    assert "--force replaces it" in capsys.readouterr().err
    assert run(["init", str(path), "--force"]) == 0
    whole = "\n".join(
        line.removeprefix("# ") if line.startswith("# ") and ("=" in line or line.startswith("# [")) else line
        for line in path.read_text().splitlines()
    )
    path.write_text(whole)
    assert "office" in load_configuration(path).teams, "what is commented out can be used as it is"


def test_init_finds_ollama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.integration.servers import Answer, serving

    with serving(lambda _: Answer(b'{"models": [{"name": "qwen3:8b"}, {"name": "b"}]}'), get=True) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        monkeypatch.setattr("toolwire.cli.init_command.OLLAMA", (host, int(port)))
        assert run(["init", str(tmp_path / "a.toml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["profiles"]
    assert ("ollama", "qwen3:8b") in [(one["name"], one["model"]) for one in found]


def test_the_file_of_init_works(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr("toolwire.cli.init_command.OLLAMA", ("127.0.0.1", 1))
    path = root / "toolwire.toml"
    assert run(["init", str(path)]) == 0
    (root / "secret.env").write_text("KEY=1\n")
    secret = ToolCall("read_file", {"path": "secret.env"}, "c2")
    with scripted(calling(READ, secret), ParsedResponse("30")) as model:
        text = path.read_text()
        path.write_text(text.replace('model = "gpt-5-mini"', f'model = "gpt-5-mini"\nurl = "{model.url}"'))
        assert run(["ask", "How long?", "--config", str(path), "--agent", "reader"]) == 0
    shown = capsys.readouterr()
    assert shown.out.endswith("30\n")
    assert "Files with secrets are not for models." in shown.err
    assert "result  read_file: line 1" in shown.err


PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def test_attached_files_are_parts_of_the_question(root: Path) -> None:
    (root / "a.png").write_bytes(PNG)
    (root / "a.pdf").write_bytes(b"%PDF-1.4")
    options = ["--attach", str(root / "a.png"), "--attach", str(root / "a.pdf"), "--attach", "https://x.test/b.jpg?c=1"]
    with scripted(ParsedResponse("A cat.")) as model:
        assert run(["ask", "What is it?", *options, *model.options]) == 0
    parts = model.asked[0]["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "file", "image_url"]
    assert parts[2]["file"]["filename"] == "a.pdf"
    assert parts[3]["image_url"]["url"] == "https://x.test/b.jpg?c=1"


def test_an_answer_about_an_attached_file_is_based_on_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "a.png").write_bytes(PNG)
    for options, warned in ([], True), (["--attach", str(root / "a.png")], False):
        with scripted(ParsedResponse("A cat.")) as model:
            assert run(["ask", "What is it?", "--root", str(root), *options, *model.options]) == 0
        assert ("the answer is not based on" in capsys.readouterr().err) == warned


@pytest.mark.parametrize(
    ("model", "others", "expected"),
    [
        ("openai:gpt-5-mini", {}, ("openai", "gpt-5-mini")),
        ("anthropic:claude-sonnet-4-5", {}, ("anthropic", "claude-sonnet-4-5")),
        ("ollama:qwen3:8b", {}, ("ollama", "qwen3:8b")),
        ("qwen3:8b", {"api": "ollama"}, ("ollama", "qwen3:8b")),
        ("openai:gpt-5-mini", {"base_url": "http://127.0.0.1:9"}, (None, "openai:gpt-5-mini")),
        ("hf:owner/repository/file.gguf", {}, (None, "hf:owner/repository/file.gguf")),
    ],
)
def test_model_may_name_its_provider(model: str, others: dict[str, str], expected: tuple[str | None, str]) -> None:
    options = AgentOptions(model=model, **others).validate()
    assert (options.api, options.model) == expected


@pytest.mark.parametrize("model", ["openai:", "nobody:gpt-5", ":x"])
def test_model_without_a_known_provider_is_no_model(model: str) -> None:
    with pytest.raises(CliError, match=f"unknown model '{model}'"):
        AgentOptions(model=model).validate()


def test_a_file_that_the_model_does_not_take_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "a.mkv").write_bytes(bytes(8))
    with scripted(ParsedResponse("I see nothing.")) as model:
        assert run(["ask", "What is it?", "--attach", str(root / "a.mkv"), *model.options]) == 0
    assert "note    dropped video a.mkv: openai_chat takes no video here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gone.pdf", "gone.pdf: No such file or directory"),
        ("gone.xyz", "gone.xyz: No such file or directory"),
        ("a.xyz", "a.xyz: its suffix shows no media type; known are aac, avi,"),
        ("folder.pdf", "folder.pdf: Is a directory"),
        ("folder", "folder: Is a directory"),
        ("empty.pdf", "empty.pdf is empty, so there is nothing to attach"),
        ("large.pdf", "large.pdf has 20,000,001 bytes; at most 20,000,000 can be attached"),
        ("https://x.test/file", "https://x.test/file: its suffix shows no media type"),
    ],
)
def test_a_file_that_cannot_be_attached_is_bad_input(
    source: str, message: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    (root / "a.xyz").touch()
    (root / "empty.pdf").touch()
    (root / "folder.pdf").mkdir()
    (root / "folder").mkdir()
    with (root / "large.pdf").open("wb") as file:
        file.truncate(20_000_001)
    with scripted(ParsedResponse("x")) as model:
        assert run(["ask", "What is it?", "--attach", source, *model.options]) == 2
        assert not model.asked
    assert message in capsys.readouterr().err


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_session_is_continued_listed_and_deleted(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "list"]) == 0
    assert "No sessions." in capsys.readouterr().err
    with scripted(ParsedResponse("Hello Ada."), ParsedResponse("Ada.")) as model:
        assert run(["ask", "I am Ada.", "--session", "ada", *model.options]) == 0
        assert run(["ask", "Who am I?", "--session", "ada", *model.options]) == 0
    assert [message["content"] for message in model.asked[1]["messages"]] == ["I am Ada.", "Hello Ada.", "Who am I?"]
    assert [oct(path.stat().st_mode & 0o777) for path in state.glob("conversations.sqlite3*")] == ["0o600"]
    capsys.readouterr()
    assert run(["sessions", "list"]) == 0
    assert capsys.readouterr().out.split("\t")[:2] == ["ada", "4"]
    assert run(["sessions", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["messages"] == 4
    assert run(["sessions", "delete", "adaa"]) == 1
    assert "there is no conversation 'adaa'; did you mean ada?" in capsys.readouterr().err
    assert run(["sessions", "delete", "ada"]) == 0
    assert run(["sessions", "list", "--json"]) == 0
    assert capsys.readouterr().out == ""


def test_a_session_that_waits_for_approvals_is_left_alone(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = ConversationStore().open("ada")
    conversation.save((), pending=PendingApprovals.from_json((FOLDER / "pending_v1.json").read_text()))
    with scripted(ParsedResponse("Hello.")) as model:
        assert run(["ask", "Hi", "--session", "ada", *model.options]) == 2
        assert not model.asked
    assert "a run in the session ada waits for approvals" in capsys.readouterr().err
