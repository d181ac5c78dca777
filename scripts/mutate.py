"""Mutation testing: change a module in one small place, run the tests that execute the place, and count who notices.

Each mutant runs in a process of its own, forked from one that has imported pytest, Hypothesis and the third-party
packages but none of the project, so that the mutated module is the only one of its name that is ever imported. First
all tests of an area run once under coverage, which tells which tests execute which line. All these processes can write
only into a temporary directory, because a mutated policy may let a hostile test do what it tries.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import functools
import gc
import hashlib
import importlib
import importlib.util
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import coverage
import hypothesis
import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from scripts.confinement import UNCONFINED, exit_code, fork_confined
from scripts.mutants import Mutant, find_mutants


class Area(NamedTuple):
    """Modules, as globs below `src`, and the tests of them; what comes first is tried first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "policy": Area(
        ("toolwire/policy/*.py",),
        (
            *("tests/unit/policy", "tests/property/test_policy.py", "tests/mission/test_asked.py"),
            *("tests/security/test_approval.py", "tests/security/test_command_rules.py"),
            "tests/unit/test_wrong_types.py",
        ),
    ),
    "runtime": Area(
        ("toolwire/runtime/allowed_roots.py",),
        (
            *("tests/unit/runtime/test_allowed_roots.py", "tests/unit/builtin"),
            *("tests/security/test_path_guard.py", "tests/security/test_execution.py"),
        ),
    ),
    "programs": Area(
        ("toolwire/runtime/process*.py", "toolwire/runtime/start_gate.py"),
        tuple(
            f"tests/unit/runtime/test_{name}.py" for name in ("start_gate", "processes", "process_groups", "watcher")
        ),
    ),
    "files": Area(
        tuple(
            f"toolwire/runtime/{name}.py"
            for name in ("attachments", "directory_descriptors", "file_digests", "launched_files", "state_dir")
        ),
        (
            *("tests/unit/runtime/test_attachments.py", "tests/unit/runtime/test_directory_descriptors.py"),
            *("tests/unit/runtime/test_file_digests.py", "tests/unit/runtime/test_state_dir.py"),
            *("tests/unit/runtime/test_code_digests.py", "tests/unit/mcp/test_launched_files.py"),
            "tests/unit/agent/test_task_parts.py",
        ),
    ),
    "servers": Area(
        ("toolwire/runtime/local_http.py",),
        ("tests/unit/runtime/test_local_http.py", "tests/unit/gateway/test_serving.py"),
    ),
    "execution": Area(
        ("toolwire/execution/*.py",),
        (
            *("tests/unit/execution", "tests/mission/test_asked.py", "tests/mission/test_defaults.py"),
            *("tests/security/test_calls.py", "tests/security/test_execution.py"),
            "tests/unit/test_wrong_types.py",
        ),
    ),
    "schema": Area(
        ("toolwire/schema/*.py",),
        ("tests/unit/schema", "tests/unit/test_tools.py", "tests/unit/wire", "tests/conformance"),
    ),
    "redaction": Area(
        ("toolwire/text/redaction.py", "toolwire/text/secret_shapes.py"),
        ("tests/unit/text/test_redaction.py", "tests/unit/text/test_secret_shapes.py"),
    ),
    "text": Area(
        ("toolwire/text/*.py",),
        ("tests/unit/text", "tests/unit/wire", "tests/conformance"),
    ),
    "wire": Area(
        ("toolwire/wire/*.py",),
        ("tests/unit/wire", "tests/conformance", "tests/property/test_round_trip.py"),
    ),
    "providers": Area(
        ("toolwire/providers/*.py",),
        ("tests/unit/providers", "tests/conformance/test_recorded.py", "tests/unit/test_wrong_types.py"),
    ),
    "budget": Area(
        ("toolwire/agent/budget.py",),
        ("tests/unit/agent/test_budget.py", "tests/unit/agent/test_answer_queue.py"),
    ),
}
"""What is mutated by default; `*` does not go below a directory. A module belongs to the first area that names it, and
one that moves changes a line here, if at all.

Tests that take minutes under coverage, as most of `tests/property` do, cost more time than they find mutants.
"""

