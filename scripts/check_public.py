"""Check the public surface: the names in `__all__` of the public packages, and nothing else.

- README, documentation and examples use public names alone, and the package itself imports no public package.
- Every public name has a docstring, which refers to no name that is not public; no public function takes
  `**keywords: Any`; the types in public signatures that are not public may only become fewer.
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
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from toolwire._surface import FRAMEWORK_MODULES, PUBLIC_PACKAGES

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "toolwire"
SNAPSHOT = ROOT / "tests" / "public_api.txt"
PAGES = (
    *("README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/**/*.py", "examples/**/*.ipynb", "examples/**/*.md"),
    "tests/typing/user_code.py",
)
HIDDEN_TYPES = 72
"""Types in public signatures that cannot be imported from a public package; the number may only fall."""

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
    return {package: sorted(importlib.import_module(package).__all__) for package in PUBLIC_PACKAGES}


def framework_names() -> dict[str, list[str]]:
    """Return the names of each public module that needs a framework, which may not be installed: it is only read."""
    return {module: sorted(node.name for node in framework_definitions(module)) for module in FRAMEWORK_MODULES}


def framework_definitions(module: str) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """Yield the public classes and functions of a module that needs a framework."""
    body = ast.parse(SOURCE.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text("utf-8")).body
    listed = next(ast.literal_eval(node.value) for node in body if isinstance(node, ast.Assign))
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in listed:
            yield node


def defined_names() -> Iterator[str]:
    """Yield the names that the modules of the package define at their top level."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            match node:
                case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    yield name
                case ast.Assign(targets=[ast.Name(id=name)]):
                    yield name


ALL_NAMES = {name for names in public_names().values() for name in names}
HIDDEN = set(defined_names()) - ALL_NAMES
"""Names of classes, types and constants that no public package has."""


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import of Toolwire; the name is "" for `import module`."""
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


def foreign_names(public: dict[str, list[str]]) -> Iterator[str]:
    """Yield the uses in pages and examples of names that are not public, and code that cannot be read."""
    public = public | framework_names()
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            for code in code_of(path):
                yield from (f"{path.relative_to(ROOT)}: {fault}" for fault in foreign_in(code, public))


def foreign_in(code: str, public: dict[str, list[str]]) -> Iterator[str]:
    """Yield the uses in one piece of code of names that are not public, or that it cannot be read."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        yield f"line {error.lineno} of a block is not Python, so its names cannot be checked"
        return
    for module, name in imports(tree):
        if module not in public or (name and name not in public[module] and f"{module}.{name}" not in public):
            yield f"{module} {name}".rstrip() + " is not public"
    modules = {
        alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value)
        if owner in public and node.attr not in public[owner] and f"{owner}.{node.attr}" not in public:
            yield f"{owner}.{node.attr} is not public"
        elif node.attr.startswith("_") and not node.attr.endswith("__") and owner not in modules:
            yield f"{owner}.{node.attr} is private"


def inner_imports() -> Iterator[str]:
    """Yield the imports of public packages inside the package: there, a name comes from its home."""
    for path in sorted(SOURCE.rglob("*.py")):
        for module, name in imports(ast.parse(path.read_text("utf-8"))):
            if module in PUBLIC_PACKAGES and module != "toolwire.testing" and name:
                folder = SOURCE.joinpath(*module.split(".")[1:])
                if not (folder / name).is_dir() and not (folder / f"{name}.py").is_file():
                    yield f"{path.relative_to(ROOT)}: imports {name} from {module}, not from its home"


def members_of(value: type) -> dict[str, Any]:
    """Return the members that a class defines, with those of its bases in the package that are not public."""
    members: dict[str, Any] = {}
    for base in reversed(value.__mro__[1:]):
        if base.__module__.startswith("toolwire.") and base.__name__ not in ALL_NAMES:
            members.update((key, member) for key, member in vars(base).items() if not key.startswith("_"))
    return members | dict(vars(value))


