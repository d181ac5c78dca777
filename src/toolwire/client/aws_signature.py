"""Signatures of requests to AWS, with the credentials of this machine."""

from __future__ import annotations

from collections.abc import Mapping

from toolwire._surface import needs_extra
from toolwire.client.cloud_places import aws_region
from toolwire.errors import ConfigurationError


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
    SigV4Auth(credentials, "bedrock", aws_region()).add_auth(request)
    return dict(request.headers.items())
