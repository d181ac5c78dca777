"""The scripts that check the layout of the source tree and its prose notice what they are for."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
CLASS = "class Reader:\n    pass\n"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check_public() -> ModuleType:
    return load("check_public")  # once, because it imports the whole package and parses every module


def tree(root: Path, **files: str) -> Path:
    (root / ".importlinter").write_text("[importlinter:contract:flow]\nlayers =\n    cli\n    errors\n")
    for name, text in files.items():
        path = root / "src" / "toolwire" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"errors": "", "wire__parser": CLASS, "wire__formats__hermes": "", "mcp__formats__hermes": ""}, []),
        ({f"module{number}": "" for number in range(9)}, ["9 modules beside the packages"]),
        ({"wire__results": "", "mcp__results": ""}, ["2 modules are called results.py: mcp/results.py, wire/results"]),
        ({"wire__a": CLASS, "mcp__b": CLASS}, ["2 classes are called Reader: mcp/b.py, wire/a.py"]),
        ({"wire__a": CLASS.replace("Reader", "_Reader"), "mcp__b": CLASS.replace("Reader", "_Reader")}, []),
        ({"wire__long": "x = 1\n" * 501}, ["src/toolwire/wire/long.py has 501 lines"]),
    ],
)
def test_layout_faults(
    files: dict[str, str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("check_layout")
    monkeypatch.setattr(module, "ROOT", tree(tmp_path, **files))
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "src" / "toolwire")
    faults = list(module.layout_faults())
    assert len(faults) == len(expected)
    assert all(fault.startswith(beginning) for fault, beginning in zip(faults, expected, strict=True))


def test_too_many_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("check_layout")
    monkeypatch.setattr(module, "ROOT", tree(tmp_path, errors=""))
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "src" / "toolwire")
    monkeypatch.setattr(module, "MAX_LAYERS", 1)
    assert list(module.layout_faults()) == ["2 layers; at most 1"]


def test_prose_figures_count_names_docstrings_words_and_comments(tmp_path: Path) -> None:
    source = '''"""What it is."""


def total(prices: list[int]) -> int:
    """Return the sum that somebody is told."""
    # Integers alone: a float would lose cents.
    made = sum(prices)
    for price in prices:
        made += price
    return made
'''
    tally = load("check_prose").count(tree(tmp_path, example=source), [])
    assert tally.places["names"] == [
        ("src/toolwire/example.py", 7, "made"),
        ("src/toolwire/example.py", 9, "made"),
    ]
    assert tally.bindings == 3
    assert tally.places["docstrings"] == [("src/toolwire/example.py", 1, "What it is.")]
    assert [(line, text.partition(":")[0]) for _, line, text in tally.places["words"]] == [
        (5, '"somebody"'),
        (5, '"told"'),
    ]
    assert tally.comments == 1


def test_prose_limits_may_only_improve(tmp_path: Path) -> None:
    module = load("check_prose")
    script = tmp_path / "check_prose.py"
    script.write_text((SCRIPTS / "check_prose.py").read_text())
    before = dict(module.LIMITS)
    module.ratchet({**before, "vague_names": 0.0, "riddle_docstrings": 10_000, "comments": 1_000.0}, script)
    text = script.read_text()
    assert '"vague_names": 0.0,' in text
    assert f'"riddle_docstrings": {before["riddle_docstrings"]},' in text
    assert '"comments": 1000.0,' in text


@pytest.mark.parametrize(
    ("code", "faults"),
    [
        (
            "import toolwire\nfrom toolwire import parse, policy\nfrom toolwire.agent import Agent\ntoolwire.parse('')",
            [],
        ),
        ("import toolwire.policy\ntoolwire.policy.Rule('deny')\nimport os\nos._exit(1)", []),
        ("from toolwire.wire.stream_parser import parse", ["toolwire.wire.stream_parser parse is not public"]),
        ("from toolwire import no_name", ["toolwire no_name is not public"]),
        ("import toolwire\ntoolwire.wire.stream_parser.parse('')", ["toolwire.wire.stream_parser is not public"]),
        ("import toolwire\ntoolwire.no_name", ["toolwire.no_name is not public"]),
        ("agent._executor.run()", ["agent._executor is private"]),
        ("x = 1\nprint(x", ["line 2 of a block is not Python, so its names cannot be checked"]),
    ],
)
def test_names_that_are_not_public_are_seen_in_code(code: str, faults: list[str], check_public: ModuleType) -> None:
    assert list(check_public.foreign_in(code, check_public.public_names())) == faults


class _Sample:
    def __init__(self, size: int, name: str) -> None:
        self.size = size
        self.names: list[str] = [name]
        self.count = self._hidden = 0


def test_attributes_of_a_public_class_are_in_the_snapshot(check_public: ModuleType) -> None:
    assert sorted(check_public.attributes_of(_Sample)) == [("count", ""), ("names", "list[str]"), ("size", "int")]
    assert [line for line in check_public.described("Sample", _Sample) if "attribute" in line] == [
        "    count (attribute)",
        "    names: list[str] (attribute)",
        "    size: int (attribute)",
    ]


def test_references_to_names_that_are_not_public_are_seen(
    check_public: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Return it. See `REPAIRS`, `wire.result_text`, `Agent` and `size`."
    monkeypatch.setattr(check_public, "documentation", lambda value: text)
    faults = list(check_public.hidden_references({"toolwire": ["parse"]}))
    assert [fault.partition(" refers to ")[2] for fault in faults] == [
        "REPAIRS, which is not public",
        "wire.result_text, which is not public",
    ]
