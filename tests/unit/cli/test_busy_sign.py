"""The spinner on standard error, while lines go to standard output."""

from __future__ import annotations

import sys
from io import StringIO

import pytest
from rich.console import Console

from toolwire.cli import busy_sign
from toolwire.cli.busy_sign import BusySign


def test_lines_of_standard_output_pass_the_spinner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = StringIO()
    monkeypatch.setattr(busy_sign, "console", lambda stderr: Console(file=terminal, force_terminal=True, width=80))
    sign = BusySign()
    with sign.counting("probes", ["first", "second"]) as next_probe:
        sys.stdout.write("a line\n")
        next_probe()
    assert capsys.readouterr().out == "a line\n"
    assert "1 of 2 probes: second" in terminal.getvalue() and "a line" not in terminal.getvalue()
