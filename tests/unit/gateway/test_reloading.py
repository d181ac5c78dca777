"""The watched configuration file of a running gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from toolwire.gateway.model_table import ModelTable
from toolwire.gateway.reloading import WatchedFile, reload_models


def test_a_change_between_reading_and_watching_counts(tmp_path: Path) -> None:
    path = tmp_path / "g.toml"
    path.write_text("port = 1")
    file = WatchedFile(path)
    path.write_text("port = 20")
    reports: list[str] = []

    async def work() -> None:
        async def load() -> ModelTable:
            return ModelTable([])

        watching = asyncio.create_task(reload_models(file, ModelTable([]), load, reports.append, seconds=0.0))
        while not reports:
            await asyncio.sleep(0)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching

    asyncio.run(asyncio.wait_for(work(), 60))
    assert reports == [f"{path} has changed: its models are used from now on"]


def test_a_file_that_goes_and_comes_back_has_changed_twice(tmp_path: Path) -> None:
    path = tmp_path / "g.toml"
    path.write_text("port = 1")
    file = WatchedFile(path)
    assert not file.has_changed()
    path.unlink()
    assert file.has_changed() and not file.has_changed()
    path.write_text("port = 1")
    assert file.has_changed() and not file.has_changed()
