"""When the gateway has an inspector: on loopback by default, beyond it only if asked for and with a key of its own."""

from __future__ import annotations

import pytest

from toolwire.cli.gateway_run import INSPECTOR_KEY, inspector_options
from toolwire.config.gateway_tables import GatewayInspectorTable, GatewayTable
from toolwire.errors import ConfigurationError


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INSPECTOR_KEY, raising=False)


@pytest.mark.parametrize(
    ("host", "enabled", "option", "has_one"),
    [
        ("127.0.0.1", None, None, True),
        ("127.0.0.1", None, False, False),
        ("127.0.0.1", False, None, False),
        ("127.0.0.1", False, True, True),
        ("0.0.0.0", None, None, False),
        ("0.0.0.0", True, False, False),
    ],
)
def test_an_inspector_is_there_where_only_this_machine_sees_it(
    host: str, enabled: bool | None, option: bool | None, has_one: bool
) -> None:
    table = GatewayTable(host=host, inspector=GatewayInspectorTable(enabled=enabled))
    assert (inspector_options(table, option) is not None) == has_one


@pytest.mark.parametrize("enabled", [True, None])
def test_beyond_loopback_it_needs_a_key_of_its_own(enabled: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    table = GatewayTable(host="0.0.0.0", inspector=GatewayInspectorTable(enabled=enabled))
    option = None if enabled else True
    with pytest.raises(ConfigurationError, match=f"set {INSPECTOR_KEY}"):
        inspector_options(table, option)
    monkeypatch.setenv(INSPECTOR_KEY, " its-own-key ")
    options = inspector_options(table, option)
    assert options is not None and options.key == "its-own-key" and "its-own-key" not in repr(options)


def test_the_file_sets_the_limits_and_each_key_is_new() -> None:
    limits = GatewayInspectorTable(content=False, exchanges=7, memory=3)
    table = GatewayTable(inspector=limits)
    first, second = inspector_options(table, None), inspector_options(table, None)
    assert first is not None and second is not None
    assert (first.content, first.exchanges, first.memory) == (False, 7, 3)
    assert len(first.key) >= 32 and first.key != second.key
