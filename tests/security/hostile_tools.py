"""Functions that misbehave in the process of their own in which they are run."""

from __future__ import annotations

import builtins
import contextlib
import gc
import json
import os
import signal
import sys
import threading
from typing import Any


def poison(canary: str) -> str:
    """Changes everything that it can reach, in the hope that somebody else's world changes with it."""
    os.environ["PATH"] = "/nowhere"
    os.chdir("/")
    builtins.len = lambda *_: 0  # type: ignore[assignment]
    json.loads = lambda *_: {"value": "forged"}  # type: ignore[assignment]
    sys.modules["toolwire"] = sys.modules[__name__]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for kind in ().__class__.__mro__[-1].__subclasses__():
        if kind.__name__ == "_wrap_close":
            kind.__init__.__globals__["system"](f"true {canary}")  # type: ignore[misc]
    gc.disable()
    return "poisoned"


def forge() -> str:
    """Writes answers of its own wherever it can."""
    for descriptor in range(1, 20):
        with contextlib.suppress(OSError):
            os.write(descriptor, b'{"value": "forged"}')
    return "its own"


class Revived:
    """An object that would do something if somebody unpickled or revived it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("false",)


def revive() -> Any:
    return Revived()


def linger() -> str:
    """Leaves a thread and a child behind."""
    threading.Thread(target=lambda: threading.Event().wait(), daemon=False).start()
    if not os.fork():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Event().wait()
    return "back at once"


def keyed(value: dict[str, Any]) -> dict[str, Any]:
    return value
