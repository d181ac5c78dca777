"""`toolwire inspect` as a process: it prints the address of the page, and serves the file to who has the key."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

OWN = Path(__file__).parents[1] / "conformance" / "own.jsonl"


def test_a_file_is_shown_at_the_address_that_is_printed() -> None:
    command = [sys.executable, "-m", "toolwire", "inspect", str(OWN)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"(\d+) requests at (http://127\.0\.0\.1:\d+)/inspector\?key=(\S+)", line)
        assert match is not None, line
        assert int(match[1]) == len(OWN.read_text("utf-8").splitlines())
        rows = urllib.request.Request(f"{match[2]}/inspector/api/rows", headers={"authorization": f"Bearer {match[3]}"})
        with urllib.request.urlopen(rows, timeout=60) as answer:
            assert b"own/hermes" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(f"{match[2]}/inspector/api/rows", timeout=30)
        refused.value.close()
    finally:
        process.terminate()
        process.wait(30)
        if process.stderr is not None:
            process.stderr.close()


def test_a_wrong_file_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("{}\n")
    command = [sys.executable, "-m", "toolwire", "inspect", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2 and "x.jsonl, line 1: this is not an exchange" in result.stderr
