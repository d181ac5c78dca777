"""`toolwire check` while it runs: results appear as probes end, on a terminal, in a pipe and as JSON."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.integration.planted_faults import FAULTS
from tests.integration.probed_server import KEY, Fault, probed
from tests.integration.servers import Answer, Asked

CHECK = (sys.executable, "-m", "toolwire", "check", "--key-env", "TEST_KEY", "--only")


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TEST_KEY": KEY, "TERM": "xterm", "COLUMNS": "90", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)


def run_at_terminal(*arguments: str, in_pipe: bool = False) -> tuple[str, str]:
    """Return what a command writes to a terminal, and what it writes to a pipe."""
    main, terminal = pty.openpty()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE if in_pipe else terminal, stderr=terminal) as process:
        os.close(terminal)
        shown: list[bytes] = []

        def read() -> None:
            with suppress(OSError):  # the other end is closed
                while data := os.read(main, 4096):
                    shown.append(data)

        reader = threading.Thread(target=read)
        reader.start()
        piped = process.stdout.read() if process.stdout else b""
        process.wait()
        reader.join()
    os.close(main)
    return b"".join(shown).decode(), piped.decode()


def test_a_terminal_shows_each_row_and_the_name_of_the_next_probe() -> None:
    with probed("openai_chat", FAULTS["a call stays in the text"]) as url:
        shown, _ = run_at_terminal(*CHECK, "calls", url)
    places = [shown.index(text) for text in ("failed     calls  one-call", "1 of 11 probes: streamed-call", "0 passed")]
    assert places == sorted(places)
    # A long reason is folded, and not cut off at the edge.
    assert "set its parser of tool" in " ".join(shown.split())
    assert shown.count("rule or reason") == 1


def test_lines_for_a_program_are_not_mixed_with_the_progress() -> None:
    with probed("openai_chat") as url:
        shown, lines = run_at_terminal(*CHECK, "calls", "--json", url, in_pipe=True)
    *results, counts = map(json.loads, lines.splitlines())
    assert [result["probe"] for result in results][:2] == ["one-call", "streamed-call"]
    assert sum(counts.values()) == len(results) == 11
    assert "11 of 11 probes" in shown and "one-call" in shown
    assert '"probe"' not in shown


def test_a_pipe_gets_each_row_when_its_probe_ends() -> None:
    goes_on = threading.Event()
    asked: list[Asked] = []

    def reply(answer: Answer, request: Asked) -> Answer:
        asked.append(request)
        if len(asked) > 1:
            goes_on.wait(30)
        return answer

    with probed("openai_chat", Fault(reply=reply)) as url:
        command = (*CHECK, "plain-answer", "--only", "streamed-answer", url, "--model", "m")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            is_running = process.poll() is None
            goes_on.set()
            rest = process.stdout.read()
    assert first.startswith("passed\tanswers\tplain-answer\t")
    assert is_running
    assert rest.splitlines()[-1] == "2 passed, 0 failed, 0 not shown"


def test_an_interruption_writes_the_results_so_far(tmp_path: Path) -> None:
    is_asked_again, goes_on = threading.Event(), threading.Event()
    asked: list[Asked] = []

    def reply(answer: Answer, request: Asked) -> Answer:
        asked.append(request)
        if len(asked) > 1:
            is_asked_again.set()
            goes_on.wait(30)
        return answer

    report, junit = tmp_path / "check.json", tmp_path / "check.xml"
    files = ("--report", str(report), "--junit", str(junit))
    with probed("openai_chat", Fault(reply=reply)) as url:
        command = (*CHECK, "plain-answer", "--only", "streamed-answer", url, "--model", "m", *files)
        # In a session of its own, as at a terminal: the background of a shell may ignore the signal.
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            assert is_asked_again.wait(30)
            process.send_signal(signal.SIGINT)
            shown, errors = process.communicate(timeout=30)
            goes_on.set()
    assert process.returncode == 130
    assert shown.splitlines()[0].startswith("passed\tanswers\tplain-answer\t")
    assert errors == "toolwire: the check was interrupted with 1 of 2 probes left\n"
    written = json.loads(report.read_text("utf-8"))
    assert [(result["status"], result["reason"]) for result in written["results"]] == [
        ("passed", ""),
        ("not shown", "the check was interrupted"),
    ]
    assert len(written["exchanges"]) == 1
    cases = ElementTree.parse(junit).getroot().iter("testcase")
    assert [case.find("skipped") is None for case in cases] == [True, False]
