"""The sentences of prompts, as data."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolwire
from toolwire import ConfigurationError, prompt
from toolwire.agent.hooks import ManifestInjector, TurnInfo
from toolwire.evaluation.prompt_files import open_style
from toolwire.tools import ToolDefinition
from toolwire.wire import PROMPT_STYLES, PromptStyle
from toolwire.wire.prompt_styles import DEFAULT_STYLE

TOOL = {
    "name": "f",
    "description": "Do it.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
OWN = PromptStyle("own", "Before tools.", "Before example.", "After example.")


def test_a_style_is_around_the_definitions_and_the_example() -> None:
    text = prompt([TOOL], format="hermes", system="Be brief.", style=OWN)
    parts = text.split("\n\n")
    assert (parts[0], parts[1], parts[3], parts[5]) == (
        "Be brief.",
        "Before tools.",
        "Before example.",
        "After example.",
    )
    assert parts[2] == toolwire.render_definitions([TOOL], format="hermes")
    assert parts[4].startswith("<tool_call>")


@pytest.mark.parametrize("name", PROMPT_STYLES)
def test_each_style_has_a_name_and_no_empty_paragraph(name: str) -> None:
    assert PROMPT_STYLES[name].name == name
    text = prompt([TOOL], format="hermes", style=name)
    assert all(paragraph.strip() for paragraph in text.split("\n\n"))


def test_the_default_is_one_of_the_styles() -> None:
    assert prompt([TOOL], format="hermes") == prompt([TOOL], format="hermes", style=DEFAULT_STYLE)


@pytest.mark.parametrize("text", ["Be brief.", "{{tools}}", "Be brief.\n{{tools}}"])
def test_an_agent_can_use_a_style_of_its_own(text: str) -> None:
    turn = TurnInfo(1, (ToolDefinition(**TOOL),), format="hermes")
    assert all(
        sentence in ManifestInjector(style=OWN)(text, turn) for sentence in (OWN.before_tools, OWN.after_example)
    )
    assert PROMPT_STYLES[DEFAULT_STYLE].after_example in ManifestInjector()(text, turn)


def test_a_wrong_style_is_named() -> None:
    with pytest.raises(ConfigurationError, match="there is no prompt style 'breif'; did you mean brief"):
        prompt([TOOL], format="hermes", style="breif")
    with pytest.raises(TypeError, match="style must be the name of a style, or a PromptStyle"):
        prompt([TOOL], format="hermes", style=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="after_example must be text"):
        PromptStyle("own", "a", "b", None)  # type: ignore[arg-type]


def test_a_style_of_your_own_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'before_tools = "Before tools."\nbefore_example = "Before example."\nafter_example = "After example."'
    )
    assert open_style(str(file)) == OWN
    assert open_style("brief") is PROMPT_STYLES["brief"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('before_tools = "a"', r"own\.toml: before_example: this key is missing"),
        ('before_tools = "a"\nbefore_example = 5', r"own\.toml: before_example: Input should be a valid string"),
        ('before_tools = "a"\nbefore_example = "b"\nrules = "c"', r"own\.toml: rules: there is no such key"),
        ("before_tools = ", r"own\.toml"),
    ],
)
def test_a_file_that_is_no_style_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=reason):
        open_style(str(tmp_path / "own.toml"))


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.toml"):
        open_style(str(tmp_path / "missing.toml"))
