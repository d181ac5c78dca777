"""Tools of a Python file."""

import sys
from pathlib import Path

import pytest

from toolwire import ConfigurationError, ToolError
from toolwire.execution.tool_files import python_tools

TOOL = "import toolwire\n\n@toolwire.tool\ndef add(a: int, b: int) -> int:\n    return a + b\n"


def test_each_tool_of_the_file_is_returned_once_and_runs(tmp_path: Path) -> None:
    file = tmp_path / "my tools.py"
    file.write_text(f"{TOOL}\nsum_of = add\nnumber = 3\n")
    (add,) = python_tools(file)
    assert add.definition.name == "add"
    assert add(1, 2) == 3


def test_the_module_has_a_name_that_no_import_meets(tmp_path: Path) -> None:
    before = set(sys.modules)
    for directory in ("one", "two"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "my-calendar.py").write_text(TOOL)
        python_tools(str(tmp_path / directory / "my-calendar.py"))
    names = sorted(name for name in set(sys.modules) - before if "calendar" in name)
    assert len(names) == 2, "files of one name in two directories do not replace each other"
    for name in names:
        stem, _, digest = name.rpartition("_")
        assert stem == "tools_my_calendar"
        assert len(digest) == 12


@pytest.mark.parametrize("name", ["missing.py", "tools.txt", "directory.py"])
def test_what_is_no_python_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "tools.txt").write_text(TOOL)
    (tmp_path / "directory.py").mkdir()
    with pytest.raises(ConfigurationError, match=f"cannot read .*{name}: no Python file is there"):
        python_tools(tmp_path / name)


def test_an_error_of_the_file_is_reported_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("raise ValueError('no key')\n")
    with pytest.raises(ToolError, match=r"broken\.py cannot be run: .*no key") as caught:
        python_tools(file)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_file_without_tools_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plain.py"
    file.write_text("def add(a, b):\n    return a + b\n")
    with pytest.raises(ConfigurationError, match=r"plain\.py makes no tool; put @toolwire\.tool"):
        python_tools(file)
