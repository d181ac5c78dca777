"""Access to the gateway: the hosts, origins and keys of the requests that it answers."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from toolwire.gateway.failures import FORBIDDEN, NO_KEY, GatewayFailure
from toolwire.runtime.local_http import is_foreign

_KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class Access:
    """The requests that a gateway answers.

    Attributes:
        keys: the keys that clients may send, any of them; empty if none is required.
        hosts: the names that requests may give as the host; empty for any.
        origins: the origins of web pages that may send requests.
    """

    keys: tuple[str, ...] = field(default=(), repr=False)
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    def check(self, headers: Mapping[str, str], query: str) -> str:
        """Check a request, and return the key that it was sent with; "" for none.

        Args:
            headers: the request's headers, in lower case.
            query: the query of its address.

        Raises:
            GatewayFailure: the request is refused.
        """
        if self.hosts and headers.get("host", "").lower() not in self.hosts:
            host = headers.get("host", "")
            raise GatewayFailure(FORBIDDEN, f"this server is not the host {host!r:.100} that the request names")
        if is_foreign(headers.get("origin", ""), headers.get("sec-fetch-site", ""), self.origins):
            raise GatewayFailure(FORBIDDEN, "pages of other origins may not send requests to this server")
        key = key_of(headers, query)
        if not self.keys:
            return key
        sent = key.encode("utf-8", "replace")
        # Each key is compared, whichever is right, so that the time says nothing about them.
        matches = [hmac.compare_digest(sent, valid.encode()) for valid in self.keys]
        if not any(matches):
            raise GatewayFailure(NO_KEY, "the key is wrong" if key else "a key is missing: send it as a bearer token")
        return key


def key_of(headers: Mapping[str, str], query: str) -> str:
    """Return the key of a request, from any of the places in which clients of the APIs send it; "" for none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    for name in _KEY_HEADERS:
        if key := headers.get(name, "").strip():
            return key
    return parse_qs(query).get("key", [""])[0] if "key=" in query else ""
