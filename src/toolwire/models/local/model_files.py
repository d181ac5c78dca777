"""Find the file of a model by its name, fetch it if it is missing, and load it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolwire._surface import needs_extra
from toolwire.errors import ProviderError
from toolwire.models.local.runtime import LocalModel
from toolwire.models.local.weights import WEIGHTS, fetch, silent

HUB = "hf:"
"""The prefix of a file on the Hugging Face hub: `hf:OWNER/REPO/FILE`."""


def open_model(
    name: str = "1.5b",
    *,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[int, int], None] = silent,
) -> LocalModel:
    """Load a model, after fetching its weights if they are missing: see `locate` and `LocalModel`."""
    return LocalModel(locate(name, say=say, progress=progress))


def locate(
    name: str,
    *,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[int, int], None] = silent,
) -> Path:
    """Return the path of a model's file; known weights are fetched first if they are missing.

    Args:
        name: a size from `WEIGHTS` (`0.5b`, `1.5b`), the path of a GGUF file, or `hf:OWNER/REPO/FILE`.
        say: called with a sentence about each step that takes time, and once with the origin of the weights.
        progress: called with the bytes that have arrived and the bytes in all.

    Raises:
        ProviderError: there is no such model, or the weights cannot be fetched.
        MissingExtra: the extra `local` is not installed.
    """
    if name.startswith(HUB):
        return _from_hub(name.removeprefix(HUB), say)
    if problem := unknown_model(name):
        raise ProviderError(problem)
    weights = WEIGHTS.get(name.lower())
    return fetch(weights, say=say, progress=progress) if weights else Path(name).expanduser()


def unknown_model(name: str) -> str:
    """Return an error message if the name is neither a size, nor the path of a file, nor one of a hub, else ""."""
    if name.startswith(HUB) or name.lower() in WEIGHTS or Path(name).expanduser().is_file():
        return ""
    return f"unknown model {name!r}: expected a size ({', '.join(WEIGHTS)}), an existing GGUF file or hf:REPO/FILE"


def _from_hub(name: str, say: Callable[[str], None]) -> Path:
    """Return the path of a file of the hub, from its cache on this machine if it is there."""
    owner, _, rest = name.partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file):
        raise ProviderError(f"{HUB}{name} names no file: it is {HUB}OWNER/REPO/FILE.gguf")
    with needs_extra("A file of the Hugging Face hub"):
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    say(f"{file} from {owner}/{repository}")
    try:
        return Path(hf_hub_download(f"{owner}/{repository}", file))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ProviderError(f"{HUB}{name} cannot be had: {str(error).splitlines()[0]}") from error
