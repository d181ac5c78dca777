"""Reading logs again on a cluster of Ray: the same batches in the same order, read by other machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from toolwire._surface import needs_extra
from toolwire.errors import StateError
from toolwire.reparse.reparse_run import BatchWorkers
from toolwire.reparse.reread_answers import BatchResult, ReparseOptions, reread

START_HERE: Final = "local"
"""The address that starts a cluster on this machine, for the duration of the run."""
_AHEAD: Final = 3
"""Number of batches for each processor of the cluster that are read ahead of the results: it bounds the memory."""


@contextmanager
def ray_workers(address: str, options: ReparseOptions) -> Iterator[BatchWorkers]:
    """Connect to a cluster while the block runs; its machines need Toolwire in the same version.

    Args:
        address: the address of the cluster, such as "ray://head:10001" or "auto"; "local" to start one here.
        options: how answers are read.

    Raises:
        MissingExtra: Ray is not installed.
        StateError: the cluster cannot be reached.
    """
    with needs_extra("A Ray cluster", "ray"):
        import ray
    try:
        ray.init(address=address, log_to_driver=False, include_dashboard=False if address == START_HERE else None)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise StateError(f"the Ray cluster at {address} cannot be reached: {' '.join(str(error).split())}") from error

    @contextmanager
    def failures_in_words() -> Iterator[None]:
        try:
            yield
        except ray.exceptions.RayError as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise StateError(f"the Ray cluster at {address} failed: {reason}") from error

    try:
        with failures_in_words():
            # The options are sent to each machine once, and not with every batch.
            shared = ray.put(options)
            read = ray.remote(reread)
            processors = int(ray.cluster_resources().get("CPU", 1))

        def submit(lines: Sequence[bytes]) -> Callable[[], BatchResult]:
            with failures_in_words():
                reference = read.remote(list(lines), shared)

            def wait() -> BatchResult:
                with failures_in_words():
                    result: BatchResult = ray.get(reference)
                return result

            return wait

        yield BatchWorkers(submit, ahead=_AHEAD * max(1, processors))
    finally:
        ray.shutdown()
