"""A stored report as evidence for the coach, and as a source of profiles."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.unit.evaluation.scripted_models import PARIS, TOOL

from toolwire.cli.coach_command import import_report
from toolwire.cli.coach_command import report as coach_report
from toolwire.cli.console import CliError
from toolwire.cli.profile_command import profile
from toolwire.config.tables import load_configuration
from toolwire.errors import ConfigurationError, StateError
from toolwire.evaluation.asked_model import ModelChoice
from toolwire.evaluation.call_scoring import AcceptableCall, ExpectedCalls
from toolwire.evaluation.inspect_tasks import AskedQuestion
from toolwire.evaluation.model_answer import ModelAnswer
from toolwire.evaluation.report import make_report, report_json
from toolwire.evaluation.stored_report import FILE, read_report
from toolwire.evaluation.suite import SuiteQuestion, text_message
from toolwire.telemetry import Archive, Tally
from toolwire.telemetry.imported_evidence import import_evidence
from toolwire.tools import definitions

TOOLS = tuple(definitions([TOOL]).values())
CALLS = ExpectedCalls("calls", (AcceptableCall("get_weather", {"city": ["Paris"]}),))
MARKED = f"<tool_call>{PARIS}</tool_call>"
INVALID = '<tool_call>{"name": "get_weather", "arguments": {"city": 5}}</tool_call>'
UNKNOWN = '<tool_call>{"name": "get_news", "arguments": {}}</tool_call>'


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def asked(text: str, choice: ModelChoice, expected: ExpectedCalls = CALLS, **members: Any) -> AskedQuestion:
    question = SuiteQuestion(f"{text}{expected.rule}", "g", (text_message("user", "Weather?"),), TOOLS, expected)
    answer = ModelAnswer(**{"outcome": "answered", "format": choice.format, "text": text, **members})
    return AskedQuestion(choice, question, answer, {})


def store(folder: Path, *entries: AskedQuestion, suite: str = "mine") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text(json.dumps(report_json(make_report(entries, suite=suite))))
    return folder


HERMES = ModelChoice("0.5b", "hermes")
BARE = ModelChoice("0.5b", "bare_json")
REMOTE = ModelChoice("m", api="openai_chat", url="http://127.0.0.1:1/v1", key_env="KEY")


def test_an_outcome_is_good_by_the_rule_of_recorded_runs(tmp_path: Path) -> None:
    texts = (MARKED, PARIS, INVALID, UNKNOWN, "No.")
    folder = store(tmp_path, *(asked(text, HERMES) for text in texts), asked("No.", HERMES, ExpectedCalls("no_call")))
    assert read_report(folder).evidence() == {"0.5b": [Tally("hermes", tried=5, good=1)]}
    assert read_report(folder / FILE).suite == "mine"


def test_answers_under_a_grammar_are_no_evidence(tmp_path: Path) -> None:
    constrained = ModelChoice("0.5b", "hermes", "auto")
    assert read_report(store(tmp_path, asked(MARKED, constrained))).evidence() == {}


def test_servers_of_one_model_count_together(tmp_path: Path) -> None:
    calls = (("get_weather", {"city": "Paris"}),)
    entries = [asked("", ModelChoice("m", api="openai_chat", url=url), format="", native_calls=calls) for url in "ab"]
    assert read_report(store(tmp_path, *entries)).evidence() == {"m": [Tally("native", tried=2, good=2)]}


def test_the_coach_learns_from_a_report_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from toolwire.telemetry.defaults import standard_archive

    folder = store(tmp_path / "a", *(asked(text, HERMES) for text in (MARKED, "No.")), asked(PARIS, BARE))
    for _ in range(2):
        import_report(folder)
        assert standard_archive().evidence("0.5b") == [Tally("hermes", 2, 1), Tally("bare_json", 1, 1)]
    assert "0.5b in hermes: 2 outcomes, 1 good" in capsys.readouterr().out
    import_report(store(tmp_path / "b", asked(MARKED, HERMES)))  # the same suite, later
    assert standard_archive().evidence("0.5b") == [Tally("bare_json", 1, 1), Tally("hermes", 1, 1)]
    import_report(store(tmp_path / "c", asked(MARKED, HERMES), suite="other"), json=True)
    assert standard_archive().evidence("0.5b", ("hermes",)) == [Tally("hermes", 2, 2)]
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[-1]) == {"model": "0.5b", "format": "hermes", "tried": 1, "good": 1}
    coach_report(json=True)
    assert json.loads(capsys.readouterr().out)["recommended"] in ("hermes", "bare_json")


def test_a_model_without_outcomes_is_named(tmp_path: Path) -> None:
    folder = store(tmp_path, asked(MARKED, HERMES))
    with pytest.raises(CliError, match="has no outcome of 7b"):
        import_report(folder, model="7b")
    with pytest.raises(CliError, match=r"has no model '7b'; it has 0\.5b"):
        profile("7b", report=folder)


def test_the_source_of_evidence_has_a_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs the name of its source"):
        import_evidence(tmp_path / "turns.db", "", {"m": [Tally("hermes")]})
    (tmp_path / "broken.db").write_bytes(b"no database, for sure" * 100)
    with pytest.raises(StateError, match=r"broken\.db"):
        import_evidence(tmp_path / "broken.db", "x", {"m": [Tally("hermes")]})
    import_evidence(tmp_path / "new" / "turns.db", "x", {"m": [Tally("hermes", 3, 2)]})
    assert Archive(tmp_path / "new" / "turns.db").evidence("m") == [Tally("hermes", 3, 2)]


def test_what_is_not_a_report_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name the report, or the directory of an evaluation"):
        read_report(tmp_path)
    (tmp_path / FILE).write_text('{"suite": "s", "columns": [{}]}')
    with pytest.raises(ConfigurationError, match=r"columns\.0\.column.*--rescore"):
        read_report(tmp_path)
    (tmp_path / FILE).write_text("no JSON")
    with pytest.raises(ConfigurationError, match=r"report\.json is not a report of this version \(the file"):
        read_report(tmp_path)


@pytest.mark.parametrize(
    ("choice", "members", "pinned"),
    [
        (HERMES, {}, {"provider": "local", "model": "0.5b", "tools": {"definition_format": "hermes"}}),
        (ModelChoice("0.5b", "hermes", "auto"), {}, {"provider": "local", "model": "0.5b", "constrain": "auto"}),
        (ModelChoice("openai:gpt-5-mini", "hermes"), {}, {"provider": "openai", "model": "gpt-5-mini"}),
        (
            REMOTE,
            {"format": "", "native_calls": (("get_weather", {"city": "Paris"}),)},
            {"provider": "openai_chat", "model": "m", "url": "http://127.0.0.1:1/v1", "key_env": "KEY"},
        ),
    ],
    ids=["local", "grammar", "provider", "server"],
)
def test_the_best_format_becomes_a_profile(
    choice: ModelChoice,
    members: dict[str, Any],
    pinned: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    worse = ModelChoice(choice.model, "pythonic", api=choice.api, url=choice.url, key_env=choice.key_env)
    folder = store(tmp_path, asked(MARKED, choice, **members), asked("No.", worse))
    profile(report=folder)
    out, err = capsys.readouterr()
    table = out[out.index("[profiles.") :]
    (shown,) = tomllib.loads(table)["profiles"].values()
    assert shown.items() >= pinned.items()
    assert "(1 other way may be as good: " in err
    (tmp_path / "toolwire.toml").write_text(table)
    (loaded,) = load_configuration(tmp_path / "toolwire.toml").profiles.values()
    assert loaded.model == pinned["model"]
    profile(report=folder, json=True)
    body = json.loads(capsys.readouterr().out)
    assert body["profile"] == shown
    assert [row["right"] for row in body["formats"]] == [1, 0]


def test_a_template_and_a_report_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="exclude each other"):
        profile(template="x", report=tmp_path)
    with pytest.raises(CliError, match="give the name of a model, --template FILE or --from REPORT"):
        profile()


def test_a_format_without_complete_answers_is_not_the_best(tmp_path: Path) -> None:
    wrong = [asked(text, HERMES) for text in ("No.", "Rain.", "Sun.", "Snow.")]
    late = [asked(text, BARE, outcome="timeout") for text in ("No.", "Rain.", "Sun.", "Snow.")]
    formats = read_report(store(tmp_path, *wrong, *late)).formats()
    assert [measured.right.tally for measured in formats["0.5b"]] == [Tally("hermes", tried=4, good=0)]


def test_one_right_answer_is_no_better_than_half_of_many(tmp_path: Path) -> None:
    folder = store(tmp_path, asked(MARKED, HERMES), asked(MARKED, BARE))
    stored = json.loads((folder / FILE).read_text())
    for column in stored["columns"]:
        if column["column"]["format"] == "bare_json":
            column["right"] = {"count": 5, "total": 10}
    (folder / FILE).write_text(json.dumps(stored))
    formats = read_report(folder).formats()["0.5b"]
    assert [measured.right.tally for measured in formats] == [Tally("bare_json", 10, 5), Tally("hermes", 1, 1)]


def test_the_figures_of_another_prompt_say_nothing_about_agents(tmp_path: Path) -> None:
    other = ModelChoice("0.5b", "hermes", prompt="brief")
    report = read_report(store(tmp_path, asked(MARKED, HERMES), asked("No.", other)))
    assert [measured.right.tally for measured in report.formats()["0.5b"]] == [Tally("hermes", 1, 1)]


def test_a_report_without_answers_pins_no_format(tmp_path: Path) -> None:
    folder = store(tmp_path, asked(MARKED, HERMES))
    stored = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps({**stored, "columns": []}))
    with pytest.raises(CliError, match="has no answer of a model"):
        profile(report=folder)


@pytest.mark.parametrize("counts", [{"count": 5, "total": 3}, {"count": 1, "total": 10**12}])
def test_counts_that_are_no_share_are_not_a_report(tmp_path: Path, counts: dict[str, int]) -> None:
    folder = store(tmp_path, asked(MARKED, HERMES))
    stored = json.loads((folder / FILE).read_text())
    for column in stored["columns"]:
        column["right"] = column["usable"] = counts
    (folder / FILE).write_text(json.dumps(stored))
    with pytest.raises(ConfigurationError, match="not a report of this version"):
        read_report(folder)


@pytest.mark.parametrize("name", ["\N{GRINNING FACE}", "a\x7fb", 'a"b\\c', "\x9b31m"])
def test_any_name_of_a_model_is_pinned_as_toml(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    choice = ModelChoice(name, "hermes", api="openai_chat", url="http://127.0.0.1:1/v1")
    profile(report=store(tmp_path, asked(MARKED, choice)))
    (pinned,) = tomllib.loads("[profiles." + capsys.readouterr().out.split("[profiles.")[1])["profiles"].values()
    assert pinned["model"] == name


def test_one_model_behind_two_servers_has_two_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = ModelChoice("m", api="openai_chat", url="http://127.0.0.1:2/v1")
    native: dict[str, Any] = {"format": "", "native_calls": (("get_weather", {"city": "Paris"}),)}
    profile(report=store(tmp_path, asked("", REMOTE, **native), asked("", elsewhere, **native)))
    tables = "\n".join(line for line in capsys.readouterr().out.splitlines() if line.startswith("[") or " = " in line)
    profiles = tomllib.loads(tables)["profiles"]
    assert [each["url"] for each in profiles.values()] == ["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]
    assert list(profiles) == ["m", "m-2"]
