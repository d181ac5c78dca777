"""Rules about URLs by their host: names, and addresses however they are written."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

MAX_HOST = 253
"""Characters of a host's name."""
_CARRIERS = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96")))
"""IPv6 addresses whose last 32 bits are an IPv4 address: compatible ones, and those of translators."""
_OPEN = ipaddress.IPv6Network("2000::/3")
"""All IPv6 addresses that were ever given out to the world; addresses of links and sites, say, are others."""
_INSIDE = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
            *("168.63.129.16/32", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            *("2001::/23", "2001:db8::/32", "3fff::/20"),
        ),
    )
)
"""What the registries of special addresses at IANA keep from the world, with multicast and what is reserved.

Whole blocks, also where single addresses of one are reached from everywhere. The standard library has such a list too,
which is another one in each version.
"""
_PRIVATE_NAMES = ("localhost", "*.localhost", "*.local", "*.internal", "*.home.arpa", "metadata", "metadata.*")


@dataclass(frozen=True, slots=True)
class Host:
    """URLs of hosts that a glob fits; `private` is every address that is not on the open internet.

    Names are compared as they are looked up: without case, other scripts in ASCII (IDNA). Whoever fetches has to look
    again at the address that a name leads to.
    """

    glob: str

    def surely(self, value: Any) -> bool:
        """An http URL of such a host, written plainly. A wildcard never means a private one."""
        host = _host(value)
        if not host:
            return False
        if self.glob == "private":
            return _is_private(host)
        glob = _as_dns(self.glob.casefold())
        return host == glob or (not _is_private(host) and _address(host) is None and fnmatchcase(host, glob))

    def maybe(self, value: Any) -> bool:
        """A URL that may lead there, or none that can be read."""
        host = _host(value)
        if not host:
            return True
        if self.glob == "private":
            return _is_private(host)
        glob = _as_dns(self.glob.casefold())
        return fnmatchcase(host, glob) or fnmatchcase(str(_address(host) or ""), glob)


def _host(value: Any) -> str:
    """The host of an http URL, in small letters; "" if it is none or is written to mislead."""
    if not isinstance(value, str) or re.search(r"[\s\\\0-\x20\x7f]", value):
        return ""
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or "%" in host or len(host) > MAX_HOST:
        return ""
    return _as_dns(host).rstrip(".").casefold()


@lru_cache(maxsize=1024)
def _as_dns(host: str) -> str:
    """A host, or a glob of one, as it is looked up: other scripts, full-width letters and dots in ASCII; "" if none."""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return ""


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is, in any spelling that C libraries read: `2130706433`, `0x7f.1`, `0177.0.0.1`."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    numbers: list[int] = []
    for part in host.split("."):
        if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", part):
            return None
        base = 16 if part[:2] in ("0x", "0X") else 8 if part.startswith("0") and part != "0" else 10
        try:
            numbers.append(int(part, base))
        except ValueError:
            return None
    if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        return None
    value = numbers[-1]
    for at, number in enumerate(numbers[:-1]):
        value += number << (8 * (3 - at))
    return ipaddress.IPv4Address(value)


def _is_private(host: str) -> bool:
    address = _address(host)
    if address is None:
        return "." not in host or any(fnmatchcase(host, name) for name in _PRIVATE_NAMES)
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and any(address in network for network in _CARRIERS):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
        elif address not in _OPEN:
            return True
    return any(address in network for network in _INSIDE)
