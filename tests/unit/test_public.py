"""What the package promises: its names, its documentation, what importing it costs, and its formats."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripts import check_public

import toolwire
from toolwire._surface import PUBLIC_PACKAGES
from toolwire.wire import formats as descriptions
from toolwire.wire.format_registry import AUTO
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

FORMAT_LINES = 60
"""A format has fewer."""

IO_MODULES = (
    "anyio", "asyncio", "concurrent.futures", "ftplib", "http.client", "httpx", "multiprocessing", "requests", "select",
    "selectors", "smtplib", "socket", "socketserver", "sqlite3", "ssl", "starlette", "subprocess", "tempfile",
    "threading", "urllib.request", "zipfile",
)  # fmt: skip
HEAVY_MODULES = ("re2", "rich", "typer", "xllamacpp", "filelock", "platformdirs")
DEPENDENCIES = "import docstring_parser, jsonschema_rs; from pydantic import BaseModel, TypeAdapter"


def test_all_is_sorted_and_names_what_there_is() -> None:
    assert toolwire.__all__ == sorted(toolwire.__all__)
    assert len(set(toolwire.__all__)) == len(toolwire.__all__)
    assert [name for name in toolwire.__all__ if not hasattr(toolwire, name)] == []
    assert set(toolwire.__all__) <= set(dir(toolwire))


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="'toolwire' has no attribute 'nothing'"):
        toolwire.nothing  # noqa: B018


@pytest.mark.parametrize(
    "check",
    [
        check_public.undocumented,
        check_public.stale_snapshot,
        check_public.foreign_names,
        check_public.hidden_references,
    ],
)
def test_the_public_surface_is_documented_recorded_and_enough(check: Callable[..., Iterator[str]]) -> None:
    assert list(check(check_public.public_names())) == []


def test_the_package_imports_each_name_from_its_home() -> None:
    assert list(check_public.inner_imports()) == []


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_no_public_name_is_also_that_of_a_module(package: str) -> None:
    module = importlib.import_module(package)
    modules = {found.name for found in pkgutil.iter_modules(getattr(module, "__path__", []))}
    assert modules & set(module.__all__) == set()


def _loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    return set(json.loads(done.stdout))


RUNNING = {
    "Agent", "AgentConfig", "ApprovalAnswer", "AllowedRoots", "Approval", "Budget", "Client",
    "CommandSettings", "Confirm", "answer_tool", "Disclosure", "Envelope",
    "EnvelopeDocument", "EnvelopeHeader", "EnvelopeSection", "ExecutorOptions", "Issue", "Outcome", "Together",
    "ToolExecutor", "ToolRegistry", "builtin_tools", "command_tools", "count_definitions", "editing_tools",
    "dump_messages", "dump_session", "ending_tools", "load_configuration", "load_messages", "load_session", "present",
    "read_envelope", "read_handle", "reading_tools",
}  # fmt: skip
"""Names from the part that runs things, which may do IO."""


def test_importing_what_reads_and_writes_does_no_io() -> None:
    loaded = _loaded(f"from toolwire import {', '.join(sorted(set(toolwire.__all__) - RUNNING))}")
    own = loaded - _loaded(DEPENDENCIES)  # pydantic looks up a few of them itself
    assert sorted(own & set(IO_MODULES)) == []
    assert sorted(loaded & {"asyncio", "subprocess", "httpx", "multiprocessing", *HEAVY_MODULES}) == []
    outer = ("toolwire.cli", "toolwire.agent", "toolwire.models.local", "toolwire.builtin")
    assert sorted(name for name in loaded if name.startswith(outer)) == []


def test_importing_the_built_in_tools_loads_little() -> None:
    loaded = _loaded("import toolwire.builtin.toolsets, toolwire.execution.registry")
    assert sorted(loaded & {"asyncio", "subprocess", "tempfile", *HEAVY_MODULES}) == []


def test_importing_costs_nothing_until_a_name_is_used() -> None:
    assert {name for name in _loaded("import toolwire") if name.startswith("toolwire")} == {
        "toolwire",
        "toolwire._surface",
    }
    assert "pydantic" not in _loaded("import toolwire")


def test_names_and_aliases_are_unique_in_any_case() -> None:
    names = [name.lower() for wire in FORMATS for name in (wire.name, *wire.aliases)]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
    assert AUTO not in names
    for wire in FORMATS:
        assert all(toolwire.get_format(name.upper()) is wire for name in (wire.name, *wire.aliases))
    assert toolwire.formats() == tuple(wire.name for wire in FORMATS)
    assert toolwire.format_names() == {
        name.lower(): wire.name for wire in FORMATS for name in (wire.name, *wire.aliases)
    }


def _files() -> list[Path]:
    folder = Path(descriptions.__file__).parent
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


@pytest.mark.mission("D60")
def test_every_format_has_a_file_of_its_name_and_the_other_way_round() -> None:
    assert [path.stem for path in _files()] == sorted(wire.name for wire in FORMATS)


@pytest.mark.mission("D60")
@pytest.mark.parametrize("path", _files(), ids=lambda path: path.stem)
def test_a_format_is_one_short_file(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < FORMAT_LINES


@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.name)
def test_a_format_says_what_it_is(wire: WireFormat) -> None:
    module = sys.modules[f"{descriptions.__name__}.{wire.name}"]
    assert module.FORMAT is wire
    assert module.__doc__
    assert wire.title
    assert wire.models
    if wire.blocks:
        assert "    " in module.__doc__, "the docstring holds a sample"
        assert "ource" in module.__doc__, "the docstring names the source"


def test_the_type_information_is_shipped() -> None:
    assert (Path(toolwire.__file__).parent / "py.typed").is_file()


def test_an_unknown_format_suggests_the_nearest() -> None:
    with pytest.raises(toolwire.UnknownFormat, match="did you mean hermes") as caught:
        toolwire.parse("", format="hermess")
    assert isinstance(caught.value, KeyError)
    assert caught.value.suggestions[0] == "hermes"


def test_name_of_a_model_as_a_format_leads_to_its_profile() -> None:
    for name in ("Qwen/Qwen3-8B", "qwen3:8b"):
        with pytest.raises(toolwire.UnknownFormat) as caught:
            toolwire.parse("", format=name)
        hint = f"for a model's name use toolwire.profile({name!r}).format"
        assert str(caught.value) == f"unknown wire format {name!r}; {hint}"
