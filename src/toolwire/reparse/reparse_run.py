"""Reading logs again in several processes: batches go out in order, and their results are written in order."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
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


def reparse(
    sources: Sequence[Path],
    options: ReparseOptions,
    progress: ProgressFile,
    *,
    workers: int,
    observe: Callable[[Batch], None],
) -> None:
    """Read the rows of files again, from where an earlier run has come to.

    Args:
        sources: the files.
        options: how their answers are read.
        progress: the results.
        workers: the number of processes; with 1, everything happens in this one.
        observe: called with each batch when its results are written.

    Raises:
        ConfigurationError: a file cannot be read.
        StateError: results cannot be written, or a process has died.
    """
    if workers == 1:
        for batch in _all_batches(sources, progress):
            progress.add(batch, reread(batch.lines, options))
            observe(batch)
        return
    # Processes are spawned, because a fork would copy open files and locks of this one.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin, (options,)) as pool:
        pending: deque[tuple[Batch, Future[BatchResult]]] = deque()

        def finish_oldest() -> None:
            batch, future = pending.popleft()
            try:
                result = future.result()
            except BrokenProcessPool as error:
                last = batch.first + len(batch.lines) - 1
                raise StateError(f"a process died at rows {batch.first} to {last} of {batch.source}") from error
            progress.add(batch, result)
            observe(batch)

        try:
            for batch in _all_batches(sources, progress):
                pending.append((batch, pool.submit(_reread, batch.lines)))
                if len(pending) >= _AHEAD * workers:
                    finish_oldest()
            while pending:
                finish_oldest()
        finally:
            # After an error or an interruption, batches that were read ahead are not worth waiting for.
            pool.shutdown(wait=False, cancel_futures=True)


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
