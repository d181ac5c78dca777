"""Check the shape of the source tree: exit status 1 and a line for each rule that is broken.

Ruff and import-linter check what they can; this script checks what they cannot.
"""

from __future__ import annotations

import ast
import configparser
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "toolwire"
MAX_TOP_MODULES = 8
MAX_LAYERS = 15
MAX_MODULE_LINES = 500


def layout_faults() -> Iterator[str]:
    """Yield a sentence for each fault."""
    modules = sorted(PACKAGE.rglob("*.py"))
    if (count := len(list(PACKAGE.glob("*.py")))) > MAX_TOP_MODULES:
        yield f"{count} modules beside the packages; at most {MAX_TOP_MODULES}: put a new module into a package"
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    if (count := len(contracts["importlinter:contract:flow"]["layers"].split("\n")) - 1) > MAX_LAYERS:
        yield f"{count} layers; at most {MAX_LAYERS}"
    for path in modules:
        if (count := len(path.read_text("utf-8").splitlines())) > MAX_MODULE_LINES:
            yield f"{path.relative_to(ROOT)} has {count} lines; split it where a second concept begins"
    outside_formats = [path for path in modules if path.parent.name != "formats" and not path.stem.startswith("__")]
    yield from _repeated("modules", ((path.name, path) for path in outside_formats))
    yield from _repeated("classes", ((name, path) for path in modules for name in _public_classes(path)))


def _public_classes(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_bytes(), str(path)).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def _repeated(kind: str, named: Iterator[tuple[str, Path]]) -> Iterator[str]:
    places = defaultdict(list)
    for name, path in named:
        places[name].append(str(path.relative_to(PACKAGE)))
    for name, paths in sorted(places.items()):
        if len(paths) > 1:
            yield f"{len(paths)} {kind} are called {name}: {', '.join(paths)}"


def main() -> int:
    """Print the faults."""
    faults = list(layout_faults())
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
