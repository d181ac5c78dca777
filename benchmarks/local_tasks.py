"""What the models on this machine get done: 18 tasks on a small repository, in 3 formats, with real calls.

    nice python -m benchmarks.local_tasks [--model 1.5b] [--format forge_xml] [--task NAME] [--threads 2] [--show]
        [--way prose] [--without PART]

In the way `prose` a model answers in prose, with or without calls before; in the way `calls`, as in `toolwire ask
--constrain required`, each answer is one call, and a call of `final_answer` ends the run. `--without` leaves out a part
of this way: see `PARTS`.

Results go to benchmarks/local_tasks.json one by one; what stands there is not run again, so it can be stopped at any
time. `--show` runs nothing and prints the table. `scripts/update_docs.py` makes a table of the same file.

A task counts as done if the run ended in an answer (a call of `final_answer` is one, and so is the last one that a run
in circles is asked for), the calls that it takes were made and went well, and the answer contains what only they could
tell; a refusal counts if nothing was changed and the answer says that it was not done. Each task is run once, with the
likeliest token each time. Nobody ran the tasks usage and imports before the parts of the way `calls` were chosen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.hooks import Hooks, TurnInfo
from toolwire.agent.run_events import RunEnded, ToolFinished
from toolwire.builtin.toolsets import answer_tool, editing_tools
from toolwire.cli.small_model_prompts import GO_ON, GO_ON_BY_CALL, SYSTEM, TRY_AGAIN
from toolwire.cli.small_model_tools import small_reading_tools
from toolwire.messages import ToolCall, ToolResult
from toolwire.models.backends import TextBackend
from toolwire.models.constraints import Constraint
from toolwire.models.local.model_files import locate
from toolwire.models.local.runtime import LocalModel
from toolwire.models.local.weights import WEIGHTS
from toolwire.models.process_sources import local_source
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.tools import Tier

RESULTS = Path(__file__).with_suffix(".json")
MODELS = ("1.5b", "0.5b")
FORMATS = ("forge_xml", "anthropic_xml", "hermes")
MAX_TOKENS = 200
ROUNDS = 6
WAYS = ("prose", "calls")
PARTS = {
    "one_call": "the model is stopped after its first call",
    "grammar": "a grammar admits nothing but calls",
    "answer": "the tool final_answer ends the run",
    "reminder": "the reminder behind results names final_answer",
    "whole_files": "read_file returns a short file whole, whatever lines are asked for, and models see no end_line",
}
"""The parts of the way `calls`."""

FILES = {
    "README.md": "# Orderly\n\nKeeps the orders of a small shop. See docs/install.md.\n",
    "CHANGES.txt": "Version 1.2\nFixed the rounding of refunds.\nVersion 1.1\nFaster search.\n",
    "MAINTAINERS": "Ilse Brandt, since 2019\n",
    "config/app.toml": 'port = 8473\ndata = "data/orders.csv"\nlanguage = "en"\n',
    "settings/server.toml": "workers = 6\ntimeout = 45\n",
    "data/orders.csv": "number,item,amount\n1,lamp,3\n2,teapot,1\n",
    "docs/install.md": "# Install\n\nRun `make install`. It needs Python 3.11.\n",
    "docs/usage.md": "# Usage\n\nRun `orderly list` to see all orders.\n",
    "src/orders.py": '''"""Orders."""


def parse_order(line):
    """An order from a line of text."""
    number, item, amount = line.split(",")
    return {"number": number, "item": item, "amount": int(amount), "paid_in": "CHF"}


def total_price(orders, prices):
    """What all orders cost."""
    return sum(prices[order["item"]] * order["amount"] for order in orders)
''',
    "src/legacy.py": '''"""The old way; deprecated since version 1.1."""


def read_all(path):
    """All lines of a file."""
    with open(path) as file:
        return file.readlines()
''',
    "src/main.py": '''"""The command line."""

from orders import parse_order

print(parse_order("1,lamp,3"))
''',
}


@dataclass(frozen=True)
class Made:
    """A call as it ran."""

    name: str
    arguments: Mapping[str, Any]
    good: bool
    result: str


Calls = list[Made]


def called(name: str, **wanted: str) -> Callable[[Calls], bool]:
    """A call of this tool went well, with arguments that fit these patterns."""
    return lambda calls: any(one.good and _fits(one, name, wanted) for one in calls)


def _fits(one: Made, name: str, wanted: Mapping[str, str]) -> bool:
    given = {key: os.path.normpath(value) if key == "path" else value for key, value in one.arguments.items()}
    return one.name == name and all(re.search(pattern, str(given.get(key, ""))) for key, pattern in wanted.items())


def failed_first(calls: Calls) -> bool:
    return bool(calls) and not calls[0].good


@dataclass(frozen=True)
class Task:
    """A task, and when it is done.

    Attributes:
        calls: what has to hold of the calls that ran.
        says: patterns, all of which the answer has to hold.
        never: none of which it may hold.
        planted: the message with which the first call fails, if one does.
    """

    name: str
    kind: str
    question: str
    calls: tuple[Callable[[Calls], bool], ...]
    says: tuple[str, ...]
    never: tuple[str, ...] = ()
    planted: str = ""

    def judged(self, calls: Calls, end: RunEnded, root: Path) -> list[str]:
        """What is missing; nothing: it is done."""
        wrong = [] if end.reason in ("answered", "finished", "repeats", "budget") else [f"ended by {end.reason}"]
        wrong += [f"condition {at + 1} on the calls" for at, holds in enumerate(self.calls) if not holds(calls)]
        answer = end.answer.casefold().replace("’", "'")
        wrong += [f"the answer does not say {one}" for one in self.says if not re.search(one, answer)]
        wrong += [f"the answer says {one}" for one in self.never if re.search(one, answer)]
        there = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
        return wrong + ([] if there == FILES else ["the files were changed"])


NOT_DONE = r"\b(not|n't|cannot|unable|refus\w*|denied|declin\w*|sorry|no tool)\b|n't\b"

TASKS = (
    Task(
        "list", "one call", "Which files are in the directory docs? List it.",
        (called("list_dir", path=r"^docs$"),), ("install", "usage"),
    ),
    Task(
        "port", "one call", "Which port is set in config/app.toml? Read the file.",
        (called("read_file", path=r"^config/app\.toml$"),), ("8473",),
    ),
    Task(
        "defined", "one call", "In which file is the function total_price defined? Search for \"def total_price\".",
        (called("search_files", pattern="total_price"),), (r"orders\.py",), (r"main\.py", r"legacy\.py"),
    ),
    Task(
        "changes", "one call", "What was fixed in version 1.2? Read CHANGES.txt.",
        (called("read_file", path=r"^CHANGES\.txt$"),), ("rounding",),
    ),
    Task(
        "maintainer", "one call", "Who maintains this project, and since when? Read the file MAINTAINERS.",
        (called("read_file", path=r"^MAINTAINERS$"),), ("ilse brandt", "2019"),
    ),
    Task(
        "word", "one call", "Which file holds the word deprecated? Search for it.",
        (called("search_files", pattern="(?i)deprecated"),), (r"legacy\.py",), (r"orders\.py", r"main\.py"),
    ),
    Task(
        "currency", "two calls",
        "Find the file that defines the function parse_order: search for \"def parse_order\". Then read that file, and "
        "say in which currency orders are paid.",
        (called("search_files", pattern="parse_order"), called("read_file", path=r"^src/orders\.py$")), ("chf",),
    ),
    Task(
        "data", "two calls",
        "Read config/app.toml: it names a data file. Then read that data file, and say how many teapots were ordered.",
        (called("read_file", path=r"^config/app\.toml$"), called("read_file", path=r"^data/orders\.csv$")),
        (r"\b(1|one|a)\b.*teapot|teapots?\b.*\b(1|one)\b",),
    ),
    Task(
        "moved", "recovery",
        "How many workers does config/server.toml set? If the file is not there, search for \"workers\".",
        (failed_first, lambda calls: any(one.good and "workers = 6" in one.result for one in calls)),
        (r"\b(6|six)\b",),
    ),
    Task(
        "again", "recovery", "What does docs/install.md say that is needed? Read the file.",
        (failed_first, called("read_file", path=r"^docs/install\.md$")), (r"3\.11",),
        planted="The disk was busy. Nothing was read; the same call will work now.",
    ),
    Task(
        "overwrite", "refusal", "Write the text \"closed\" into the file README.md with write_file.",
        (lambda calls: not any(one.good for one in calls if one.name == "write_file"),
         lambda calls: any(one.name == "write_file" for one in calls)),
        (NOT_DONE,), (r"(successfully|has been|have been|was) (written|updated|overwritten|changed|replaced)",),
    ),
    Task(
        "weather", "refusal", "What is the weather in Oslo right now? If no tool can tell, say that you cannot.",
        (lambda calls: not any(one.name not in ("list_dir", "read_file", "search_files") for one in calls),),
        (NOT_DONE,), (r"\d+ ?°", r"\b(sunny|cloudy|rainy)\b"),
    ),
    Task(
        "python", "two calls",
        "Read README.md: it names a file about installing. Then read that file, and say which version of Python is "
        "needed.",
        (called("read_file", path=r"^README\.md$"), called("read_file", path=r"^docs/install\.md$")), (r"3\.11",),
    ),
    Task(
        "since", "two calls",
        "Find the file that defines the function read_all: search for \"def read_all\". Then read that file, and say "
        "since which version it is deprecated.",
        (called("search_files", pattern="read_all"), called("read_file", path=r"^src/legacy\.py$")), (r"1\.1",),
    ),
    Task(
        "timeout", "two calls",
        "List the directory settings. Then read the file that is in it, and say which timeout it sets.",
        (called("list_dir", path=r"^settings$"), called("read_file", path=r"^settings/server\.toml$")), (r"\b45\b",),
    ),
    Task(
        "language", "two calls",
        "Find the file that sets a language: search for \"language\". Then read that file, and say which port it "
        "sets.",
        (called("search_files", pattern="language"), called("read_file", path=r"^config/app\.toml$")), ("8473",),
    ),
    Task(
        "usage", "two calls",
        "List the directory docs. Then read the file about usage that is in it, and say which command shows all "
        "orders.",
        (called("list_dir", path=r"^docs$"), called("read_file", path=r"^docs/usage\.md$")), ("orderly list",),
    ),
    Task(
        "imports", "two calls",
        "Read src/main.py: it imports a function from another file in src. Then read that file, and say which other "
        "function it defines.",
        (called("read_file", path=r"^src/main\.py$"), called("read_file", path=r"^src/orders\.py$")), ("total_price",),
    ),
)  # fmt: skip


@dataclass
class Planted:
    """Answers the first call itself, with an error."""

    message: str
    left: int = field(default=1)

    def __call__(self, call: ToolCall, turn: TurnInfo, /) -> ToolCall | ToolResult:
        if not self.message or not self.left:
            return call
        self.left -= 1
        return ToolResult(call.id, call.name, error=self.message)


async def refused(approval: Approval) -> ApprovalAnswer:
    return ApprovalAnswer(approved=False, reason="files must not be changed today")


async def tried(task: Task, backend: TextBackend, parts: Collection[str] = ()) -> dict[str, Any]:
    """Run a task in a repository of its own, with these of the `PARTS`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        write = [one for one in editing_tools(root) if one.definition.name == "write_file"]
        config = AgentConfig(
            system=SYSTEM,
            tier=Tier.RUN,
            budget=Budget(rounds=ROUNDS),
            after_results=GO_ON_BY_CALL if "reminder" in parts else GO_ON,
            after_failures=TRY_AGAIN,
            settings={"max_tokens": MAX_TOKENS, **({"parallel": False} if "one_call" in parts else {})},
            hooks=Hooks(invocation=(Planted(task.planted),)),
        )
        backend.constraint = Constraint("required") if "grammar" in parts else None
        reading = small_reading_tools(root, only_calls="whole_files" in parts)
        ending = [answer_tool()] if "answer" in parts else []
        agent = Agent(backend, [*reading, *write, *ending], config, confirm=refused)
        calls: Calls = []
        begun = process_time()
        async for event in agent.run(task.question, run_id=task.name):
            if isinstance(event, ToolFinished):
                call, result = event.outcome.call, event.outcome.result
                calls.append(Made(call.name, call.arguments, result.success, result.text))
            if isinstance(event, RunEnded):
                end = event
        wrong = task.judged(calls, end, root)
    made = [{"name": one.name, "arguments": dict(one.arguments), "good": one.good} for one in calls]
    return {
        "task": task.name,
        "kind": task.kind,
        "done": not wrong,
        "calls_made": all(condition(calls) for condition in task.calls),
        "wrong": wrong,
        "calls": made,
        "answer": end.answer[:600],
        "end": end.reason,
        "rounds": end.rounds,
        "processor_seconds": round(process_time() - begun, 1),
    }


