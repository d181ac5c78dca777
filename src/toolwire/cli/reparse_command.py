"""`toolwire reparse`: read logged answers again, with another format or version, and say what changed."""

from __future__ import annotations

import json as json_module
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from toolwire.cli.console import CliError, console, emit, labelled, print_rows, say, styled
from toolwire.cli.fallback_option import Fallback, fallback_level
from toolwire.cli.format_option import described_formats, read_format
from toolwire.cli.input_files import read_tools
from toolwire.cli.option_groups import takes_options
from toolwire.cli.stats_command import percentage
from toolwire.errors import StateError
from toolwire.reparse.progress_file import ProgressFile
from toolwire.reparse.reparse_run import BatchWorkers, process_workers
from toolwire.reparse.reparse_run import reparse as reparse_files
from toolwire.reparse.reread_answers import CLASSES, ReparseOptions
from toolwire.reparse.row_sources import Batch, find_sources, is_unfinished
from toolwire.text.counted import counted
from toolwire.tools import definitions
from toolwire.wire.format_registry import AUTO, get_format

EXAMPLES = """Examples:

toolwire reparse answers.jsonl --format hermes --tools tools.json

toolwire reparse batch_output.jsonl --workers 4 --out lost-calls

toolwire reparse logs/ --format qwen3_coder --was hermes

toolwire reparse logs/ --ray ray://head:10001

toolwire reparse ~/.local/state/toolwire/turns.db --check

Rows are JSON lines with `text` (and `model`, `format`, `tools`, `calls`), responses of provider APIs, the output of
OpenAI's batches, the turns of recorded runs, the rows of a Parquet file, or whole text files. A text is compared with
the calls that its row has, or with what --was reads. After an interruption, the same command continues.

Exit status: 0 done, 1 with --check if calls were lost or changed, 2 wrong usage or bad input."""

_DATABASE = "reparse.db"
_DIFFERENT = "different.jsonl"
_SHOWN = 3
"""Number of rows of each kind that are shown."""
_LOSSES = ("lost", "changed")


@dataclass(frozen=True, slots=True)
class ReparseCommandOptions:
    """The options of `reparse`; see `takes_options`."""

    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            callback=read_format,
            help="The wire format to read, or a JSON file that describes one; by default that of the row, or any.",
        ),
    ] = ""
    was: Annotated[
        str,
        typer.Option(
            callback=read_format, help="Compare with what this format reads, and not with the calls that the rows have."
        ),
    ] = ""
    fallback: Fallback = ""
    tools: Annotated[
        str | None, typer.Option(help="A JSON file with the definitions of the tools, for rows that have none.")
    ] = None
    out: Annotated[Path, typer.Option(help="The directory for the results.")] = Path("reparse")
    workers: Annotated[
        int | None, typer.Option(min=1, max=512, help="Number of processes; by default, one for each processor.")
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(help="The address of a Ray cluster that reads the rows; local starts one on this machine."),
    ] = None
    check: Annotated[bool, typer.Option("--check", help="Exit with status 1 if calls were lost or changed.")] = False
    json: Annotated[bool, typer.Option("--json", help="Print the figures and samples as JSON.")] = False


