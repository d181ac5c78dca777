"""The output of `toolwire profile`."""

from __future__ import annotations

import json

import pytest

from toolwire.cli.profile_command import profile


def test_profile_shows_the_format_to_ask_for_and_measured_forms(capsys: pytest.CaptureFixture[str]) -> None:
    profile("deepseek-coder:6.7b")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "auto"
    assert "In a prompt, ask for: pythonic" in lines
    assert "Asked in a prompt, such models wrote (215 answers with calls):" in lines
    assert "   70.2%  call_list (dialect)" in lines


def test_profile_of_a_trained_model_names_its_format_once(capsys: pytest.CaptureFixture[str]) -> None:
    profile("Qwen/Qwen3-8B")
    assert "ask" not in capsys.readouterr().out.lower()


def test_profile_prints_forms_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    profile("deepseek-coder:6.7b", json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["prompt_format"], shown["answers"]) == ("pythonic", 215)
    assert shown["forms"][0] == {"form": "call_list", "dialect": True, "share": pytest.approx(151 / 215)}
