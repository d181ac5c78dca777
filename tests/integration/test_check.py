"""`toolwire check --smoke` against servers of each API on loopback: healthy ones, and ones with a planted fault."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.probed_server import FAULTS, KEY, probed
from tests.integration.servers import Answer, serving

from toolwire.cli import run
from toolwire.cli.check_command import PROBES

APIS = (
    *("openai_chat", "openai_compatible", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse"),
    *("mistral", "cohere", "ollama", "groq", "vllm"),
)
SKIPPED = {
    "gemini": {"call-ids"},
    "ollama": {"call-ids", "named-choice"},
    "cohere": {"named-choice"},
    "bedrock_converse": {"wrong-key"},
}
"""Probes that do not apply to an API."""


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, Any]], dict[str, int]]:
    """Return the exit status, the results by the probe's id, and the counts."""
    status = run(["check", "--json", "--smoke", *arguments])
    *lines, last = capsys.readouterr().out.splitlines()
    results = [json.loads(line) for line in lines]
    return status, {result["probe"]: result for result in results}, json.loads(last)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_KEY", KEY)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)


@pytest.mark.parametrize("api", APIS)
def test_a_healthy_server_passes(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    with probed(api) as url:
        status, results, counts = check(
            capsys, "--api", api, "--model", "m", "--base-url", url, "--key-env", "TEST_KEY"
        )
    reasons = {name: result["reason"] for name, result in results.items() if result["status"] == "failed"}
    assert (status, reasons) == (0, {})
    assert {name for name, result in results.items() if result["status"] == "skipped"} == SKIPPED.get(api, set())
    assert list(results) == [probe.id for probe in PROBES if probe.smoke]
    assert counts["passed"] == len(results) - counts["skipped"]


@pytest.mark.need(39)
@pytest.mark.parametrize("fault", [fault for fault, probe in FAULTS.items() if probe])
def test_a_planted_fault_is_found(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_chat", fault) as url:
        status, results, _ = check(
            capsys, "--api", "openai_chat", "--model", "m", "--base-url", url, "--key-env", "TEST_KEY"
        )
    assert status == 1
    result = results[FAULTS[fault]]
    assert result["status"] == "failed", results
    assert result["reason"]
    assert KEY not in json.dumps(results)


OF_CHAT = {"ids are missing", "arguments are cut"}
"""Faults that are planted in the bytes of Chat Completions."""


@pytest.mark.parametrize(
    ("fault", "api"),
    list(
        zip(
            (fault for fault, probe in FAULTS.items() if probe and fault not in OF_CHAT),
            itertools.cycle(("anthropic_messages", "openai_responses", "mistral")),
        )
    ),
)
def test_a_planted_fault_is_found_in_other_apis(fault: str, api: str, capsys: pytest.CaptureFixture[str]) -> None:
    probe = FAULTS[fault]
    with probed(api, fault) as url:
        arguments = ("--api", api, "--model", "m", "--base-url", url, "--key-env", "TEST_KEY", "--only", str(probe))
        status, results, _ = check(capsys, *arguments)
    assert (status, results[str(probe)]["status"]) == (1, "failed")


def test_a_profile_of_a_file_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with probed("anthropic_messages") as url:
        (tmp_path / "own.toml").write_text(
            f'[profiles.fast]\nprovider = "anthropic"\nmodel = "m"\nurl = "{url}"\nkey_env = "TEST_KEY"\n'
        )
        assert run(["check", "fast", "--config", "own.toml", "--smoke", "--only", "one-call"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "passed  one-call: A call has the name and the arguments that were asked for.",
        "        1 passed, 0 failed, 0 skipped",
    ]
    assert run(["check", "fats", "--config", "own.toml"]) == 2
    assert "own.toml has no profile 'fats'; did you mean fast?" in capsys.readouterr().err


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_key_that_the_server_quotes_is_not_shown(form: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    message = {"role": "assistant", "content": f"Your key is {KEY}."}
    body = {"object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message}]}
    with serving(lambda _: Answer(json.dumps(body).encode())) as url:
        options = ("--base-url", url, "--model", "m", "--key-env", "TEST_KEY", "--only", "plain-answer")
        assert run(["check", *options, *form]) == 1
    output = capsys.readouterr().out
    assert "Your key is" in output
    assert KEY not in output


def test_a_missing_key_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert run(["check", "--api", "openai", "--model", "gpt-5-mini", "--smoke"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (
        "toolwire: openai_chat needs a key: set OPENAI_API_KEY in the environment, or pass key= in a program\n"
    )


def test_a_server_that_cannot_be_reached_is_asked_once(capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_chat") as url:
        pass
    (stopped := Path("stopped.toml")).write_text(
        f'[profiles.p]\nmodel = "m"\nurl = "{url}"\nretry = {{ attempts = 1 }}\n'
    )
    status, results, counts = check(capsys, "p", "--config", str(stopped))
    assert (status, counts["failed"], counts["passed"]) == (1, 1, 0)
    assert "cannot be reached" in results["plain-answer"]["reason"]
    assert results["one-call"]["reason"] == "the first request failed"


def test_a_server_without_keys_is_not_asked_with_a_wrong_one(capsys: pytest.CaptureFixture[str]) -> None:
    with probed("openai_chat", "any key is accepted") as url:
        status, results, _ = check(capsys, "--base-url", url, "--model", "m")
    assert status == 0
    assert results["wrong-key"] == {
        "probe": "wrong-key",
        "title": "A wrong key is refused.",
        "status": "skipped",
        "reason": "no key is set for this server",
        "source": "https://platform.openai.com/docs/guides/error-codes",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a profile of --config, or --model with --api or --base-url"),
        (("--api", "openai"), "give a profile of --config, or --model with --api or --base-url"),
        (("p", "--api", "openai", "--model", "m"), "take the place of a profile"),
        (("--api", "opnai", "--model", "m"), "did you mean openai"),
        (("--api", "openai", "--model", "m", "--only", "usages"), "there is no probe 'usages'; did you mean usage?"),
        (("--api", "openai", "--model", "m", "--only", "x"), "there are plain-answer, usage"),
        (("missing", "--config", "none.toml"), "none.toml"),
    ],
)
def test_wrong_usage_says_what_to_do(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_model_of_this_process_has_no_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    Path("toolwire.toml").write_text('[profiles.here]\nmodel = "local:1.5b"\n')
    assert run(["check", "here", "--smoke"]) == 2
    assert "1.5b runs in this process: there is no endpoint to check" in capsys.readouterr().err


def test_probes_have_unique_ids_and_a_source() -> None:
    assert len({probe.id for probe in PROBES}) == len(PROBES)
    assert all(probe.source.startswith("https://") and probe.title.endswith(".") for probe in PROBES)