SCORES = "tests/mutation/scores.json"
STATE = ".mutation"
EXAMPLES = """examples:
  scripts/mutate --sample 30                       # 30 mutants of each module in the table, always the same ones
  scripts/mutate --modules policy/hosts            # all mutants of one module
  scripts/mutate --modules 'wire/*' --seconds 600  # stop after ten minutes; the next run continues
  scripts/mutate --modules policy --sample 30 --record   # store scores that have risen in tests/mutation/scores.json
  scripts/mutate --modules text/tokens --tests tests/unit/text/test_tokens.py --json

Results are kept in .mutation/ until the module or a test of its area changes. To accept a mutant that no test can
notice, end its line with `# pragma: no mutate` and say why.
"""
SURVIVED, KILLED, TIMEOUT, CRASHED, UNCOVERED = "survived", "killed", "timeout", "crashed", "uncovered"
_STATUS = {0: SURVIVED, 1: KILLED, 128 + signal.SIGXCPU: TIMEOUT, 128 + signal.SIGPROF: TIMEOUT}
_MEMORY = 8 * 2**30
_FEW = 20
"""Number of tests up to which all tests of their files run: what few tests execute may fill a cache for others."""
_IMPORT = -1
"""Stands among the tests of a line for the import of the module, and for the filling of a cache."""
_STORE = re.compile(r"^(_\w+)(?:: .*)? = (?:\{\}|IdentityCache\(.*\))$", re.MULTILINE)
"""Finds the private variables of a module that are caches: they are empty when it is imported."""

hypothesis.settings.register_profile(
    "mutation",
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    suppress_health_check=list(hypothesis.HealthCheck),
)


class _MutatedModule(SourceFileLoader):
    """Finds and loads one module, from other bytes than those of its file."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        super().__init__(name, str(path))
        self._source = source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, self.path)


class _Selection:
    """Runs some of the tests, in this order; all of their files if a mutant has changed the tests' names.

    A test that takes ten times its processor time ends the process, since a loop may have become endless.
    """

    def __init__(self, tests: Sequence[str], seconds: Mapping[str, float]) -> None:
        self._tests, self._seconds = tests, seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_PROF, 2 + 10 * self._seconds.get(item.nodeid, 1.0))
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = {item.nodeid: item for item in items}
        if all(test in found for test in self._tests):
            items[:] = [found[test] for test in self._tests]


class _Recording:
    """Notes which test executes which line, how long it takes, and whether it passes.

    Args:
        package: the package whose caches are emptied before each file of tests; before each test takes too long where
            formats are compiled into a cache.
        modules: imported before the first test, which else alone would execute the lines that an import executes.
        measured: takes the names of the tests that run.
    """

    def __init__(self, package: str, modules: Iterable[str] = (), measured: coverage.Coverage | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.unusable: set[str] = set()
        self.startup = math.inf
        self._measured, self._package, self._imports, self._modules = measured, package, modules, 0
        self._caches: list[Callable[[], None]] = []
        self._file = ""
        self.first: set[str] = set()
        """The tests that ran first after caches had been emptied."""

    def _clear_caches(self) -> None:
        """Forget results, so that a line is not only executed by the first of the tests that need it."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            every = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
            mine = [one for one in every if str(one.__module__).partition(".")[0] == self._package]
            self._caches = [one.cache_clear for one in mine]
            for name, module in list(sys.modules.items()):
                if name.partition(".")[0] == self._package:
                    self._caches += [store.clear for store in _stores(module)]
        for clear in self._caches:
            clear()

    def pytest_collection_finish(self) -> None:
        for module in self._imports:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.startup = min(self.startup, time.process_time())
        if self._measured is not None:
            file = item.nodeid.partition("::")[0]
            if file != self._file:
                self._file = file
                self._clear_caches()
                self.first.add(item.nodeid)
            self._measured.switch_context(item.nodeid)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self.unusable.add(report.nodeid)


