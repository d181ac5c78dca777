"""Reading on a cluster, against a stand-in for Ray that runs each task when its result is asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from toolwire.cli import run
from toolwire.errors import install_command

JSON = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
ROW = {"model": "m", "text": f"<tool_call>\n{JSON}\n</tool_call>", "calls": [json.loads(JSON)]}


class Cluster(ModuleType):
    """A stand-in for the package."""

    class RayError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayError=self.RayError)
        self.started = self.stopped = 0
        self.waiting = self.most_waiting = 0
        self.failure: Exception | None = None

    def init(self, address: str, **_: Any) -> None:
        if address == "ray://nowhere":
            raise ConnectionError("no answer\nfrom there")
        self.started += 1

    def shutdown(self) -> None:
        self.stopped += 1

    def put(self, value: Any) -> Any:
        return value

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, function: Any) -> Any:
        def submit(*arguments: Any) -> Any:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
            return lambda: function(*arguments)

        return SimpleNamespace(remote=submit)

    def get(self, reference: Any) -> Any:
        self.waiting -= 1
        if self.failure is not None:
            raise self.failure
        return reference()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cluster:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text((json.dumps(ROW) + "\n") * 5_000, "utf-8")
    stand_in = Cluster()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    return stand_in


def test_batches_go_to_the_cluster(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reparse", "a.jsonl", "-f", "hermes", "--ray", "ray://head:10001", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == {"m": {"same": 5_000}}
    assert (cluster.started, cluster.stopped, cluster.waiting) == (1, 1, 0)
    assert cluster.most_waiting == 6  # three for each processor: the memory is bounded


def test_a_failure_of_the_cluster_is_one_line(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reparse", "a.jsonl", "--ray", "ray://nowhere"]) == 1
    assert (
        capsys.readouterr().err
        == "toolwire: the Ray cluster at ray://nowhere cannot be reached: no answer from there\n"
    )
    cluster.failure = cluster.RayError("a worker died\nand more")
    assert run(["reparse", "a.jsonl", "--ray", "auto"]) == 1
    assert capsys.readouterr().err == "toolwire: the Ray cluster at auto failed: a worker died\n"
    assert cluster.stopped == 1


@pytest.mark.parametrize("step", ["put", "cluster_resources", "remote"])
def test_a_cluster_that_fails_at_the_start_is_one_line(
    step: str, cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise cluster.RayError("the object store is full")

    monkeypatch.setattr(cluster, step, fail if step != "remote" else lambda _: SimpleNamespace(remote=fail))
    assert run(["reparse", "a.jsonl", "--ray", "auto"]) == 1
    assert capsys.readouterr().err == "toolwire: the Ray cluster at auto failed: the object store is full\n"
    assert cluster.stopped == 1


def test_without_the_package_the_extra_is_named(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run(["reparse", "a.jsonl", "--ray", "auto"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and install_command("ray") in error
    assert run(["reparse", "a.jsonl", "--ray", "auto", "--workers", "2"]) == 2
    assert "leave it out with --ray" in capsys.readouterr().err