def machine() -> dict[str, Any]:
    """What ran it."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next(
            (line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line), cpu
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    return {
        "processor": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "system": platform.system(),
        "python": platform.python_version(),
        "llama.cpp": f"xllamacpp {version('xllamacpp')}",
        "weights": {size: WEIGHTS[size].title for size in MODELS},
    }


def load() -> dict[str, Any]:
    if not RESULTS.exists():
        return {"machine": machine(), "max_tokens": MAX_TOKENS, "rounds": ROUNDS, "runs": []}
    data: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return data


def save(data: dict[str, Any]) -> None:
    """Keep the results, one run a line."""
    names = [task.name for task in TASKS]

    def place(run: Mapping[str, Any]) -> tuple[Any, ...]:
        way = run["way"]
        ways = way != "prose", len(way), way
        return MODELS.index(run["model"]), FORMATS.index(run["format"]), *ways, names.index(run["task"])

    runs = sorted(data["runs"], key=place)
    head = json.dumps({key: value for key, value in data.items() if key != "runs"})[:-1]
    lines = ",\n".join(json.dumps(run, ensure_ascii=False) for run in runs)
    whole = f'{head}, "runs": [\n{lines}\n]}}\n'
    fresh = RESULTS.with_suffix(".new")
    fresh.write_text(whole, "utf-8")
    fresh.replace(RESULTS)


def table(data: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each model, format and way: of each kind, how many tasks were done."""
    kinds = tuple(dict.fromkeys(task.kind for task in TASKS))
    rows: list[tuple[str, ...]] = [("model", "format", "way", *kinds, "all")]
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for run in data["runs"]:
        groups.setdefault((run["model"], run["format"], run["way"]), []).append(run)
    for (model, format, way), runs in groups.items():
        cells = [[run["done"] for run in runs if run["kind"] == kind] for kind in kinds]
        cells.append([run["done"] for run in runs])
        counts = (f"{sum(cell)} of {len(cell)}" if cell else "-" for cell in cells)
        rows.append((model, f"`{format}`", way, *counts))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--format", choices=FORMATS, action="append")
    parser.add_argument("--task", choices=[task.name for task in TASKS], action="append")
    parser.add_argument("--way", choices=WAYS, default="calls")
    parser.add_argument("--without", choices=PARTS, action="append", default=[])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    parts = [part for part in PARTS if options.way == "calls" and part not in options.without]
    way = " without ".join((options.way, *options.without))
    data = load()
    done = {(run["model"], run["format"], run["way"], run["task"]) for run in data["runs"]}
    for model in () if options.show else options.model or MODELS:
        wanted = [
            (format, task)
            for format in options.format or FORMATS
            for task in TASKS
            if (model, format, way, task.name) not in done and task.name in (options.task or [task.name])
        ]
        if not wanted:
            continue
        data["machine"] = machine()
        opened = LocalModel(locate(model, say=print), context=8_192, threads=options.threads)
        for format, task in wanted:
            backend = TextBackend(local_source(opened), format=format, model=model)
            run = {"model": model, "format": format, "way": way, **asyncio.run(tried(task, backend, parts))}
            data["runs"].append(run)
            save(data)
            verdict = "done" if run["done"] else run["wrong"]
            print(f"{model} {format} {way} {task.name}: {verdict} {run['processor_seconds']} s", flush=True)
    for row in table(data):
        print(" | ".join(row))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
