"""The mutation check: which mutants it makes, and who survives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("coverage")
if not hasattr(os, "fork"):
    pytest.skip("mutants run in forked processes", allow_module_level=True)

from scripts.confinement import UNCONFINED
from scripts.mutants import find_mutants

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''
def clamp(value, most=10):
    """Keep a value below a bound."""
    if value < 0:
        return 0
    return min(value, most)


def wrap(value):
    while value > 9:
        value -= 10
    return value


def unused(value):
    return not value
'''
TESTS = """
from tiny.sums import clamp, wrap

def test_clamp():
    assert clamp(-1) == 0
    assert clamp(20) == 10
    assert clamp(5) == 5

def test_wrap():
    assert wrap(23) == 3

def test_that_fails_anyway_kills_nothing():
    assert clamp(1) == wrap(2) == 0
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in {"src/tiny/sums.py": SOURCE, "tests/test_sums.py": TESTS, "src/tiny/__init__.py": ""}.items():
        file = tmp_path / "project" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "project"


def mutate(project: Path, *words: str) -> tuple[int, str]:
    fixed = ("--root", str(project), "--modules", "tiny/sums", "--tests", "tests", "--unconfined", "--jobs", "2")
    command = [sys.executable, "-m", "scripts.mutate", *fixed, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout or done.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a is  not b", {"x = a is b"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = a and b", {"x = a or b"}),
        ("x = not a", {"x = a"}),
        ("x = a + 1", {"x = a - 1", "x = a + 2"}),
        ("x += y", {"x -= y"}),
        ("x = max(a)", {"x = min(a)"}),
        ("x = a[1:b]", {"x = a[:b]", "x = a[1:]", "x = a[2:b]"}),
        ("x = -1", {"x = -2"}),
        ("x = True", {"x = False"}),
        ('x = "word"', {'x = ""'}),
        ("f(x)", {"pass"}),
        ("def f(x=3): g = x", {"def f(x=4): g = x"}),
        ("def f(): return x", {"def f(): return None"}),
        ("for x in y:\n    if x: continue", {"if False: continue", "if not (x): continue", "if x: break"}),
        ("x = 'ä' if y == z else z", {'x = "" if y == z else z', "x = 'ä' if y != z else z"}),
        # what is left alone
        ("x: list[int] = y", set()),
        ("x = Literal['a', 2]", set()),
        ("x = 'a sentence of words'", set()),
        ("x = f'{1 + 2}'", set()),
        ("raise ValueError('bad', 1)", set()),
        ("@cache(1)\ndef f(x: int = y) -> 'int': z = x", set()),
        ("x = 1  # pragma: no mutate", set()),
        ("x = (\n# begin measured\n1, f(2),\n# end measured\n)", set()),
        ("x = 1\n# begin measured\n2\n# end measured\ny = 3", {"x = 2", "y = 4"}),
        ("'docstring'", set()),
        ("x = A | None", set()),
    ],
)  # fmt: skip
def test_mutants_of_a_line(line: str, expected: set[str]) -> None:
    source = line.encode()
    assert {mutant.diff(source)[1] for mutant in find_mutants(source) if mutant.compiles(source)} == expected


def test_survivors_are_told_and_results_are_kept(project: Path) -> None:
    status, output = mutate(project, "--json")
    assert status == 0, output
    (told,) = json.loads(output)["modules"]
    assert told["complete"]
    assert told["mutants"] == told["tried"] == told["killed"] + told["timeout"] + told["survived"] + told["uncovered"]
    survivors = {(one["before"], one["after"], one["status"]) for one in told["survivors"]}
    assert ("if value < 0:", "if value <= 0:", "survived") in survivors
    assert ("return not value", "return value", "uncovered") in survivors
    assert not any("min" in before for before, _, _ in survivors)
    assert told["timeout"], "a loop that does not end is stopped"
    (kept,) = (project / ".mutation" / "results").glob("*.jsonl")
    before = kept.read_bytes()
    assert json.loads(mutate(project, "--json")[1])["modules"] == [told]
    assert kept.read_bytes() == before, "nothing was run again"


LAZY_SOURCE = """
from functools import lru_cache

WIDTHS = {"narrow": 10, "wide": 20}


@lru_cache
def width(name):
    return WIDTHS[name] + 1
"""
LAZY_TESTS = """
def test_that_imports_first():
    from tiny.sums import width
    assert width("wide")

def test_that_notices():
    from tiny.sums import width
    assert (width("narrow"), width("wide")) == (11, 21)
"""


def test_a_mutant_is_noticed_by_later_tests_than_the_one_that_imports_or_fills_a_cache(project: Path) -> None:
    (project / "src/tiny/sums.py").write_text(LAZY_SOURCE)
    (project / "tests/test_sums.py").write_text(LAZY_TESTS)
    status, output = mutate(project, "--json")
    assert status == 0, output
    (told,) = json.loads(output)["modules"]
    assert told["mutants"] == told["killed"] > 5
    assert told["survivors"] == []


