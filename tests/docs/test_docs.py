"""The documentation is correct: its code runs and prints what it shows, and its tables and lists match the code."""

from __future__ import annotations

import ast
import builtins
import configparser
import importlib
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from scripts import check_public
from tests.docs.blocks import LANGUAGES, PAGES, ROOT, Block, blocks, page_id, run_page

import toolwire
from toolwire._surface import FRAMEWORK_MODULES, PUBLIC_PACKAGES
from toolwire.cli.program import program
from toolwire.messages import REPAIRS, ProblemKind
from toolwire.runtime.process_groups import SHARED_GROUP

ARCHITECTURE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "src" / "toolwire"
FILES_OF_USERS = {"config.toml", "te.toml", "toolwire.toml"}

pages = pytest.mark.parametrize("page", [pytest.param(page, id=page_id(page)) for page in PAGES])


def _update() -> dict[str, Any]:
    """Return the names of scripts/update_docs.py, without writing a compiled file."""
    return runpy.run_path(str(ROOT / "scripts" / "update_docs.py"), run_name="docs_update")


@pages
def test_code_of_page_runs_and_prints_the_output_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path / "state"))  # outside the page's own directory
    run_page(page, folder)


@pages
def test_every_code_block_names_its_language(page: Path) -> None:
    assert [str(block) for block in blocks(page) if block.language not in LANGUAGES] == []


@pages
def test_code_of_page_imports_nothing_that_it_does_not_use(page: Path) -> None:
    code = "\n".join(block.code for block in blocks(page) if block.language == "python")
    shown = "\n".join(re.findall(r"^(?:>>>|\.\.\.) (.*)$", code, re.MULTILINE))  # doctests
    tree = ast.parse("\n".join(block.code for block in blocks(page) if _is_program(block)))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | set(re.findall(r"\w+", shown))
    assert sorted(names - used) == []


def _is_program(block: Block) -> bool:
    return block.language == "python" and not block.code.startswith(">>>")


_FENCE = "```"


@pytest.mark.parametrize(
    "text",
    [
        f"{_FENCE}python\nprint(1)\n{_FENCE}\n\n{_FENCE}text\n2\n{_FENCE}\n",
        f"{_FENCE}python\nprint(1)\n{_FENCE}\nNot directly after it.\n{_FENCE}text\n1\n{_FENCE}\n",
        f"{_FENCE}python\nassert 1 == 2\n{_FENCE}\n",
        f"{_FENCE}python\n>>> 1 + 1\n3\n{_FENCE}\n",
        f"{_FENCE}console\n$ echo a\nb\n{_FENCE}\n",
        f"{_FENCE}console\n$ echo a; exit 1\na\n{_FENCE}\n",
    ],
)
def test_run_page_fails_for_wrong_output(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)


def test_run_page_passes_for_correct_output(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"{_FENCE}python\nprint(x := 1)\n{_FENCE}\n\n{_FENCE}text\n1\n{_FENCE}\n\n{_FENCE}python\n>>> x\n1\n{_FENCE}\n"
        f'{_FENCE}json title="a.json"\n[1]\n{_FENCE}\n\n{_FENCE}console\n$ cat a.json\n[1]\n$ true\n{_FENCE}\n'
    )
    run_page(page, tmp_path)


def test_generated_parts_are_up_to_date() -> None:
    assert _update()["stale"]() == [], "run scripts/update_docs.py"


def test_a_table_describes_each_name_by_its_own_docstring() -> None:
    """Also where the name is the beginning of another one."""
    describe = _update()["_docstring"]
    assert describe("toolwire.grammars.message_grammar", "Grammar") == "A grammar as an engine takes it."
    assert (
        describe("toolwire.grammars.message_grammar", "GrammarSyntax") == "The languages in which grammars are written."
    )


def test_outdated_part_is_regenerated() -> None:
    update = _update()
    text = (ROOT / "docs" / "how-to" / "local-models.md").read_text("utf-8")
    broken = text.replace("-instruct-q4_k_m |", "-instruct-q5_k_m |")
    assert broken != text
    assert update["updated"](broken) == text


