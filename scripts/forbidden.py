"""Refuse constructs that run data as code or hide errors: exit status 1 and a line for each."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

CALLS = frozenset({"eval", "exec", "compile", "__import__"})
METHODS = frozenset({("yaml", "load"), ("yaml", "unsafe_load"), ("os", "system"), ("os", "popen")})
MODULES = frozenset({"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"})
CATCH_ALL = frozenset({"Exception", "BaseException"})


def findings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and description of every forbidden construct."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield node.lineno, f"call of {name}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="builtins"), attr=name)) if name in CALLS:
                yield node.lineno, f"call of builtins.{name}"
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in METHODS:
                yield node.lineno, f"use of {module}.{name}"
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.partition(".")[0] in MODULES:
                        yield node.lineno, f"import of {alias.name}"
            case ast.ImportFrom(module=str(module), names=names):
                if module.partition(".")[0] in MODULES or any((module, alias.name) in METHODS for alias in names):
                    yield node.lineno, f"import from {module}"
            case ast.ExceptHandler(type=None):
                yield node.lineno, "bare except"
            case ast.ExceptHandler(type=kind) if kind is not None:
                caught = kind.elts if isinstance(kind, ast.Tuple) else [kind]
                for one in caught:
                    if isinstance(one, ast.Name) and one.id in CATCH_ALL:
                        yield node.lineno, f"except {one.id}"
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                yield node.value.lineno, "shell=True"


def main() -> int:
    """Check the library, and the scripts themselves."""
    root = Path(__file__).resolve().parent.parent
    count = 0
    for path in sorted([*root.glob("src/**/*.py"), *root.glob("scripts/*.py")]):
        for line, what in sorted(findings(ast.parse(path.read_bytes(), str(path)))):
            print(f"{path.relative_to(root)}:{line}: {what}", file=sys.stderr)
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
