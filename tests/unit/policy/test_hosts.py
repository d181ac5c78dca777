"""Addresses that are not on the open internet, by the registries of special addresses at IANA."""

import pytest

from toolwire.policy.hosts import Host

INSIDE = """
0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255
169.254.0.0 169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.9 192.0.0.170 192.0.0.192 192.0.2.1 192.88.99.1
192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.255 224.0.0.1 239.255.255.255 240.0.0.1
255.255.255.255
:: ::1 ::127.0.0.1 ::ffff:10.0.0.1 ::ffff:192.0.0.192 64:ff9b::a00:1 64:ff9b:1::1 64:ff9b:1:a00:0:100:808:808 100::1
100:0:0:1::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:1::1 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::
2001:db8::1 2002:7f00:1:: 2002:c000:c0:: 3fff::1 3fff:fff:ffff:: 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1
feff::1 ff02::1 ff0e::1
"""
OUTSIDE = """
1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255
198.20.0.0 203.0.112.255 203.0.114.0 223.255.255.255
::ffff:8.8.8.8 ::8.8.8.8 64:ff9b::808:808 2000::1 2001:200::1 2001:db7:ffff:: 2001:db9:: 2002:808:808:: 2003::1
2606:4700::1111 3ffe:ffff:: 3fff:1000::
"""


def url(address: str) -> str:
    return f"http://[{address}]/" if ":" in address else f"http://{address}/"


@pytest.mark.parametrize("address", INSIDE.split())
def test_addresses_inside(address: str) -> None:
    assert Host("private").maybe(url(address))
    assert Host("private").surely(url(address))


@pytest.mark.parametrize("address", OUTSIDE.split())
def test_addresses_outside(address: str) -> None:
    assert not Host("private").maybe(url(address))
    assert not Host("private").surely(url(address))


@pytest.mark.parametrize(
    ("host", "private"),
    [
        *(("4294967295", True), ("4294967296", True)),  # a name without a dot is private
        *(("127.16777215", True), ("127.16777216", False)),
        *(("127.0.65535", True), ("127.0.65536", False)),
        *(("127.0.0.255", True), ("127.0.0.256", False)),
        *(("10.0.256.1", False), ("10.256.0.1", False), ("256.0.0.1", False), ("10.256.1", False)),
        *(("10.0.0.0.1", False), ("0xa.0.0.1", True), ("0XA.0.0.1", True), ("012.0.0.1", True), ("0xg.0.0.1", False)),
    ],
)
def test_a_number_that_is_too_large_for_an_address_is_a_name(host: str, private: bool) -> None:
    assert Host("private").surely(url(host)) is private


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "a.localhost", "a.b.localhost", "printer.local", "db.internal", "router.home.arpa"),
        *("metadata", "metadata.google", "METADATA.example", "printer", "PRINTER.LOCAL."),
        *("nas.lan", "x.home", "x.corp", "db.svc", "localhost.localdomain", "wiki.intranet", "x.private", "fritz.box"),
        *("db.test", "nas.lab", "x.dmz", "kubernetes.default", "nas.tail1234.ts.net"),
        *("x.onion", "x.alt", "x.invalid", "pi.hole", "setup.ubnt.com"),
        *("fritz.nas", "192-168-1-1.abc.plex.direct", "7f000001.c0a80001.rbndr.us"),
        *("a.fritz.box", "routerlogin.net", "127.0.0.1.nip.io", "10-0-0-1.sslip.io", "localtest.me", "a.lvh.me"),
    ],
)
def test_names_that_lead_inside_are_private(host: str) -> None:
    assert Host("private").surely(url(host))
    assert Host("private").maybe(url(host))
    assert not Host("*").surely(url(host))


@pytest.mark.parametrize(
    "host", ["localhost.example.com", "local.example", "internal.com", "a.metadata.com", "lan.example"]
)
def test_names_that_only_resemble_private_ones_are_public(host: str) -> None:
    assert not Host("private").maybe(url(host))
    assert Host("*").surely(url(host))


def test_a_name_of_the_maximum_length_is_a_host_and_a_longer_one_may_be_anything() -> None:
    longest = "a." * 125 + "com"
    assert len(longest) == 253
    assert Host("*").surely(url(longest))
    assert not Host("*").surely(url(f"b{longest}"))
    assert Host("other.example").maybe(url(f"b{longest}"))


SHARP, ASCII, OTHER = "fu\u00dfball.de", "xn--fuball-cta.de", "fussball.de"


@pytest.mark.parametrize(
    ("glob", "host", "surely", "maybe"),
    [
        (SHARP, SHARP, True, True),
        (SHARP, ASCII, True, True),
        (ASCII, ASCII, True, True),
        (SHARP, OTHER, False, True),
        (OTHER, SHARP, False, True),
        (ASCII, SHARP, False, True),
        ("*.de", SHARP, True, True),
        ("\u03b2\u03cc\u03bb\u03bf\u03c2.gr", "\u03b2\u03cc\u03bb\u03bf\u03c3.gr", False, True),
        ("b\u00fccher.de", "B\u00dcCHER.de", True, True),
        ("b\u00fccher.de", "xn--bcher-kva.de", True, True),
    ],
)
def test_a_name_that_clients_encode_differently_is_sure_only_if_both_hosts_fit(
    glob: str, host: str, surely: bool, maybe: bool
) -> None:
    assert Host(glob).surely(url(host)) is surely
    assert Host(glob).maybe(url(host)) is maybe
