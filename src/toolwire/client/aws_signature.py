"""Signatures of requests to AWS, with the credentials and the region of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping

from toolwire._surface import needs_extra
from toolwire.errors import ConfigurationError


def region() -> str:
    """Return the region of AWS that the environment names."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def signed_headers(url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request to Bedrock, signed with the credentials that botocore finds.

    Raises:
        MissingExtra: botocore is not installed.
        ConfigurationError: botocore finds no credentials.
    """
    with needs_extra("Bedrock"):
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.session import Session
    credentials = Session().get_credentials()
    if credentials is None:
        raise ConfigurationError("no AWS credentials were found")
    request = AWSRequest("POST", url, data=body, headers=dict(headers))
    SigV4Auth(credentials, "bedrock", region()).add_auth(request)
    return dict(request.headers.items())
