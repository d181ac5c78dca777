"""A language model on this machine: pinned weights, or any GGUF file, run in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolwire.local.runtime import LocalModel
from toolwire.local.weights import WEIGHTS, fetch, silent

__all__ = ["WEIGHTS", "LocalModel", "fetch", "locate", "open_model"]


def open_model(
    name: str = "1.5b",
    *,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[int, int], None] = silent,
) -> LocalModel:
    """Load a model, and fetch its weights first if they are not there yet: see `locate` and `LocalModel`."""
    return LocalModel(locate(name, say=say, progress=progress))


def locate(
    name: str,
    *,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[int, int], None] = silent,
) -> Path:
    """The path of a model's file; known weights are fetched first if they are not there yet.

    Args:
        name: a size from `WEIGHTS` (`0.5b`, `1.5b`), or the path of a GGUF file.
        say: told in a sentence what takes time, and once where the weights come from.
        progress: called with bytes that have come and bytes in all.

    Raises:
        ProviderError: the weights cannot be had.
    """
    weights = WEIGHTS.get(name.lower())
    return fetch(weights, say=say, progress=progress) if weights else Path(name).expanduser()
