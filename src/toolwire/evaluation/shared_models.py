"""Models on this machine, loaded once for all the evaluations of a process."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from toolwire.models.local.model_files import locate
from toolwire.models.local.runtime import LocalModel
from toolwire.models.process_sources import Writer

_PROMPT_CACHE: Final = 2048
"""Maximum memory for the prompts of one model in MiB; two hundred questions need about as much.

A small machine gives an eighth of its memory, since each model that is evaluated has a share of its own.

The columns of an evaluation ask the same questions, so most of their prompts begin alike, and reading a prompt takes
longer than writing a call.
"""


@cache
def load_shared(name: str) -> Writer:
    """Return a model on this machine, which stays loaded until the process ends.

    Args:
        name: see `toolwire.models.open_model`.

    Raises:
        ProviderError: there is no such model, or it cannot be loaded.
    """
    return LocalModel(locate(name), prompt_cache=_prompt_cache())


def _prompt_cache() -> int:
    """Return the memory for the prompts of a model, in MiB."""
    try:
        size, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows lacks the function, and other systems the names
        return _PROMPT_CACHE
    if pages <= 0:  # the system does not know it, and a negative cache would have no limit
        return _PROMPT_CACHE
    return min(_PROMPT_CACHE, (size * pages >> 20) // 8)
