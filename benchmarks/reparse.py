"""Speed and memory of reading logs again: answers of 500 characters, half of them with other calls than before.

    .venv/bin/python benchmarks/reparse.py                        # 40,000 rows, one process
    .venv/bin/python benchmarks/reparse.py --rows 1000000 --workers 2

Prints the answers per second of processor time of all processes together, which does not depend on other load, and the
largest resident memory of the process that reads and writes, and of a worker.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

from toolwire.reparse.progress_file import ProgressFile
from toolwire.reparse.ray_workers import ray_workers
from toolwire.reparse.reparse_run import BatchWorkers, process_workers, reparse
from toolwire.reparse.reread_answers import ReparseOptions

TOOL = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
}
PROSE = "I will look up the weather for you now, since you asked. " * 8


def write(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for at in range(rows):
            kind = at % 4
            arguments = {"city": "Paris", "days": at}
            call = f"<tool_call>\n{json.dumps({'name': 'get_weather', 'arguments': arguments})}\n</tool_call>"
            text = PROSE[: 499 - len(call)] + "\n" + call if kind != 3 else PROSE[:410] + " " * 90
            before = [] if kind % 2 else [{"name": "get_weather", "arguments": {**arguments, "days": at - kind}}]
            file.write(json.dumps({"model": f"m{at % 3}", "text": text, "tools": [TOOL], "calls": before}) + "\n")


def processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def workers_of(options: argparse.Namespace, reading: ReparseOptions) -> AbstractContextManager[BatchWorkers]:
    return ray_workers(options.ray, reading) if options.ray else process_workers(options.workers, reading)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ray", help="the address of a cluster, or local")
    parser.add_argument("--format", default="hermes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "rows.jsonl", options.rows)
        progress = ProgressFile(folder / "reparse.db", {})
        wall, processor = time.perf_counter(), processor_seconds()
        reading = ReparseOptions(format=options.format)
        with workers_of(options, reading) as workers:
            reparse([folder / "rows.jsonl"], workers, progress, observe=lambda batch: None)
        wall, processor = time.perf_counter() - wall, processor_seconds() - processor
        rows = progress.summary()["rows"]
        progress.close()
    memory = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{rows:,} answers, {options.workers} processes, format {options.format}")
    print(f"{rows / processor:,.0f} answers per second of processor time, {rows / wall:,.0f} per second in all")
    print(f"memory: {memory[0]:.0f} MiB, a worker {memory[1]:.0f} MiB")


if __name__ == "__main__":
    main()