def test_a_mutant_of_what_fills_a_dictionary_is_noticed_by_another_file(project: Path) -> None:
    stored = LAZY_SOURCE.replace("from functools import lru_cache", "_known: dict[str, int] = {}")
    stored = stored.replace("@lru_cache\n", "").replace("return WIDTHS", "_known[name] = WIDTHS")
    stored += "    return _known[name]\n"
    stored = stored.replace("    _known[name] =", "    if name not in _known:\n        _known[name] =")
    (project / "src/tiny/sums.py").write_text(stored)
    first, second = LAZY_TESTS.replace('(width("narrow"), width("wide")) == (11, 21)', 'width("wide") == 21').split(
        "\ndef test_that_notices"
    )
    (project / "tests/test_first.py").write_text(first)
    (project / "tests/test_sums.py").write_text(f"def test_that_notices{second}")
    status, output = mutate(project, "--json")
    assert status == 0, output
    (told,) = json.loads(output)["modules"]
    assert [one for one in told["survivors"] if "WIDTHS[name]" in one["before"]] == []


def test_a_mutant_of_what_few_tests_execute_is_noticed_by_others_of_their_file(project: Path) -> None:
    (project / "src/tiny/sums.py").write_text(LAZY_SOURCE)
    fills = LAZY_TESTS.partition("def test_that_notices")[0]
    fills += fills.replace("imports_first", "fills_the_cache").replace('"wide"', '"narrow"')
    notices = 'def test_that_notices():\n    from tiny.sums import width\n    assert width("narrow") == 11\n'
    (project / "tests/test_sums.py").write_text(fills + notices)
    status, output = mutate(project, "--json")
    assert status == 0, output
    (told,) = json.loads(output)["modules"]
    assert [one["before"] for one in told["survivors"]] == ['WIDTHS = {"narrow": 10, "wide": 20}']


def test_mutants_of_the_package_itself_are_noticed() -> None:
    """Pytest loads the package as a plugin, and could so import it without the mutant."""
    command = [sys.executable, "-m", "scripts.mutate", "--modules", "text/identity_cache", "--fresh", "--unconfined"]
    command += ["--tests", "tests/unit/text/test_identity_cache.py", "--jobs", "2", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    (told,) = json.loads(done.stdout)["modules"]
    assert told["module"] == "toolwire/text/identity_cache.py"
    assert told["mutants"] == told["killed"] + told["survived"] + told["uncovered"]
    assert told["killed"] >= 4
    assert "if entry is None:" not in {one["before"] for one in told["survivors"]}


def test_scores_may_only_rise(project: Path) -> None:
    sample = ("--sample", "3", "--seed", "2")
    status, first = mutate(project, *sample, "--record")
    assert status == 0, first
    scores = project / "tests/mutation/scores.json"
    stored = json.loads(scores.read_text())
    assert list(stored["tiny/sums.py"]) == ["3 by seed 2"]
    stored["tiny/sums.py"]["3 by seed 2"] = 2.0
    scores.write_text(json.dumps(stored))
    status, output = mutate(project, *sample, "--record")
    assert status == 1
    assert "The score has fallen: tiny/sums.py" in output
    assert json.loads(scores.read_text()) == stored, "a lower score is never stored"
    assert mutate(project, "--sample", "2", "--seed", "2")[0] == 0, "another sample is not compared"


def test_what_is_not_in_the_table_is_refused(project: Path) -> None:
    status, output = mutate(project, "--modules", "nowhere")
    assert status == 2
    assert "No module" in output


CONFINED = """
import os, pathlib, signal, sys, time
from scripts.confinement import exit_code, fork_confined

{work}

sys.exit(exit_code(os.waitpid(fork_confined(work, [pathlib.Path({inside!r})]), 0)[1]))
"""
WRITES = """
def work():
    pathlib.Path({inside!r}, "file").write_text("")
    try:
        pathlib.Path({outside!r}, "file").write_text("")
    except OSError:
        return 42
    return 0
"""
ORPHAN = """
def work():
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        orphan = os.fork()
        if orphan:
            os.write(writing, str(orphan).encode())
        else:
            time.sleep(300)
        os._exit(0)
    os.waitpid(child, 0)
    orphan = int(os.read(reading, 20))
    os.kill(orphan, 0)
    os.kill(orphan, signal.SIGKILL)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.kill(orphan, 0)
        except ProcessLookupError:
            return 42
    return 0
"""
NUMBER = """
def work():
    if os.path.exists(f"/proc/{os.getpid()}/fd/0") and os.readlink("/proc/self") == str(os.getpid()):
        return 42
    return 0
"""


def confined(work: str, inside: Path) -> int:
    """Return the exit status of a function that runs confined, with one directory to write in."""
    code = CONFINED.format(work=work, inside=str(inside))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True)
    if done.returncode == UNCONFINED:
        pytest.skip("no namespaces can be made here")
    return done.returncode


def test_confined_processes_write_nowhere_else(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    assert confined(WRITES.format(inside=str(inside), outside=str(outside)), inside) == 42
    assert (inside / "file").exists()
    assert not (outside / "file").exists()


def test_a_process_that_its_parent_left_is_collected_as_anywhere(tmp_path: Path) -> None:
    """Tests of what a program leaves behind wait for this, and could not run against mutants otherwise."""
    assert confined(ORPHAN, tmp_path) == 42


def test_numbers_of_processes_are_those_of_the_system() -> None:
    """Tests read in `/proc` whether a process runs; another one of that number would answer for it."""
    status = confined(NUMBER, ROOT / "tests")
    if status == 0:
        pytest.skip("this container lets nobody mount /proc")
    assert status == 42
