"""Check the public surface: the names in `__all__` of the public packages, and nothing else.

- README, documentation and examples import public names alone, and the package itself imports no public package.
- Every public name has a docstring, and no public function takes `**keywords: Any`.
- The stubs are fresh, and so is the snapshot of all signatures, tests/public_api.txt.

`--write` rewrites the snapshot: a change of a public signature is then visible in its diff.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import enum
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "toolwire"
SNAPSHOT = ROOT / "tests" / "public_api.txt"
PACKAGES = (
    "toolwire",
    *(f"toolwire.{name}" for name in ["agent", "mcp", "models", "policy", "telemetry", "testing", "wire"]),
)
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/**/*.py", "examples/**/*.ipynb", "examples/**/*.md")
ALLOWED = 0
"""Imports of names that are not public, in blocks that show internal limits; the number may only fall."""

MAX_DEFAULT = 60
"""Characters of a field's default that the snapshot shows."""

_BLOCK = re.compile(r"^([ \t]*)```(?:python|py|pycon)\b[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class _Written:
    """An annotation that prints as it is written."""

    def __init__(self, annotation: Any) -> None:
        self._text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    def __repr__(self) -> str:
        return self._text


def public_names() -> dict[str, list[str]]:
    """Return the names of each public package, sorted."""
    return {package: sorted(importlib.import_module(package).__all__) for package in PACKAGES}


def imports(code: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import of Toolwire; the name is "" for `import module`."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "toolwire")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "toolwire":
            yield from ((node.module or "", alias.name) for alias in node.names)


def code_of(path: Path) -> Iterator[str]:
    """Yield the Python code of a file: of a page its blocks, of a doctest its examples."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        yield text
    elif path.suffix == ".ipynb":
        import json

        yield from ("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    else:
        for _, indented in _BLOCK.findall(text):
            block = textwrap.dedent(indented)
            examples = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
            yield "\n".join(examples) if examples else block


def foreign_imports(public: dict[str, list[str]]) -> Iterator[str]:
    """Yield the imports in pages and examples of names that are not public."""
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            for code in code_of(path):
                for module, name in imports(code):
                    if module not in public or (name and name not in public[module]):
                        yield f"{path.relative_to(ROOT)}: {module} {name}".rstrip() + " is not public"


def inner_imports() -> Iterator[str]:
    """Yield the imports of public packages inside the package: there, a name comes from its home."""
    for path in sorted(SOURCE.rglob("*.py")):
        for module, name in imports(path.read_text("utf-8")):
            if module in PACKAGES and module != "toolwire.testing" and name:
                folder = SOURCE.joinpath(*module.split(".")[1:])
                if not (folder / name).is_dir() and not (folder / f"{name}.py").is_file():
                    yield f"{path.relative_to(ROOT)}: imports {name} from {module}, not from its home"


def functions_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public functions of a public value: itself, or its methods with `__init__`."""
    if inspect.isclass(value):
        for key, member in sorted(vars(value).items()):
            inner = getattr(member, "__func__", member)
            if inspect.isfunction(inner) and (key == "__init__" or not key.startswith("_")):
                yield f"{name}.{key}", inner
    elif inspect.isroutine(value):
        yield name, value


def documentation(value: Any) -> str:
    """Return the docstring of a value; not the signature that a dataclass makes up, nor what is inherited."""
    text = (vars(value).get("__doc__") if inspect.isclass(value) else getattr(value, "__doc__", "")) or ""
    return "" if inspect.isclass(value) and text.startswith(f"{value.__name__}(") else text


def undocumented(public: dict[str, list[str]]) -> Iterator[str]:
    """Yield public names without a docstring, and public functions that take `**keywords: Any`."""
    for package, names in public.items():
        for name in names:
            value = getattr(importlib.import_module(package), name)
            if inspect.isclass(value) or inspect.isroutine(value):
                if not documentation(value).strip():
                    yield f"{package}.{name} has no docstring"
                for full, function in functions_of(f"{package}.{name}", value):
                    if not full.endswith("__init__") and not documentation(function).strip():
                        yield f"{full} has no docstring"
                    for parameter in inspect.signature(function).parameters.values():
                        if parameter.kind is parameter.VAR_KEYWORD and parameter.annotation in ("Any", Any):
                            yield f"{full} takes **{parameter.name}: Any"


def snapshot(public: dict[str, list[str]]) -> str:
    """Return all public names with their signatures, one a line."""
    lines: list[str] = []
    first: dict[int, str] = {}
    for package, names in public.items():
        for name in names:
            value, full = getattr(importlib.import_module(package), name), f"{package}.{name}"
            if (earlier := first.setdefault(id(value), full)) != full:
                lines.append(f"{full} = {earlier}")
            else:
                lines.extend(described(full, value))
    return "\n".join(lines) + "\n"


def described(name: str, value: Any) -> Iterator[str]:
    """Yield the lines of one public name: its kind, its signature and its public members."""
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}({bases})"
        if issubclass(value, enum.Enum):
            yield from (f"    {member.name} = {member.value!r}" for member in value)
            return
        if dataclasses.is_dataclass(value):
            yield from (field_of(field) for field in dataclasses.fields(value) if field.name[0] != "_")
        else:
            hints = {**inspect.get_annotations(value), **getattr(value, "__annotations__", {})}
            yield from (f"    {key}: {hint}" for key, hint in sorted(hints.items()) if not key.startswith("_"))
        for key, member in sorted(vars(value).items()):
            if isinstance(member, property) and not key.startswith("_"):
                yield f"    {key}: {member.fget.__annotations__.get('return', 'Any')} (property)"
        generated = dataclasses.is_dataclass(value) and value.__dataclass_params__.init  # type: ignore[attr-defined]
        for full, function in functions_of(name, value):
            if not (generated and full.endswith(".__init__")):
                yield f"    {full.rpartition('.')[2]}{signature(function)}"
    elif inspect.isroutine(value):
        yield f"{name}{signature(value)}"
    elif get_args(value):
        yield f"{name} = {' | '.join(getattr(member, '__name__', str(member)) for member in get_args(value))}"
    else:
        yield f"{name}: {type(value).__name__}"


def field_of(field: dataclasses.Field[Any]) -> str:
    """Return the line of a dataclass field."""
    default = _ADDRESS.sub("", f" = {field.default!r}")
    if field.default_factory is not dataclasses.MISSING or len(default) > MAX_DEFAULT:
        default = " = ..."
    elif field.default is dataclasses.MISSING:
        default = ""
    return f"    {field.name}: {field.type}{default}"


def signature(function: Any) -> str:
    """Return a signature as it is written, without addresses in memory."""
    written = inspect.signature(function)
    parameters = [
        parameter
        if parameter.annotation is parameter.empty
        else parameter.replace(annotation=_Written(parameter.annotation))
        for parameter in written.parameters.values()
    ]
    written = written.replace(parameters=parameters)
    if written.return_annotation is not written.empty:
        written = written.replace(return_annotation=_Written(written.return_annotation))
    return _ADDRESS.sub("", str(written)) + "".join(options_of(function))


def options_of(function: Any) -> Iterator[str]:
    """Yield the keywords that a function takes as an unpacked TypedDict."""
    for parameter in inspect.signature(function).parameters.values():
        match = re.search(r"Unpack\[(?:\w+\.)*(\w+)\]", str(parameter.annotation))
        if match is not None:
            hints = getattr(inspect.unwrap(function), "__globals__", {})[match[1]].__annotations__
            keys = (f"{key}: {getattr(hint, '__forward_arg__', hint)}" for key, hint in sorted(hints.items()))
            yield f" with {match[1]}({', '.join(keys)})"


def stale_snapshot(public: dict[str, list[str]]) -> Iterator[str]:
    """Yield the lines in which the snapshot differs from the package."""
    recorded = SNAPSHOT.read_text("utf-8").splitlines() if SNAPSHOT.is_file() else []
    changes = difflib.unified_diff(recorded, snapshot(public).splitlines(), lineterm="", n=0)
    changed = [line for line in changes if line[0] in "+-" and not line.startswith(("+++", "---"))]
    if changed:
        yield "tests/public_api.txt differs from the package: see the change, then run scripts/check_public.py --write"
        yield from changed[:20]


def main() -> int:
    """Print what is wrong; return 0 if nothing is."""
    public = public_names()
    if "--write" in sys.argv[1:]:
        SNAPSHOT.write_text(snapshot(public), "utf-8")
        return 0
    foreign = list(foreign_imports(public))
    problems = [*inner_imports(), *undocumented(public), *stale_snapshot(public)]
    if len(foreign) > ALLOWED:
        problems += [*foreign, f"{len(foreign)} imports are not public, {ALLOWED} are allowed"]
    elif len(foreign) < ALLOWED:
        problems.append(f"only {len(foreign)} imports are not public: lower ALLOWED in scripts/check_public.py")
    print("".join(f"{problem}\n" for problem in problems), end="", file=sys.stderr)
    stubs = subprocess.run([sys.executable, ROOT / "scripts" / "write_stubs.py", "--check"], check=False)
    return 1 if problems or stubs.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