@takes_options(ReparseCommandOptions)
def reparse(
    options: ReparseCommandOptions,
    paths: Annotated[list[Path], typer.Argument(help="Files and directories with answers.")],
) -> None:
    """Read logged answers again, with another format or version, and say what changed."""
    reading = _reading(options)
    sources = find_sources(paths, options.out)
    if not sources:
        raise CliError(f"there is no file in {', '.join(map(str, paths))}")
    options.out.mkdir(parents=True, exist_ok=True)
    record = {**asdict(reading), "tools": [asdict(tool) for tool in reading.tools], "toolwire": version("toolwire")}
    plain_record = json_module.loads(json_module.dumps(record, default=str))
    with closing(ProgressFile(options.out / _DATABASE, plain_record)) as progress:
        with _progress_bar(sources) as advance, _workers(options, reading) as workers:
            reparse_files(sources, workers, progress, observe=advance)
        summary = progress.summary()
        earlier = progress.earlier_sources(sources)
        unfinished = [str(source) for source in sources if is_unfinished(source, progress.progress(source)[0])]
        _write_different(progress, options.out / _DIFFERENT)
        broken = [f"{source}, row {row}: {reason}" for source, row, reason in progress.broken(10 * _SHOWN)]
    if earlier:
        say(
            f"toolwire: the figures include {counted(len(earlier), 'file')} of earlier commands, such as {earlier[0]}; "
            "--out DIR names another directory, whose figures leave them out",
            "yellow",
        )
    for name in unfinished:
        say(
            f"toolwire: the last line of {name} is not complete; it does not count, and the next run reads it", "yellow"
        )
    if options.json:
        emit({**summary, "broken": broken, "unfinished": unfinished})
    else:
        _show(summary)
        for line in broken[:_SHOWN]:
            say(f"toolwire: {line}", "yellow")
        say(f"The rows that differ: {options.out / _DIFFERENT}")
    if broken and all(set(row) == {"broken"} for row in summary["counts"].values()):
        raise CliError(
            "none of the rows is an answer: files of JSON have one object in each line, and --help describes the rows "
            "that can be read"
        )
    if options.check and any(row.get(kind) for row in summary["counts"].values() for kind in _LOSSES):
        raise typer.Exit(1)


def _reading(options: ReparseCommandOptions) -> ReparseOptions:
    """Return the options of reading.

    Raises:
        CliError, UnknownFormat: a value is unknown.
    """
    fallback = fallback_level(options.fallback)
    names = [name if name in ("", AUTO) else get_format(name).name for name in (options.format, options.was)]
    tools = tuple(definitions(read_tools(options.tools)).values())
    return ReparseOptions(names[0], names[1], fallback, tools, described_formats())


def _workers(options: ReparseCommandOptions, reading: ReparseOptions) -> AbstractContextManager[BatchWorkers]:
    if options.ray is None:
        return process_workers(options.workers or _processors(), reading)
    if options.workers is not None:
        raise CliError("--workers are processes of this machine: leave it out with --ray")
    from toolwire.reparse.ray_workers import ray_workers  # here, because only this option needs the package

    return ray_workers(options.ray, reading)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _progress_bar(sources: list[Path]) -> Iterator[Callable[[Batch], None]]:
    """Show the rows that are read on standard error while the block runs, if that is a terminal."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    screen = console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} answers"), TextColumn("{task.description}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=screen, transient=True, disable=not screen.is_terminal
    ) as progress:
        task = progress.add_task(str(sources[0].name), total=None)

        def advance(batch: Batch) -> None:
            progress.update(task, advance=len(batch.lines), description=Path(batch.source).name)

        yield advance


def _write_different(progress: ProgressFile, path: Path) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            for row in progress.different():
                file.write(json_module.dumps(row, ensure_ascii=True) + "\n")
    except OSError as error:
        raise StateError(f"{path}: {error.strerror or error}") from error


def _show(summary: dict[str, Any]) -> None:
    kinds = [kind for kind in CLASSES if any(row.get(kind) for row in summary["counts"].values())]
    rows: list[tuple[Text, ...]] = []
    screen = console()
    if not screen.is_terminal and summary["counts"]:
        # A pipe gets no titles of columns, and here the columns depend on the answers.
        rows.append(tuple(map(Text, ("model", "answers", *kinds))))
    for model, counts in summary["counts"].items():
        total = sum(counts.values())
        cells = [f"{counts.get(kind, 0)} ({percentage(counts.get(kind, 0), total)})" for kind in kinds]
        rows.append((styled(model or "(no model)", "bold"), Text(str(total)), *map(Text, cells)))
    titles = ("model", "answers", *kinds)
    print_rows(titles, rows, fold=titles, right=titles[1:])
    for kind in kinds:
        say(f"{kind}: {CLASSES[kind]}")
    for shown in ("gained", *_LOSSES):
        samples = [sample for sample in summary["samples"] if sample["class"] == shown]
        for sample in samples[:_SHOWN]:
            place = f"{sample['source']}, row {sample['row']}"
            calls = f"before: {sample['before']}\nnow: {sample['now']}"
            screen.print(labelled(shown, f"{place}\n{sample['text']}\n{calls}"))
    if not rows:
        say(f"{counted(summary['rows'], 'answer')}")