@dataclass
class Baseline:
    """What runs without any mutant tell of an area: tests with their seconds, and the tests of each line."""

    digest: str
    startup: float
    tests: list[tuple[str, float]]
    lines: dict[str, dict[str, list[int]]]
    imports: list[str]
    unusable: list[str]

    def select(self, area: Area, module: str, mutant: Mutant) -> list[list[str]]:
        """Return the tests to run, in stages; none if no test executes the line."""
        lines = self.lines.get(module, {})
        chosen = {test for line in range(mutant.first, mutant.last + 1) for test in lines.get(str(line), ())}
        chosen = chosen or set(lines.get(str(mutant.statement), ()))
        if _IMPORT in chosen:
            chosen.update(*lines.values())
            chosen.update(index for index, (name, _) in enumerate(self.tests) if _stage(area, name) == 0)
        elif len(chosen) <= _FEW:
            files = {self.tests[index][0].partition("::")[0] for index in chosen}
            chosen.update(index for index, (name, _) in enumerate(self.tests) if name.partition("::")[0] in files)
        return self.stages(area, chosen)

    def stages(self, area: Area, chosen: Iterable[int]) -> list[list[str]]:
        """Return tests by the path of the table that they belong to; in each, the quickest file first."""
        unusable = set(self.unusable)
        stages: dict[int, dict[str, list[tuple[float, str]]]] = {}
        for name, seconds in (self.tests[index] for index in chosen if index != _IMPORT):
            if name not in unusable:
                files = stages.setdefault(_stage(area, name), {})
                files.setdefault(name.partition("::")[0], []).append((seconds, name))
        return [
            [name for tests in sorted(map(sorted, files.values()), key=_seconds) for _, name in tests]
            for _, files in sorted(stages.items())
        ]


def _seconds(tests: Iterable[tuple[float, str]]) -> float:
    return sum(seconds for seconds, _ in tests)


def _stage(area: Area, test: str) -> int:
    return next(at for at, path in enumerate(area.tests) if test == path or test.startswith((f"{path}/", f"{path}::")))


