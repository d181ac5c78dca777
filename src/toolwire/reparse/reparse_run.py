"""Reading logs again in several processes: batches go out in order, and their results are written in order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, process
from pathlib import Path
from typing import Final

from toolwire.errors import StateError
from toolwire.reparse.progress_file import ProgressFile
from toolwire.reparse.reread_answers import BatchResult, ReparseOptions, reread
from toolwire.reparse.row_sources import Batch, batches

_AHEAD: Final = 3
"""Number of batches for each process that are read ahead of the results: it bounds the memory."""

_options = ReparseOptions()


@dataclass(frozen=True, slots=True)
class BatchWorkers:
    """Whatever reads batches: this process, other processes, or a cluster.

    Attributes:
        submit: begins to read lines, and returns a function that waits for the result.
        ahead: the number of batches that are read ahead of the results.
    """

    submit: Callable[[Sequence[bytes]], Callable[[], BatchResult]]
    ahead: int


def reparse(
    sources: Sequence[Path],
    workers: BatchWorkers,
    progress: ProgressFile,
    *,
    observe: Callable[[Batch], None],
) -> None:
    """Read the rows of files again, from where an earlier run has come to.

    Args:
        sources: the files.
        workers: read the batches.
        progress: the results.
        observe: called with each batch when its results are written.

    Raises:
        ConfigurationError: a file cannot be read.
        StateError: results cannot be written, or a worker has died.
    """
    pending: deque[tuple[Batch, Callable[[], BatchResult]]] = deque()

    def finish_oldest() -> None:
        batch, wait = pending.popleft()
        try:
            result = wait()
        except BrokenProcessPool as error:
            last = batch.first + len(batch.lines) - 1
            raise StateError(f"a process died at rows {batch.first} to {last} of {batch.source}") from error
        progress.add(batch, result)
        observe(batch)

    for batch in _all_batches(sources, progress):
        pending.append((batch, workers.submit(batch.lines)))
        if len(pending) >= workers.ahead:
            finish_oldest()
    while pending:
        finish_oldest()


@contextmanager
def process_workers(count: int, options: ReparseOptions) -> Iterator[BatchWorkers]:
    """Start processes while the block runs; with a count of 1, batches are read in this one.

    Args:
        count: the number of processes.
        options: how answers are read.
    """
    if count == 1:
        yield BatchWorkers(lambda lines: partial(reread, lines, options), ahead=1)
        return
    # Processes are spawned, because a fork would copy open files and locks of this one.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, _begin, (options,)) as pool:

        def submit(lines: Sequence[bytes]) -> Callable[[], BatchResult]:
            with _interruptions_later():
                return pool.submit(_reread, lines).result

        try:
            yield BatchWorkers(submit, ahead=_AHEAD * count)
        finally:
            # After an error or an interruption, batches that were read ahead are not worth waiting for. Those that are
            # being read are: the pool's thread would use pipes that the end of the program has closed.
            pool.shutdown(cancel_futures=True)


@contextmanager
def _interruptions_later() -> Iterator[None]:
    """Block SIGINT while processes are started: they inherit it, and only this one answers an interruption.

    A terminal sends Ctrl-C to all of them, and each would print a traceback, even while it still imports modules.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _all_batches(sources: Sequence[Path], progress: ProgressFile) -> Iterator[Batch]:
    for source in sources:
        position, rows = progress.progress(source)
        yield from batches(source, position, rows)


def _begin(options: ReparseOptions) -> None:
    """Prepare a process: keep the options, and end with the process that started it."""
    global _options
    _options = options
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent process is gone: after a kill, nobody else would end this one."""
    parent = process.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _reread(lines: Sequence[bytes]) -> BatchResult:
    return reread(lines, _options)