def _prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^(`{3,}).*?^\1[ ]*$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


@pages
def test_files_named_in_page_exist(page: Path) -> None:
    prose = _prose(page)
    named = set(re.findall(r"`([\w./-]+/|[\w./-]+\.(?:py|md|toml|jsonl)|\.importlinter)`", prose))
    named |= set(re.findall(r"\]\(([^):#]+)\)", prose))
    shown = prose + "".join(block.code for block in blocks(page) if block.language == "sh")
    named |= set(re.findall(r"(?<![\w/.])((?:scripts|benchmarks|docs|tests|wire)/[\w./-]*\w)", shown))
    named -= FILES_OF_USERS
    places = (ROOT, PACKAGE, page.parent)
    missing = [name for name in named if "NAME" not in name and not any((place / name).exists() for place in places)]
    assert sorted(missing) == []


@pages
def test_options_of_commands_in_sh_blocks_exist(page: Path) -> None:
    commands = typer.main.get_command(program([])).commands  # type: ignore[attr-defined]
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.code.splitlines()]
    for line in lines:
        for match in re.finditer(r"\btoolwire ([\w-]+)(?: (\w+))?([^#|]*)", line):
            command = commands[match[1]]
            command = getattr(command, "commands", {}).get(match[2], command)  # of a group, or the command itself
            known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
            assert set(re.findall(r"(?<=\s)--?[\w-]+", match[3])) <= known, line


@pages
def test_classes_named_in_page_exist(page: Path) -> None:
    known = set(dir(builtins))
    for info in pkgutil.walk_packages(toolwire.__path__, "toolwire."):
        if info.name in FRAMEWORK_MODULES:  # their frameworks may not be installed
            known |= set(check_public.framework_names()[info.name])
        elif not info.name.endswith("__main__"):
            known |= set(vars(importlib.import_module(info.name)))
    named = set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)(?:\.\w+)?(?:\(.*?\))?`", _prose(page)))
    assert sorted(named - known) == []


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


def test_reading_rules_list_every_repair() -> None:
    rules = (ROOT / "docs" / "explanation" / "reading-rules.md").read_text("utf-8")
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    repairs = {name for text in sources for name in re.findall(r'(?:repaired|_fix|_note)\(\s*"(\w+)"', text)}
    repairs |= {name for text in sources for name in re.findall(r'repairs\.append\("(\w+)"\)', text)} | {"fallback"}
    assert repairs <= set(REPAIRS)
    assert sorted(name for name in REPAIRS if f"`{name}`" not in rules) == []


def test_reading_rules_list_every_kind_of_problem() -> None:
    rules = (ROOT / "docs" / "explanation" / "reading-rules.md").read_text("utf-8")
    assert sorted(kind for kind in get_args(ProblemKind) if f"`{kind}`" not in rules) == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "docs/reference/index.md"])
def test_page_lists_every_public_package(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert [package for package in PUBLIC_PACKAGES if f"`{package}`" not in text] == []


def test_reference_lists_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    table = (ROOT / "docs" / "reference" / "index.md").read_text("utf-8").partition("## Extras")[2]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == set(extras)


def test_configuration_lists_every_environment_variable() -> None:
    sources = [path.read_text("utf-8") for path in PACKAGE.rglob("*.py")]
    variables = {name for text in sources for name in re.findall(r'"((?:TOOLWIRE|TE)_[A-Z_]+)"', text)}
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    table = page.partition("## Environment variables")[2]
    assert sorted(name for name in variables - {SHARED_GROUP} if f"`{name}`" not in table) == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=page_id)
def test_page_names_no_path_of_a_machine(page: Path) -> None:
    generated = r"(<!-- begin (?:providers|commands) -->).*?<!-- end -->"
    text = re.sub(generated, "", page.read_text("utf-8"), flags=re.DOTALL)
    assert re.findall(r"/home/|/root/|/tmp/|localhost", text) == []


def test_format_in_the_guide_does_not_exist_yet() -> None:
    """Once Toolwire has this format, the guide needs another example."""
    guide = (ROOT / "docs" / "how-to" / "adding-a-format.md").read_text("utf-8")
    (name,) = re.findall(r'^    name="(\w+)",$', guide.split("## A new format")[1], re.MULTILINE)
    assert name not in toolwire.formats()


def test_every_public_name_is_in_the_reference() -> None:
    reference = ROOT / "docs" / "reference" / "api"
    pages = {package: reference / f"{package.rpartition('.')[2]}.md" for package in PUBLIC_PACKAGES}
    assert sorted(pages.values()) == sorted(reference.glob("*.md"))
    for package, page in pages.items():
        text = page.read_text("utf-8")
        names = importlib.import_module(package).__all__
        assert [name for name in names if f"| [`{name}`](" not in text] == []
    documented = {
        name for page in reference.glob("*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
    }
    linked = {
        name
        for page in reference.glob("*.md")
        for name in re.findall(r"^\| \[.*?\]\(.*?#(\S+)\) ", page.read_text(), re.M)
    }
    assert linked == documented


def test_navigation_lists_every_page() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    listed = re.findall(r"'([\w/-]+\.md)'", str(site["project"]["nav"]))
    pages_of_site = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")]
    assert sorted(listed) == sorted(pages_of_site)


def test_site_builds_without_warnings(tmp_path: Path) -> None:
    """A broken link, a missing anchor or an unknown name fails the build."""
    zensical = shutil.which("zensical", path=str(Path(sys.executable).parent))
    if zensical is None:
        pytest.skip("needs the extra docs")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    command = [zensical, "build", "--clean", "--strict"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert (tmp_path / "site" / "reference" / "api" / "toolwire" / "index.html").is_file()