@dataclass
class Tally:
    """What became of the mutants of one module."""

    module: str
    area: str
    source: bytes
    mutants: list[Mutant]
    digest: str
    results: dict[str, tuple[str, float]] = field(default_factory=dict)

    def count(self, *statuses: str) -> int:
        return sum(status in statuses for status, _ in self.results.values())

    @property
    def complete(self) -> bool:
        return len(self.results) == len(self.mutants)

    @property
    def score(self) -> float:
        """The share of mutants that are killed, in four digits."""
        return round(self.count(KILLED, TIMEOUT, CRASHED) / (len(self.results) or 1), 4)

    def report(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        survivors = []
        for mutant in self.mutants:
            status, _ = self.results.get(mutant.key, (KILLED, 0.0))
            if status in (SURVIVED, UNCOVERED):
                before, after = mutant.diff(self.source)
                place = {"line": mutant.first, "operator": mutant.operator, "status": status}
                survivors.append({**place, "before": before, "after": after})
        seconds = [spent for status, spent in self.results.values() if status != UNCOVERED]
        return {
            "module": self.module,
            "complete": self.complete,
            "mutants": len(self.mutants),
            "tried": len(self.results),
            "score": self.score,
            **{status: self.count(status) for status in (KILLED, TIMEOUT, CRASHED, SURVIVED, UNCOVERED)},
            "seconds_per_mutant": round(sum(seconds) / (len(seconds) or 1), 2),
            "survivors": survivors,
        }


@dataclass
class _Run:
    """A mutant whose tests are running."""

    tally: Tally
    mutant: Mutant
    stages: list[list[str]]
    scratch: Path
    began: float
    deadline: float = 0.0


class Mutation:
    """One invocation: the baselines of areas, then mutants in as many processes as are wanted."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.root: Path = options.root.resolve()
        self.state = self.root / STATE
        self.options = options
        self.confined = not options.unconfined
        self.ends = time.monotonic() + (options.seconds or math.inf)
        self.temporary = Path(tempfile.mkdtemp(prefix="mutate-")).resolve()
        for directory in ("pycache", "results"):
            (self.state / directory).mkdir(parents=True, exist_ok=True)
        (self.state / ".gitignore").write_text("*\n")
        sys.pycache_prefix = str(self.state / "pycache")
        source = str(self.root / "src")
        sys.path[:0] = [source]
        os.environ |= {"PYTHONPATH": source, "COVERAGE_CORE": "ctrace"}

    def digest(self, *paths: str) -> str:
        """Return a digest of files, and of all Python files and tables below directories."""
        total = hashlib.sha256()
        for path in (self.root / path for path in paths):
            for file in sorted(path.rglob("*.*")) if path.is_dir() else [path]:
                if file.is_file() and file.suffix != ".pyc":
                    total.update(f"{file.relative_to(self.root)}\0".encode() + file.read_bytes())
        return total.hexdigest()[:16]

    def modules(self, area: Area) -> list[str]:
        """Return the modules of an area that are wanted, as paths below `src`."""
        found = {path.relative_to(self.root / "src") for glob in area.modules for path in self.root.glob(f"src/{glob}")}
        wanted = [_as_pattern(words) for words in self.options.modules]
        names = sorted(str(path) for path in found if path.name != "__init__.py")
        return [
            name
            for name in names
            if not wanted or any(fnmatch.fnmatch(name.removesuffix(".py"), glob) for words in wanted for glob in words)
        ]

    # -- processes -----------------------------------------------------------------------------------------------------

    def _pytest(self, scratch: Path, words: Sequence[str], *plugins: object) -> int:
        """Run pytest in this process, without output."""
        os.chdir(self.root)
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        silence = os.open(scratch / "output", os.O_RDWR | os.O_CREAT)
        for number in (0, 1, 2):
            os.dup2(silence, number)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        always = ["--quiet", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=mutation"]
        # The package is a pytest plugin too, so pytest would load its modules itself, to rewrite their assertions.
        always += ["--assert=plain"]
        always += ["-W", "ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={scratch / 'tests'}"]
        return int(pytest.main([*always, *words], plugins=plugins))

    def _measure(self, area: Area, digest: str, scratch: Path) -> None:
        """Run all tests of an area under coverage, and leave a file that tells what was seen."""
        files = [str(path) for glob in area.modules for path in self.root.glob(f"src/{glob}")]
        measured = coverage.Coverage(data_file=None, include=files, config_file=False)
        modules = [_dotted(path.relative_to(self.root / "src")) for path in map(Path, files)]
        modules = [name for name in modules if not name.endswith(("__init__", "__main__"))]
        package = modules[0].partition(".")[0]
        recording = _Recording(package, modules, measured)
        measured.start()
        self._pytest(scratch, area.tests, recording)
        measured.stop()
        usable = [name for name in recording.seconds if name not in recording.unusable]
        index = {name: at for at, name in enumerate(usable)} | {"": _IMPORT}
        data = measured.get_data()
        # What only such tests execute may fill a cache, whose content any other test may examine.
        fills = recording.first | {""}
        lines = {
            str(Path(file).relative_to(self.root / "src")): {
                str(line): sorted(index[name] for name in names | ({""} if names <= fills else set()) if name in index)
                for line, names in ((line, set(names)) for line, names in data.contexts_by_lineno(file).items())
            }
            for file in data.measured_files()
        }
        tests = [(name, round(recording.seconds[name], 4)) for name in usable]
        found = Baseline(digest, recording.startup, tests, lines, _third_party(), sorted(recording.unusable))
        (scratch / "result.json").write_text(json.dumps(vars(found)))

    def baseline(self, name: str, area: Area) -> Baseline:
        """Return what the tests of an area execute, measured anew if they or the modules have changed."""
        sources = [str(path.relative_to(self.root)) for glob in area.modules for path in self.root.glob(f"src/{glob}")]
        digest = self.digest(*sorted(sources), *area.tests)
        kept = self.state / f"{name}.json"
        if kept.exists() and json.loads(kept.read_text())["digest"] == digest:
            found = Baseline(**json.loads(kept.read_text()))
            self._import(found.imports)
            return found
        found = Baseline(**self._in_process(name, lambda scratch: self._measure(area, digest, scratch)))
        self._import(found.imports)
        # Once more as mutants will run: what fails, or passes only in company of others, would kill them all.
        seconds: dict[str, float] = {}
        for stage in found.stages(area, range(len(found.tests))):
            alone = self._in_process(name, functools.partial(self._check, stage))
            seconds |= alone["seconds"]
            found.unusable += alone["unusable"]
        found.tests = [(test, seconds.get(test, spent)) for test, spent in found.tests]
        kept.write_text(json.dumps(vars(found)))
        if len(set(found.unusable)) >= len(found.tests):
            raise SystemExit(f"No test of {name} passes: {' '.join(area.tests)}")
        return found

    def _check(self, stage: Sequence[str], scratch: Path) -> None:
        recording = _Recording("")
        self._pytest(scratch, _files(stage), _Selection(stage, dict.fromkeys(stage, 60.0)), recording)
        told = {"seconds": recording.seconds, "unusable": sorted(recording.unusable)}
        (scratch / "result.json").write_text(json.dumps(told))

    def _in_process(self, name: str, work: Callable[[Path], None]) -> dict[str, Any]:
        """Return what a function that runs tests writes in a process of its own."""
        scratch = Path(tempfile.mkdtemp(dir=self.temporary))

        def run() -> int:
            work(scratch)
            return 0

        process = fork_confined(run, [scratch, self.state / "pycache"], confined=self.confined)
        if exit_code(os.waitpid(process, 0)[1]) == UNCONFINED:
            raise SystemExit("No namespaces can be made here; --unconfined does without, on a machine of no value.")
        result = scratch / "result.json"
        if not result.exists():
            raise SystemExit(f"The tests of {name} do not run:\n{(scratch / 'output').read_text()[-2000:]}")
        told: dict[str, Any] = json.loads(result.read_text())
        return told

    def _import(self, modules: Iterable[str]) -> None:
        """Import here what else each process would."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for module in modules:
                with contextlib.suppress(ImportError):
                    importlib.import_module(module)
        gc.freeze()

    def _start(self, run: _Run, baseline: Baseline) -> int:
        tests = run.stages.pop(0)
        seconds = dict(baseline.tests)
        cpu = math.ceil(5 + baseline.startup + 5 * sum(seconds[test] for test in tests))
        path = self.root / "src" / run.tally.module
        name = _dotted(Path(run.tally.module))
        loader = _MutatedModule(name, path, run.mutant.apply(run.tally.source))

        def work() -> int:
            sys.meta_path.insert(0, loader)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, resource.getrlimit(resource.RLIMIT_CPU)[1]))
            return self._pytest(run.scratch, ["-x", *_files(tests)], _Selection(tests, seconds))

        run.deadline = time.monotonic() + 15 + 4 * cpu
        return fork_confined(work, [run.scratch], confined=self.confined)

    def run(self, tally: Tally, baseline: Baseline, area: Area, progress: Progress, task: TaskID) -> None:
        """Try the mutants of a module that have no result yet."""
        waiting = [mutant for mutant in tally.mutants if mutant.key not in tally.results]
        progress.update(task, description=tally.module, total=len(tally.mutants), completed=len(tally.results))
        running: dict[int, _Run] = {}
        with (self.state / "results" / f"{tally.module.replace('/', '.')}.jsonl").open("a") as kept:

            def done(mutant: Mutant, status: str, seconds: float) -> None:
                tally.results[mutant.key] = (status, round(seconds, 3))
                kept.write(json.dumps([tally.digest, mutant.key, status, round(seconds, 3)]) + "\n")
                kept.flush()
                progress.update(task, completed=len(tally.results))
                progress.refresh()

            try:
                while running or (waiting and time.monotonic() < self.ends):
                    while waiting and len(running) < self.options.jobs and time.monotonic() < self.ends:
                        mutant = waiting.pop(0)
                        if stages := baseline.select(area, tally.module, mutant):
                            scratch = Path(tempfile.mkdtemp(dir=self.temporary))
                            run = _Run(tally, mutant, stages, scratch, time.monotonic())
                            running[self._start(run, baseline)] = run
                        else:
                            done(mutant, UNCOVERED, 0.0)
                    time.sleep(0.005)
                    for process, run in list(running.items()):
                        status = self._status_of(process, run)
                        if status is None:
                            continue
                        del running[process]
                        if status == SURVIVED and run.stages:
                            running[self._start(run, baseline)] = run
                            continue
                        shutil.rmtree(run.scratch, ignore_errors=True)
                        done(run.mutant, status, time.monotonic() - run.began)
            finally:
                for process in running:
                    _kill(process)

    def _status_of(self, process: int, run: _Run) -> str | None:
        """Return what a process has ended with, or `None` while it runs."""
        if time.monotonic() > run.deadline:
            _kill(process)
            return TIMEOUT
        ended, status = os.waitpid(process, os.WNOHANG)
        code = exit_code(status)
        if code == UNCONFINED:
            raise SystemExit("A process could not be confined.")
        return _STATUS.get(code, CRASHED) if ended else None

    # -- what is reported ----------------------------------------------------------------------------------------------

    def tallies(self, name: str, area: Area) -> Iterator[Tally]:
        """Yield the modules of an area with their mutants and the results that are known."""
        for module in self.modules(area):
            source = (self.root / "src" / module).read_bytes()
            mutants = _sample(find_mutants(source), source, self.options.sample, f"{self.options.seed}:{module}")
            digest = self.digest(f"src/{module}", *area.tests)
            tally = Tally(module, name, source, mutants, digest)
            kept = self.state / "results" / f"{module.replace('/', '.')}.jsonl"
            keys = {mutant.key for mutant in mutants}
            for line in kept.read_text().splitlines() if kept.exists() and not self.options.fresh else ():
                with contextlib.suppress(ValueError):
                    of, key, status, seconds = json.loads(line)
                    if of == digest and key in keys:
                        tally.results[key] = (status, seconds)
            yield tally

    def compare(self, tallies: Sequence[Tally]) -> list[str]:
        """Return what has fallen below the stored scores; store what has risen if that is wanted.

        Each sample has a score of its own, and only modules of which every mutant was tried are compared.
        """
        file = self.root / SCORES
        stored: dict[str, dict[str, float]] = json.loads(file.read_text()) if file.exists() else {}
        sample = "all" if self.options.sample is None else f"{self.options.sample} by seed {self.options.seed}"
        fallen = []
        for tally in tallies:
            if tally.complete and tally.mutants:
                scores = stored.setdefault(tally.module, {})
                known = scores.get(sample, 0.0)
                if tally.score < known:
                    fallen.append(f"{tally.module}: {tally.score:.1%}, which was {known:.1%} ({sample})")
                scores[sample] = max(tally.score, known)
        if self.options.record:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(dict(sorted(stored.items())), indent=2) + "\n")
        return fallen


