"""Rules about URLs by their host: names, and addresses however they are written."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from toolwire._surface import check_type

MAX_HOST = 253
"""Maximum length of a host's name, in characters."""
_CARRIERS = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96")))
"""Networks of IPv6 addresses whose last 32 bits are an IPv4 address: compatible addresses, and those of NAT64."""
_OPEN = ipaddress.IPv6Network("2000::/3")
"""The global unicast addresses of IPv6; addresses of links and sites, for example, are outside."""
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
"""Networks that are not on the open internet: IANA's special-purpose registries, multicast and reserved addresses.

Whole blocks, even if single addresses of a block are globally reachable. The list of the standard library is not used,
because it differs between versions of Python.
"""
_PRIVATE_NAMES = frozenset(
    {
        *("localhost", "local", "internal", "home.arpa", "localdomain", "localnet", "intranet", "private", "lan"),
        *("home", "corp", "mail", "workgroup", "svc", "consul", "fritz.box", "fritz.nas", "speedport.ip", "easy.box"),
        *("dmz", "lab", "test", "default", "ts.net"),  # names of tests, of Kubernetes and of Tailscale
        *("invalid", "onion", "alt"),  # special-use names, which no public name server has
        *("pi.hole", "setup.ubnt.com"),
        *("routerlogin.net", "routerlogin.com", "orbilogin.com", "tplinkwifi.net", "tplinklogin.net"),
        *("asusrouter.com", "router.asus.com", "mywifiext.net"),
        *("nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me", "traefik.me", "lacolhost.com"),
        *("plex.direct", "rbndr.us"),
    }
)
"""Domains whose names lead into private networks, or to any address that a name spells, as `10.0.0.1.nip.io`."""
_DEVIATIONS = re.compile("[\u00df\u03c2\u200c\u200d]")
"""Characters that the two versions of IDNA encode in different ways."""


@dataclass(frozen=True, slots=True)
class Host:
    """URLs of hosts that a glob fits; `private` is every address that is not on the open internet.

    Names are compared as they are looked up: without case, other scripts in ASCII (IDNA). The code that fetches has to
    check the address that a name resolves to again.
    """

    glob: str

    def __post_init__(self) -> None:
        """Check the type of the glob."""
        check_type("glob", self.glob, str, "text")

    def surely(self, value: Any) -> bool:
        """Return whether it is an http URL of such a host, written plainly; a wildcard never fits a private host."""
        hosts = _hosts(value)
        if not hosts:
            return False
        if self.glob == "private":
            return all(map(_is_private, hosts))
        # Clients differ in which host they ask for such a name. A rule with the same spelling means the same host.
        if _DEVIATIONS.search(self.glob) and self.glob.lower() == _written(value):
            return not any(map(_is_private, hosts))
        glob = (_spellings(self.glob) or ("",))[-1]
        return all(
            host == glob or (not _is_private(host) and _address(host) is None and fnmatchcase(host, glob))
            for host in hosts
        )

    def maybe(self, value: Any) -> bool:
        """Return whether the URL may lead there, or cannot be parsed."""
        hosts = _hosts(value)
        if not hosts:
            return True
        if self.glob == "private":
            return any(map(_is_private, hosts))
        globs = _spellings(self.glob)
        return any(
            fnmatchcase(host, glob) or fnmatchcase(str(_address(host) or ""), glob) for host in hosts for glob in globs
        )


def _hosts(value: Any) -> tuple[str, ...]:
    """Return the hosts that clients may ask for an http URL, in lower case; none if it is misleading or not a URL."""
    host = _written(value)
    return tuple(spelling.rstrip(".") for spelling in _spellings(host)) if host else ()


def _written(value: Any) -> str:
    """Return the host of an http URL as it is written, in lower case; "" if it is not one, or is misleading."""
    # Clients disagree about spaces, backslashes and control characters, so `http://good\\@evil` has several hosts.
    if not isinstance(value, str) or re.search(r"[\s\\\0-\x20\x7f]", value):
        return ""
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        _ = parts.port  # reading it raises ValueError for a port that other parsers may take for a part of the host
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or "%" in host or len(host) > MAX_HOST:
        return ""
    return host.lower()


@lru_cache(maxsize=1024)
def _spellings(host: str) -> tuple[str, ...]:
    """Return a host, or a glob of hosts, in ASCII as it is looked up: by IDNA 2003, and by IDNA 2008 if that differs.

    There is none if it has no such form.
    """
    if host.isascii():
        return (host.casefold(),)
    try:
        first = host.encode("idna").decode("ascii").casefold()
        if not _DEVIATIONS.search(host):
            return (first,)
        return first, ".".join(map(_label, re.split("[.\u3002\uff0e\uff61]", host)))
    except UnicodeError:
        return ()


def _label(label: str) -> str:
    """Return a label in ASCII by IDNA 2008, which keeps the characters that IDNA 2003 replaces."""
    kept = "".join(c if _DEVIATIONS.match(c) else unicodedata.normalize("NFKC", c.casefold()) for c in label)
    kept = unicodedata.normalize("NFC", kept)
    return kept if kept.isascii() else f"xn--{kept.encode('punycode').decode('ascii')}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a host is, in any spelling that C libraries parse, such as `0x7f.1` or `2130706433`."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    # Libraries that connect accept these spellings, so `http://2130706433/` would otherwise pass as a public name.
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
        labels = host.split(".")
        # Services that know the secrets of a machine in the cloud answer under these names.
        if len(labels) == 1 or labels[0] == "metadata":
            return True
        return any(".".join(labels[at:]) in _PRIVATE_NAMES for at in range(len(labels)))
    if isinstance(address, ipaddress.IPv6Address):
        # `::ffff:127.0.0.1` and `2002:7f00:1::` reach an IPv4 address: that one decides.
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and any(address in network for network in _CARRIERS):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
        elif address not in _OPEN:
            return True
    return any(address in network for network in _INSIDE)
