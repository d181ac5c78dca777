"""Keys of endpoints: those that a program passes, and those of the environment."""

from __future__ import annotations

import os

from toolwire.client.endpoints import Endpoint
from toolwire.errors import ConfigurationError


def read_key(endpoint: Endpoint, base_url: str, key: str | None, key_env: str, api_name: str) -> str:
    """Return the key for requests to a server; "" for none.

    Another server than the provider's own is never sent the provider's usual key.

    Args:
        endpoint: the provider's own endpoint.
        base_url: the server's base URL.
        key: the key; None to read it from the environment.
        key_env: the environment variable that contains it; "" for those of the endpoint.
        api_name: the name of the API, for messages.

    Raises:
        ConfigurationError: the key is missing, or contains characters that no key has.
    """
    is_public = base_url == endpoint.base_url
    names = (key_env,) if key_env else endpoint.key if is_public else ()
    if key is None:
        key = next((value for name in names if (value := os.environ.get(name))), "")
    key = key.strip()
    if not key and (key_env or (names and base_url.startswith("https://"))):
        variable = " or ".join(names)
        raise ConfigurationError(
            f"{api_name} needs a key: set {variable} in the environment, or pass key= in a program"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("the key contains characters that no key has")
    return key
