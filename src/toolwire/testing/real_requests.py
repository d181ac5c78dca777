"""Forbid requests to real models, so that a test cannot make one by accident."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolwire.client.transport import RealRequests


@contextmanager
def forbid_real_requests() -> Iterator[None]:
    """Let requests to models over HTTP raise `RealRequestError` inside the block, in all threads of the process.

    Scripted models, scripted and replaying transports, and models in this process work as before.
    """
    RealRequests.forbidden += 1
    try:
        yield
    finally:
        RealRequests.forbidden -= 1
