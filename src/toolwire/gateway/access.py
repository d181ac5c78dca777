"""Access to the gateway: the hosts, origins and keys of the requests that it answers."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from toolwire.gateway.failures import GatewayFailure
from toolwire.gateway.virtual_keys import VirtualKey, VirtualKeys, owner_of
from toolwire.providers.failure_kinds import FORBIDDEN, NO_KEY
from toolwire.runtime.local_http import is_foreign

_KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class Requester:
    """The client that sent a request.

    Attributes:
        owner: the name under which what belongs to the client is stored; "" for everybody, where no key is required.
        key: what the client may use; None for no limit.
    """

    owner: str = ""
    key: VirtualKey | None = None

    def admits(self, model: str) -> bool:
        """Return whether the client may ask a model."""
        return self.key is None or self.key.admits(model)


@dataclass(frozen=True, slots=True)
class Access:
    """The requests that a gateway answers.

    Attributes:
        keys: the keys that clients may send, without limits; empty if there are none.
        hosts: the names that requests may give as the host; empty for any.
        origins: the origins of web pages that may send requests.
        virtual_keys: further keys, each with what it may use; None if there are none. If there are neither these nor
            `keys`, no key is required.
    """

    keys: tuple[str, ...] = field(default=(), repr=False)
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    virtual_keys: VirtualKeys | None = None

    def browser_headers(self, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        """Return the headers of a response by which browsers let pages of the allowed origins read it.

        Args:
            headers: the request's headers, in lower case.
        """
        if not self.origins:
            return []
        origin, requested = headers.get("origin", ""), headers.get("access-control-request-method", "")
        response_headers = [(b"vary", b"origin, access-control-request-headers" if requested else b"origin")]
        if origin.lower() not in self.origins:
            return response_headers
        response_headers.append((b"access-control-allow-origin", origin.encode("latin-1")))
        if requested:
            names = headers.get("access-control-request-headers", "").encode("latin-1")
            response_headers += [
                (b"access-control-allow-methods", b"GET, POST, DELETE"),
                (b"access-control-allow-headers", names or b"authorization, content-type"),
                (b"access-control-max-age", b"600"),
            ]
        else:
            response_headers.append((b"access-control-expose-headers", b"x-request-id, x-toolwire-notes, retry-after"))
        return response_headers

    async def admit(self, headers: Mapping[str, str], query: str, *, needs_key: bool = True) -> Requester:
        """Check a request, and return who sent it.

        Args:
            headers: the request's headers, in lower case.
            query: the query of its address.
            needs_key: whether it needs a key, where the gateway has keys.

        Raises:
            GatewayFailure: the request is refused.
            StateError: the store with the keys cannot be used.
        """
        if self.hosts and headers.get("host", "").lower() not in self.hosts:
            host = headers.get("host", "")
            message = f"this server is not the host {host!r:.100} that the request names; add it to hosts of [gateway]"
            raise GatewayFailure(FORBIDDEN, message)
        if is_foreign(headers.get("origin", ""), headers.get("sec-fetch-site", ""), self.origins):
            raise GatewayFailure(FORBIDDEN, "pages of other origins may not send requests to this server")
        key = key_of(headers, query)
        if not needs_key or (not self.keys and self.virtual_keys is None):
            return Requester()
        sent = key.encode("utf-8", "replace")
        # Each key is compared, whichever is right, so that the time says nothing about them.
        matches = [hmac.compare_digest(sent, valid.encode()) for valid in self.keys]
        if any(matches):
            return Requester(owner_of(key))
        virtual_key = None if self.virtual_keys is None else await self.virtual_keys.find(key)
        if virtual_key is None:
            raise GatewayFailure(NO_KEY, "the key is wrong" if key else "a key is missing: send it as a bearer token")
        return Requester(owner_of(key), virtual_key)


def key_of(headers: Mapping[str, str], query: str) -> str:
    """Return the key of a request, from any of the places in which clients of the APIs send it; "" for none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    for name in _KEY_HEADERS:
        if key := headers.get(name, "").strip():
            return key
    return parse_qs(query).get("key", [""])[0] if "key=" in query else ""