def functions_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public functions of a public value: itself, or its methods with `__init__`."""
    if inspect.isclass(value):
        for key, member in sorted(members_of(value).items()):
            inner = getattr(member, "__func__", member)
            if inspect.isfunction(inner) and (key == "__init__" or not key.startswith("_")):
                yield f"{name}.{key}", inner
    elif inspect.isroutine(value):
        yield name, value


def attributes_of(value: type) -> Iterator[tuple[str, str]]:
    """Yield the public attributes that a class assigns in `__init__`, each with its type; "" for an inferred one."""
    if "__init__" not in vars(value):
        return
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(value.__init__))).body  # type: ignore[misc]
    assert isinstance(function, ast.FunctionDef)
    parameters = {arg.arg: arg.annotation for arg in (*function.args.args, *function.args.kwonlyargs)}
    for node in ast.walk(function):
        targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else []
        written: ast.expr | None = None
        if isinstance(node, ast.AnnAssign):
            targets, written = [node.target], node.annotation
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            written = parameters.get(node.value.id)
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and target.attr[0] != "_":
                yield target.attr, ast.unparse(written) if written is not None else ""


def documentation(value: Any) -> str:
    """Return the docstring of a value; not the signature that a dataclass makes up, nor what is inherited."""
    text = (vars(value).get("__doc__") if inspect.isclass(value) else getattr(value, "__doc__", "")) or ""
    return "" if inspect.isclass(value) and text.startswith(f"{value.__name__}(") else text


def documented_constants() -> Iterator[str]:
    """Yield the names of constants and type aliases that are followed by a docstring."""
    for path in SOURCE.rglob("*.py"):
        for node, after in pairwise(ast.parse(path.read_text("utf-8")).body):
            match node, after:
                case (
                    (ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name))),
                    ast.Expr(value=ast.Constant(value=str())),
                ):
                    yield name


def undocumented(public: dict[str, list[str]]) -> Iterator[str]:
    """Yield public names without a docstring, and public functions that take `**keywords: Any`."""
    constants = set(documented_constants())
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
            elif name not in constants:
                yield f"{package}.{name} has no docstring"


def hidden_references(public: dict[str, list[str]]) -> Iterator[str]:
    """Yield references in docstrings of public names to modules and constants that are not public."""
    for package, names in public.items():
        for name in names:
            value = getattr(importlib.import_module(package), name)
            documented = [(name, value)] if inspect.isclass(value) else []
            for full, function in (*documented, *functions_of(name, value)):
                for reference in re.findall(r"`([A-Za-z_][\w.]*)`", documentation(function)):
                    module = "." in reference and (SOURCE / reference.replace(".", "/")).with_suffix(".py").is_file()
                    if module or (reference[0].isupper() and reference in HIDDEN):
                        yield f"the docstring of {package}.{full} refers to {reference}, which is not public"


def hidden_types(public: dict[str, list[str]]) -> set[str]:
    """Return the types in public signatures that cannot be imported from a public package."""
    annotations = re.sub(r"'[^']*'|^    [A-Z_]+ = .*", "", snapshot(public), flags=re.MULTILINE)
    return HIDDEN & set(re.findall(r"(?<![\w.'])[A-Z]\w+", annotations))


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
    for module in FRAMEWORK_MODULES:
        for node in framework_definitions(module):
            lines.extend(described_unimported(f"{module}.{node.name}", node))
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
            written = {key: hint for key, hint in attributes_of(value) if key not in hints and key not in vars(value)}
            yield from (f"    {key}{f': {hint}' if hint else ''} (attribute)" for key, hint in sorted(written.items()))
        for key, member in sorted(members_of(value).items()):
            if isinstance(member, property) and not key.startswith("_"):
                yield f"    {key}: {member.fget.__annotations__.get('return', 'Any')} (property)"
        generated = dataclasses.is_dataclass(value) and value.__dataclass_params__.init  # type: ignore[attr-defined]
        for full, function in functions_of(name, value):
            if not (generated and full.endswith(".__init__")):
                yield f"    {full.rpartition('.')[2]}{signature(function)}"
    elif inspect.isroutine(value):
        yield f"{name}{signature(value)}"
    elif get_origin(value) in (UnionType, Union):
        yield f"{name} = {' | '.join(getattr(member, '__name__', str(member)) for member in get_args(value))}"
    elif get_args(value):
        yield f"{name} = {re.sub(r'(?:[a-z_]+[.])+', '', inspect.formatannotation(value))}"
    else:
        yield f"{name}: {type(value).__name__}"


def described_unimported(name: str, node: ast.ClassDef | ast.FunctionDef) -> Iterator[str]:
    """Yield the lines of a public class or function of a module that is not imported, as it is written there."""
    if isinstance(node, ast.FunctionDef):
        yield f"{name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns or ast.Constant(None))}"
        return
    yield f"class {name}({', '.join(map(ast.unparse, node.bases))})"
    for member in node.body:
        match member:
            case ast.AnnAssign(target=ast.Name(id=field)) if not field.startswith("_"):
                yield f"    {ast.unparse(member)}"
            case ast.FunctionDef(name=method) | ast.AsyncFunctionDef(name=method):
                if method == "__init__" or not method.startswith("_"):
                    returned = ast.unparse(member.returns or ast.Constant(None))
                    yield f"    {method}({ast.unparse(member.args)}) -> {returned}"


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
    problems = [*foreign_names(public), *inner_imports(), *undocumented(public), *hidden_references(public)]
    problems += stale_snapshot(public)
    hidden = sorted(hidden_types(public))
    if len(hidden) > HIDDEN_TYPES:
        problems += [f"{len(hidden)} types in public signatures are not public; at most {HIDDEN_TYPES}:"]
        problems += [", ".join(hidden)]
    print("".join(f"{problem}\n" for problem in problems), end="", file=sys.stderr)
    stubs = subprocess.run([sys.executable, ROOT / "scripts" / "write_stubs.py", "--check"], check=False)
    return 1 if problems or stubs.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
