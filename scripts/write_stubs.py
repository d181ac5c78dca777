"""Write `__init__.pyi` of every package that exports names lazily; `--check` only says which are out of date.

Type checkers, editors and the reference documentation read these files; the table in `__init__.py` is the source.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "toolwire"
MARK = "# Written by scripts/write_stubs.py from the table in __init__.py.\n"


def table_of(source: str) -> Mapping[str, str]:
    """Return the table that a package passes to `lazy_exports`; empty if there is none."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="lazy_exports"), args=[_, table]):
                homes: dict[str, str] = ast.literal_eval(table)
                return homes
    return {}


def isort_key(name: str) -> tuple[bool, bool, str]:
    """Sort constants first, then classes, then functions, as ruff does."""
    return not name.isupper(), name[0].islower(), name


def stub_of(homes: Mapping[str, str]) -> str:
    """Return the stub: one import a name, each marked as a re-export."""
    lines = [
        f"from toolwire.{home} import {name} as {name}\n"
        for home, names in sorted(homes.items())
        for name in sorted(names.split(), key=isort_key)
    ]
    listed = "".join(
        f"    {name!r},\n".replace("'", '"') for name in sorted(" ".join(homes.values()).split(), key=isort_key)
    )
    return MARK + "\n" + "".join(lines) + f"\n__all__ = [\n{listed}]\n"


def main() -> int:
    """Write the stubs, or compare them."""
    check, stale = "--check" in sys.argv[1:], 0
    for path in sorted(ROOT.rglob("__init__.py")):
        homes = table_of(path.read_text("utf-8"))
        stub = path.with_suffix(".pyi")
        if not homes or (stub.is_file() and stub.read_text("utf-8") == stub_of(homes)):
            continue
        if check:
            print(f"{stub.relative_to(ROOT.parent.parent)} is out of date: run scripts/write_stubs.py", file=sys.stderr)
            stale = 1
        else:
            stub.write_text(stub_of(homes), "utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
