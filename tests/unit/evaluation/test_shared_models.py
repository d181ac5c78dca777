"""The memory for prompts of models that an evaluation loads."""

import os

import pytest

from toolwire.evaluation import shared_models


@pytest.mark.parametrize(("gibibytes", "expected"), [(64, 2048), (16, 2048), (8, 1024), (2, 256)])
def test_prompts_get_a_share_of_the_memory_of_a_small_machine(
    gibibytes: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gibibytes << 18}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    caches: list[int] = []
    monkeypatch.setattr(shared_models, "locate", lambda name: name)
    monkeypatch.setattr(shared_models, "LocalModel", lambda path, prompt_cache: caches.append(prompt_cache))
    shared_models.load_shared.__wrapped__("0.5b")
    assert caches == [expected]


def test_machine_that_does_not_say_its_memory_gives_the_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError("unrecognized configuration name")

    for sysconf in ({"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": -1}.__getitem__, unknown):
        monkeypatch.setattr(os, "sysconf", sysconf)
        assert shared_models._prompt_cache() == 2048
    monkeypatch.delattr(os, "sysconf")
    assert shared_models._prompt_cache() == 2048
