"""README and docs say what is true: their code runs and gives what they show, their tables and lists are the code's."""

from __future__ import annotations

import configparser
import importlib
import pkgutil
import re
import runpy
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from tests.docs.blocks import LANGUAGES, PAGES, ROOT, blocks, run_page

import toolwire
from toolwire.cli import program
from toolwire.messages import REPAIRS, ProblemKind

README = ROOT / "README.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
README_LINES = 180
PACKAGE = ROOT / "src" / "toolwire"
"""Files are named from the root of the repository or of the package."""

pages = pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])


def _update() -> dict[str, Any]:
    """The names in scripts/update_docs.py; run so that it leaves no compiled file among the docs."""
    return runpy.run_path(str(ROOT / "scripts" / "update_docs.py"), run_name="docs_update")


@pages
def test_code_runs_and_prints_what_is_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path / "state"))  # nothing of the user's, beside what the page sees
    run_page(page, folder)


@pages
def test_every_block_says_what_it_is(page: Path) -> None:
    assert [str(block) for block in blocks(page) if block.language not in LANGUAGES] == []


_FENCE = "```"


@pytest.mark.parametrize(
    "text",
    [
        f"{_FENCE}python\nprint(1)\n{_FENCE}\n\n{_FENCE}text\n2\n{_FENCE}\n",
        f"{_FENCE}python\nprint(1)\n{_FENCE}\nNot right behind it.\n{_FENCE}text\n1\n{_FENCE}\n",
        f"{_FENCE}python\nassert 1 == 2\n{_FENCE}\n",
        f"{_FENCE}python\n>>> 1 + 1\n3\n{_FENCE}\n",
        f"{_FENCE}console\n$ echo a\nb\n{_FENCE}\n",
        f"{_FENCE}console\n$ echo a; exit 1\na\n{_FENCE}\n",
    ],
)
def test_a_page_that_is_wrong_is_noticed(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)


def test_a_page_that_is_right_passes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"{_FENCE}python\nprint(x := 1)\n{_FENCE}\n\n{_FENCE}text\n1\n{_FENCE}\n\n{_FENCE}python\n>>> x\n1\n{_FENCE}\n"
        f"{_FENCE}json a.json\n[1]\n{_FENCE}\n\n{_FENCE}console\n$ cat a.json\n[1]\n$ true\n{_FENCE}\n"
    )
    run_page(page, tmp_path)


def test_generated_parts_are_fresh() -> None:
    assert _update()["stale"]() == [], "run scripts/update_docs.py"


def test_a_stale_part_is_noticed() -> None:
    update = _update()
    text = README.read_text("utf-8")
    broken = text.replace("-instruct-q4_k_m |", "-instruct-q5_k_m |")
    assert broken != text
    assert update["updated"](broken) == text


def _prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^(`{3,}).*?^\1[ ]*$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


@pages
def test_files_that_are_named_exist(page: Path) -> None:
    prose = _prose(page)
    named = set(re.findall(r"`([\w./-]+/|[\w./-]+\.(?:py|md|toml|jsonl)|\.importlinter)`", prose))
    named |= set(re.findall(r"\]\(([^):#]+)\)", prose))
    shown = prose + "".join(block.code for block in blocks(page) if block.language == "sh")
    named |= set(re.findall(r"(?<![\w/.])((?:scripts|benchmarks|docs|tests|wire)/[\w./-]*\w)", shown))
    places = (ROOT, PACKAGE, page.parent)
    missing = [name for name in named if "NAME" not in name and not any((place / name).exists() for place in places)]
    assert sorted(missing) == []


@pages
def test_commands_that_are_only_shown_have_their_options(page: Path) -> None:
    commands = typer.main.get_command(program([])).commands  # type: ignore[attr-defined]
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.code.splitlines()]
    for line in lines:
        match = re.search(r"\btoolwire (\w+)(?: (\w+))?(.*?)(?:#|$)", line)
        if match is None:
            continue
        command = commands[match[1]]
        command = getattr(command, "commands", {}).get(match[2], command)  # of a group, or the command itself
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--?[\w-]+", match[3])) <= known, line


@pages
def test_names_of_classes_exist(page: Path) -> None:
    known: set[str] = set()
    for info in pkgutil.walk_packages(toolwire.__path__, "toolwire."):
        if not info.name.endswith("__main__"):
            known |= set(vars(importlib.import_module(info.name)))
    named = set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)(?:\.\w+)?(?:\(.*?\))?`", _prose(page)))
    assert sorted(named - known - {"None", "True", "False"}) == []


def test_architecture_lists_the_layers_of_the_import_contract() -> None:
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    layers = [line for line in contract["importlinter:contract:flow"]["layers"].split("\n") if line]
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|[^|\n]+\|$", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(str(level), name) for level, line in enumerate(layers, 1) for name in line.split(" | ")]


def test_architecture_describes_every_module() -> None:
    text = ARCHITECTURE.read_text("utf-8")
    for package in (path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()):
        section = text.partition(f"<!-- begin modules {package.name} -->\n")[2].partition("<!-- end -->")[0]
        described = set(re.findall(r"^\| `([\w./]+)` \| [^|\n]+[^ |] \|$", section, re.MULTILINE))
        paths = [path for path in package.rglob("*.py") if not path.name.startswith("__")]
        modules = {path.relative_to(PACKAGE).as_posix() for path in paths if path.parent.name != "formats"}
        assert described - {"wire/formats/"} == modules, package.name


def test_every_repair_is_in_the_rules() -> None:
    rules = (ROOT / "docs" / "explanation" / "reading-rules.md").read_text("utf-8")
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    made = {name for text in sources for name in re.findall(r'(?:repaired|_fix|_note)\(\s*"(\w+)"', text)}
    made |= {name for text in sources for name in re.findall(r'repairs\.append\("(\w+)"\)', text)} | {"fallback"}
    assert made <= set(REPAIRS)
    assert sorted(name for name in REPAIRS if f"`{name}`" not in rules) == []


def test_every_kind_of_problem_is_in_the_rules() -> None:
    rules = (ROOT / "docs" / "explanation" / "reading-rules.md").read_text("utf-8")
    assert sorted(kind for kind in get_args(ProblemKind) if f"`{kind}`" not in rules) == []


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= README_LINES


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_pages_hold_nothing_of_one_machine(page: Path) -> None:
    text = page.read_text("utf-8")
    assert re.findall(r"/home/|/root/|/tmp/|localhost", text) == []


def test_the_new_format_of_the_guide_is_new() -> None:
    """The guide adds a format that is not there; once it is, the guide needs another."""
    guide = (ROOT / "docs" / "how-to" / "adding-a-format.md").read_text("utf-8")
    (name,) = re.findall(r'^    name="(\w+)",$', guide.split("## A format that is not there yet")[1], re.MULTILINE)
    assert name not in toolwire.formats()
