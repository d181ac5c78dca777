"""Tools from an object: each of its public methods, with the state that they share."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from typing_extensions import Unpack

from toolwire._surface import check_type, wrong_type
from toolwire.errors import DefinitionError
from toolwire.text.suggest import check_options, closest, did_you_mean
from toolwire.tools import Tool, ToolOptions, definition_changes, tool

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = "__toolwire_options__"
_FOREIGN = frozenset((*sys.stdlib_module_names, "pydantic", "typing_extensions"))
"""Modules whose classes have public methods that nobody means as tools, such as `clear` and `model_dump`."""


def tool_options(**options: Unpack[ToolOptions]) -> Callable[[_F], _F]:
    """Declare options of a method that `tools_from` makes a tool of; the method itself stays as it is.

    A method that overrides this one in a subclass has the same options, unless it declares its own.

    Args:
        options: `tier`, `destructive`, `name` and so on, as for the decorator `tool`.

    Raises:
        TypeError: an option is unknown.
    """
    _check(options)

    def decorate(method: _F) -> _F:
        function: Any = method.__func__ if isinstance(method, staticmethod | classmethod) else method
        setattr(function, _OPTIONS, {**getattr(function, _OPTIONS, {}), **options})
        return method

    return decorate


def tools_from(
    instance: object, *, only: Iterable[str] | None = None, options: Mapping[str, ToolOptions] | None = None
) -> list[Tool[..., Any]]:
    """Make a tool of each public method of an object, in the order in which its class defines them.

    A method is public if its name does not begin with an underscore. Properties are not tools, and neither are methods
    that it inherits from classes of the standard library or pydantic. All tools use the same object: plain methods run
    in threads, so state that several of them change needs a lock.

    Args:
        instance: the object; docstrings of its methods become descriptions.
        only: names of the methods to use; None for all.
        options: options of tools by the name of the method; they override those of `tool_options`.

    Raises:
        DefinitionError: there is no public method, or none of a name; or a model cannot call a method's signature.
        TypeError: the object is a class, or an option is unknown.
    """
    if isinstance(instance, type):
        raise wrong_type("instance", instance, "an object, such as Shop() in place of Shop")
    check_type("options", options or {}, Mapping, "a mapping from names of methods to options")
    if isinstance(only, str):
        raise wrong_type("only", only, "an iterable of names of methods")
    declared = _declared(type(instance))
    if not declared:
        raise DefinitionError(f"{type(instance).__name__} has no public methods")
    overriding, names = dict(options or {}), list(declared) if only is None else list(only)
    for name in (*names, *overriding):
        if name not in declared:
            hint = did_you_mean(closest(name, declared)) or "."
            raise DefinitionError(f"{type(instance).__name__} has no public method {name!r:.80}{hint}")
    return [_tool_of(instance, name, {**declared[name], **overriding.get(name, {})}) for name in names]


def _tool_of(instance: object, name: str, options: ToolOptions) -> Tool[..., Any]:
    _check(options)
    method = getattr(instance, name)
    method_tool: Tool[..., Any] = method if isinstance(method, Tool) else tool(name=name)(method)
    return method_tool.replace(**options)


def _check(options: ToolOptions) -> None:
    check_options("tool_options", options, ToolOptions.__annotations__)
    definition_changes(options)


def _declared(kind: type) -> dict[str, ToolOptions]:
    """Return the options of the public methods of a class, by name."""
    declared: dict[str, ToolOptions] = {}
    for base in reversed(kind.__mro__):
        # The class itself always counts: its module may merely share the name of one of the standard library.
        if base is not kind and base.__module__.partition(".")[0] in _FOREIGN:
            continue
        for name, value in vars(base).items():
            if name.startswith("_"):
                continue
            if _is_method(value):
                # A subclass that overrides a destructive method must not lift its care by saying nothing.
                declared_here: ToolOptions | None = getattr(getattr(value, "__func__", value), _OPTIONS, None)
                declared[name] = {**declared.get(name, {}), **(declared_here or {})}
            else:
                declared.pop(name, None)
    return declared


def _is_method(value: Any) -> bool:
    """Return whether a member of a class is a method; properties and nested classes are not."""
    if isinstance(value, Tool | staticmethod | classmethod):
        return True
    return callable(value) and inspect.isroutine(value)
