"""Models on this machine, loaded once for all the evaluations of a process."""

from __future__ import annotations

from functools import cache

from toolwire.models.local.model_files import open_model
from toolwire.models.process_sources import Writer


@cache
def load_shared(name: str) -> Writer:
    """Return a model on this machine, which stays loaded until the process ends.

    Args:
        name: see `toolwire.models.open_model`.

    Raises:
        ProviderError: there is no such model, or it cannot be loaded.
    """
    return open_model(name)
