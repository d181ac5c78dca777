"""Requests as an endpoint takes them, without the key: the base URL, the headers and the body."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from toolwire.client.endpoints import Endpoint
from toolwire.client.exchange import HttpRequest

_BETA_HEADER = "anthropic-beta"
_VERSION = re.compile(r"v\d+[a-z]*")


def base_of(endpoint: Endpoint, base_url: str) -> str:
    """Return the base URL of requests: a server's address without a path gets the endpoint's own.

    The version at its end is left out where the paths of the endpoint begin with it: the APIs differ in where it
    belongs, and users write it in both places.
    """
    base = (base_url or endpoint.base_url).rstrip("/")
    if endpoint.root and base and not urlsplit(base).path:
        return base + endpoint.root
    version = endpoint.path.split("/")[1]
    return base.removesuffix(f"/{version}") if _VERSION.fullmatch(version) else base


def with_token_counts(endpoint: Endpoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request for a stream that reports its tokens: without them, a budget would count nothing."""
    if not endpoint.counts_streams:
        return dict(body)
    options = body.get("stream_options")
    return {**body, "stream_options": {"include_usage": True, **(options if isinstance(options, Mapping) else {})}}


def addressed(endpoint: Endpoint, url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> HttpRequest:
    """Return a request without its key.

    Args:
        endpoint: the endpoint.
        url: the URL.
        body: the body, as the API encodes it.
        headers: headers of the caller.
    """
    members = {key: value for key, value in body.items() if key not in endpoint.omit}
    all_headers = {"content-type": "application/json", **dict(endpoint.headers), **headers}
    betas = [name for name in map(str.strip, all_headers.get(_BETA_HEADER, "").split(",")) if name]
    betas += [name for name in endpoint.betas_of(body) if name not in betas]
    if betas and endpoint.beta_member:
        all_headers.pop(_BETA_HEADER, None)
        listed = members.get(endpoint.beta_member)
        members[endpoint.beta_member] = list(dict.fromkeys((*(listed if isinstance(listed, list) else ()), *betas)))
    elif betas:
        all_headers[_BETA_HEADER] = ",".join(betas)
    return HttpRequest(url, json.dumps(members).encode(), all_headers)
