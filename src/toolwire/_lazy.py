"""Public names of a package, imported when they are first used: importing Toolwire must cost next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package: the package's `__name__`.
        homes: modules, relative to `toolwire`, and the names that they define, separated by spaces.
            `scripts/write_stubs` writes the package's `__init__.pyi`, which type checkers read, from the same table.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get_attribute(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"toolwire.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return get_attribute, list_names, sorted(home_of)