def _kill(process: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(process, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, 0)


def _stores(module: ModuleType) -> Iterator[dict[Any, Any]]:
    """Yield what a module keeps in variables of its own between calls."""
    path = Path(str(getattr(module, "__file__", "")))
    for name in _STORE.findall(path.read_text()) if path.suffix == ".py" else ():
        store = getattr(module, name)
        yield store if isinstance(store, dict) else store._entries


def _dotted(path: Path) -> str:
    """Return the name by which the module at a path below `src` is imported."""
    return ".".join(path.with_suffix("").parts)


def _files(tests: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


def _third_party() -> list[str]:
    """Return the modules of this process that are installed packages or the standard library."""
    homes = tuple(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib"))
    return [name for name, one in list(sys.modules.items()) if str(getattr(one, "__file__", "")).startswith(homes)]


def _sample(mutants: list[Mutant], source: bytes, size: int | None, seed: str) -> list[Mutant]:
    """Return those mutants that are Python; a random sample of them, the same for the same seed."""
    order = list(mutants)
    if size is not None:
        random.Random(seed).shuffle(order)
    chosen: list[Mutant] = []
    for mutant in order:
        if len(chosen) == size:
            break
        if mutant.compiles(source):
            chosen.append(mutant)
    return sorted(chosen, key=lambda mutant: (mutant.start, mutant.end, mutant.text))


def _as_pattern(words: str) -> tuple[str, ...]:
    """Return globs for a module, a glob of modules or a package as somebody may write it."""
    path = words.removeprefix("src/").removesuffix(".py").removesuffix("/").removeprefix("toolwire/")
    path = path.removeprefix("toolwire.").replace(".", "/")
    return path, f"*/{path}", f"{path}/*", f"*/{path}/*"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        "scripts/mutate",
        description=f"{summary}\n\n{rest}",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--modules", nargs="+", default=[], metavar="MODULE", help="mutate only these: policy/hosts, 'wire/*', policy")
    add("--tests", nargs="+", metavar="PATH", help="run these tests, and mutate any --modules below src")
    add("--sample", type=int, metavar="N", help="try N mutants of each module, chosen by --seed (default: all)")
    add("--seed", type=int, default=1, metavar="S", help="choose the sample (default: 1)")
    add("--seconds", type=float, metavar="T", help="begin no mutant after T seconds")
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="run N processes (default: the processors)")
    add("--record", action="store_true", help=f"store new and risen scores in {SCORES}")
    add("--fresh", action="store_true", help="forget the results of earlier runs")
    add("--json", action="store_true", help="print JSON")
    add("--unconfined", action="store_true", help="let mutants write anywhere; only on a machine of no value")
    add("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the project (default: this one)")
    options = parser.parse_args(arguments)
    if options.tests and not options.modules:
        parser.error("--tests needs --modules")
    return options


def _print(tallies: Sequence[Tally], fallen: Sequence[str]) -> None:
    for tally in tallies:
        told = tally.report()
        killed = tally.count(KILLED, TIMEOUT, CRASHED)
        rest = "" if tally.complete else f"; {len(tally.mutants) - len(tally.results)} not tried yet"
        print(
            f"{tally.module}: {killed}/{len(tally.results)} killed ({tally.score:.1%}), {told[TIMEOUT]} of them by a"
            f" time limit and {told[CRASHED]} by a crash; {told['seconds_per_mutant']} s per mutant{rest}"
        )
        for one in told["survivors"]:
            note = ", and no test executes it" if one["status"] == UNCOVERED else ""
            print(f"  line {one['line']}: {one['operator']}{note}\n    - {one['before']}\n    + {one['after']}")
    for line in fallen:
        print(f"The score has fallen: {line}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0, or 1 if a score has fallen below the stored one."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    mutation = Mutation(options)
    areas = AREAS
    if options.tests:
        # Only the wanted modules are measured: coverage of all others would take most of the time.
        wanted = tuple(mutation.modules(Area(("**/*.py",), ())))
        name = hashlib.sha256(" ".join((*options.tests, *wanted)).encode()).hexdigest()[:8]
        areas = {f"tests-{name}": Area(wanted, tuple(options.tests))}
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tallies: list[Tally] = []
    try:
        with Progress(*columns, console=console, auto_refresh=False, disable=not console.is_terminal) as progress:
            for name, area in areas.items():
                known = {tally.module for tally in tallies}
                mine = [tally for tally in mutation.tallies(name, area) if tally.module not in known]
                tallies += mine
                if all(tally.complete for tally in mine):
                    continue
                task = progress.add_task(f"{name}: which test executes which line", total=None)
                progress.refresh()
                baseline = mutation.baseline(name, area)
                for tally in mine:
                    mutation.run(tally, baseline, area, progress, task)
                progress.remove_task(task)
    except KeyboardInterrupt:
        console.print("Interrupted; the next run continues.")
    finally:
        shutil.rmtree(mutation.temporary, ignore_errors=True)
    if not tallies:
        console.print("No module in the table fits --modules.")
        return 2
    fallen = mutation.compare(tallies)
    if options.json:
        print(json.dumps({"modules": [tally.report() for tally in tallies], "fallen": fallen}, indent=2))
    else:
        _print(tallies, fallen)
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
