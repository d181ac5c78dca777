"""Who is shown how much: built in, by a file, by the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwire.envelope.settings import Limits, Settings
from toolwire.errors import ConfigurationError


@pytest.mark.mission("G18")
@pytest.mark.parametrize(
    ("agent", "budget"),
    [
        ("gemini-shell", 900_000), ("claude-dc", 180_000), ("qwen-local", 28_000), ("human-cli", 50_000),
        ("unknown", 16_000), ("nobody-knows", 16_000),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["TE_AGENT_ID", "LLMC_TE_AGENT_ID"])
def test_agents_have_budgets(agent: str, budget: int, name: str, tmp_path: Path) -> None:
    found = Settings.read({name: agent, "XDG_CONFIG_HOME": str(tmp_path)})
    assert (found.agent, found.budget) == (agent, budget)


@pytest.mark.mission("G25")
def test_the_default_settings() -> None:
    found = Settings.read({})
    assert (found.agent, found.session, found.seconds, found.telemetry, found.output_text) == (
        "unknown",
        "",
        30,
        True,
        False,
    )
    assert (found.grep, found.cat) == (Limits(10, 20_000, 5_000), Limits(50, 30_000))
    assert Settings.read({}, human=True).agent == "human-cli"


@pytest.mark.mission("G18")
def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "te.toml"
    file.write_text(
        "[budgets]\nmine = 5000\ndefault = 3000\n[grep]\npreview = 3\n[run]\nseconds = 1.5\n"
        "[handles]\nmegabytes = 1\ndays = 2\n"
        "[telemetry]\nenabled = false\noutput_text = true\n[cat]\ncharacters = 2000\n[find]\nmilliseconds = 10\n"
    )
    environ = {
        "TOOLWIRE_TE_CONFIG": str(file),
        "TE_AGENT_ID": "mine",
        "LLMC_TE_AGENT_ID": "other",
        "LLMC_TE_SESSION_ID": "s",
    }
    found = Settings.read(environ)
    assert (found.agent, found.budget, found.session) == ("mine", 5_000, "s")
    assert (found.grep, found.cat, found.find.milliseconds) == (Limits(3, 20_000), Limits(50, 2_000), 10)
    assert (found.seconds, found.keep_bytes, found.keep_days) == (1.5, 1 << 20, 2)
    assert (found.telemetry, found.output_text) == (False, True)
    assert found.for_agent("new").budget == 3_000
    assert found.for_agent("qwen-local").budget == 28_000
    environ |= {"TE_BUDGET": "2000", "TE_TIMEOUT": "9", "TE_TELEMETRY": "on", "TOOLWIRE_STATE": "there"}
    found = Settings.read(environ)
    assert (found.budget, found.seconds, found.telemetry) == (2_000, 9, True)
    assert found.state_file("handles.db") == "there/handles.db"
    assert Settings.read({"TE_TELEMETRY": "off"}).telemetry is False
    assert Settings.read({"TE_TELEMETRY": "text"}).output_text is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[budget]\na = 1\n", "budget is unknown"),
        ("grep = 3\n", "grep is unknown"),
        ("[grep]\nlines = 3\n", r"grep\.lines is unknown; the keys are preview"),
        ("[grep]\npreview = 0\n", "a positive number"),
        ("[grep]\npreview = true\n", "a positive number"),
        ("[grep]\npreview = 1.5\n", "a positive number"),
        ("[budgets]\nme = '5'\n", "a positive number"),
        ("[telemetry]\nenabled = 1\n", "true or false"),
        ("[grep\n", "te.toml"),
        ("a = '\udcff'\n", "te.toml"),
        (None, "No such file"),
    ],
)
def test_an_invalid_file_is_an_error(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "te.toml"
    if text is not None:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError, match=message):
        Settings.read({"TOOLWIRE_TE_CONFIG": str(file)})


@pytest.mark.parametrize(
    "environ", [{"TE_BUDGET": "999"}, {"TE_BUDGET": "many"}, {"TE_TIMEOUT": "-1"}, {"TE_TIMEOUT": "inf"}]
)
def test_invalid_numbers_are_an_error(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        Settings.read(environ)
