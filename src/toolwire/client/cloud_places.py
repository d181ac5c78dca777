"""Places in the addresses of clouds that differ between users: regions, projects, accounts and versions."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from toolwire.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Place:
    """A part of an address that environment variables name.

    Attributes:
        variables: the environment variables; the first that is set counts.
        default: the value if none is set; "" if one has to be.
    """

    variables: tuple[str, ...]
    default: str = ""

    @property
    def value(self) -> str:
        """The value, "" for none."""
        return next((value for name in self.variables if (value := os.environ.get(name, "").strip())), self.default)


PLACES = {
    "aws_region": Place(("AWS_REGION", "AWS_DEFAULT_REGION"), "us-east-1"),
    "azure_version": Place(("OPENAI_API_VERSION",)),
    "cloudflare_account": Place(("CLOUDFLARE_ACCOUNT_ID",)),
    "google_project": Place(("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")),
    "google_region": Place(("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"), "global"),
}
"""The places that addresses name in braces. `{google_host}` is the host of a Google region."""

_GROUPS_OF_REGIONS = ("us", "eu")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_IN_BRACES = re.compile(r"\{([a-z_]+)\}")


def aws_region() -> str:
    """Return the region of AWS that the environment names."""
    return _value("aws_region")


def filled(address: str, user: str, *, required: bool) -> str:
    """Return an address with the values of its places.

    Args:
        address: the address.
        user: the API, for the message of an error.
        required: whether all places have to be known; otherwise those that are not stay as they are.

    Raises:
        ConfigurationError: the environment does not name a place, or its value could change the rest of the address.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        if name == "google_host":
            return _google_host()
        if name not in PLACES or not (required or PLACES[name].value):
            return match[0]
        return _value(name, user)

    return _IN_BRACES.sub(value_of, address)


def _value(name: str, user: str = "") -> str:
    place = PLACES[name]
    value = place.value
    variables = " or ".join(place.variables)
    if not value:
        raise ConfigurationError(f"{user} needs the {name.replace('_', ' ')}: set {variables}")
    if not _VALUE.fullmatch(value):
        raise ConfigurationError(f"{variables} must be letters, digits, '.', ':', '_' and '-', not {value!r:.80}")
    return value


def _google_host() -> str:
    region = _value("google_region")
    if region == "global":
        return "aiplatform.googleapis.com"
    if region in _GROUPS_OF_REGIONS:
        return f"aiplatform.{region}.rep.googleapis.com"
    return f"{region}-aiplatform.googleapis.com"
