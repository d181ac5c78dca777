"""Nothing here sees the user's own configuration, or leaves anything behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory for handles and telemetry."""
    for name in list(os.environ):
        if name.startswith(("TE_", "LLMC_TE_")):
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("TOOLWIRE_STATE", str(folder))
    monkeypatch.setenv("TOOLWIRE_TE_CONFIG", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    yield folder
