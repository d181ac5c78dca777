"""The machinery of public packages: lazy exports, missing extras, checked arguments, deprecations.

Importing Toolwire must cost next to nothing, so this module imports almost nothing itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

PUBLIC_PACKAGES = (
    "toolwire",
    "toolwire.agent",
    "toolwire.gateway",
    "toolwire.integrations",
    "toolwire.mcp",
    "toolwire.models",
    "toolwire.openapi",
    "toolwire.policy",
    "toolwire.telemetry",
    "toolwire.testing",
    "toolwire.web",
    "toolwire.wire",
)
"""The packages whose `__all__` is public. Where two of them export a name, the later one documents it."""

FRAMEWORK_MODULES = {
    "toolwire.integrations.langchain": "langchain",
    "toolwire.integrations.litellm": "litellm",
    "toolwire.integrations.llama_index": "llama-index",
    "toolwire.integrations.llm_plugin": "llm",
    "toolwire.integrations.openai_agents": "openai-agents",
    "toolwire.integrations.pydantic_ai": "pydantic-ai",
    "toolwire.integrations.smolagents": "smolagents",
}
"""The public modules that need a framework, each with the extra that installs it. Their names are their `__all__`."""

EXTRAS = {
    "aiohttp": "gateway",
    "altair": "eval",
    "anyio": "agent",
    "botocore": "bedrock",
    "dbos": "durable",
    "filelock": "local",
    "genai_prices": "prices",
    "httpx": "agent",
    "httpx2": "mcp",
    "huggingface_hub": "local",
    "inspect_ai": "eval",
    "jinja2": "eval",
    "llguidance": "grammar",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "openapi_spec_validator": "openapi",
    "opentelemetry": "otel",
    "prometheus_client": "gateway",
    "prompt_toolkit": "chat",
    "psycopg": "postgres",
    "pyarrow": "parquet",
    "ray": "ray",
    "re2": "agent",
    "redis": "valkey",
    "scipy": "eval",
    "sqlalchemy": "gateway",
    "starlette": "mcp",
    "uvicorn": "mcp",
    "vl_convert": "eval",
    "xllamacpp": "local",
    "yaml": "openapi",
    "zstandard": "gateway",
}
"""The extra that installs each optional module."""

PACKAGE_EXTRAS = {"toolwire.gateway": "gateway", "toolwire.integrations": "gateway", "toolwire.mcp": "mcp"}
"""The extras of packages that need modules which several extras install."""
_EXTRAS_IN_PACKAGE = {("toolwire.agent", "sqlalchemy"): "durable"}
"""The extra of one module in a package, where the module alone would suggest another one."""


def lazy_exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are imported when they are first used.

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
        with needs_extra(f"{package}.{name}", package=package):
            value = getattr(import_module(f"toolwire.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return get_attribute, list_names, sorted(home_of)


@contextmanager
def needs_extra(feature: str, extra: str = "", *, package: str = "") -> Iterator[None]:
    """Run imports of optional modules; name the extra to install if one of them fails.

    Args:
        feature: the subject of the message, such as "Bedrock".
        extra: the extra, if not the one in `EXTRAS`; then any import that fails counts.
        package: the package that is imported, which may have an extra of its own.

    Raises:
        MissingExtra: an optional module cannot be imported.
    """
    try:
        yield
    except ImportError as error:
        from toolwire.errors import MissingExtra

        module = (error.name or "").partition(".")[0]
        if isinstance(error, MissingExtra) or not (extra or module in EXTRAS):
            raise
        reason = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
        extra = extra or _EXTRAS_IN_PACKAGE.get((package, module)) or PACKAGE_EXTRAS.get(package) or EXTRAS[module]
        raise MissingExtra(feature, module or "a module", reason, extra) from error


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call of a function, or of an object that is called like one, has to be awaited."""
    import inspect  # not above: it takes milliseconds

    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def check_not_async(argument: str, function: Callable[..., Any], expected: str) -> None:
    """Check that a function which nothing awaits is not async.

    Raises:
        TypeError: it is; its answer would be a coroutine that never runs.
    """
    if is_async(function):
        name = getattr(function, "__qualname__", type(function).__name__)
        raise TypeError(f"{argument} must be {expected}, and {name} is async")


def wrong_type(argument: str, value: object, expected: str) -> TypeError:
    """Return the error for an argument of the wrong type; it shows short scalars and otherwise only the type.

    Args:
        argument: the parameter's name.
        value: the value that was passed.
        expected: a noun phrase, such as "a Tier, such as Tier.RUN".
    """
    if value is None or isinstance(value, str | int | float):
        shown = f"{value!r:.60}"
    elif isinstance(value, type):
        shown = f"the class {value.__name__}"
    else:
        shown = type(value).__name__
        if isinstance(value, list | tuple) and value:
            shown += f" of {type(value[0]).__name__}"
    return TypeError(f"{argument} must be {expected}, not {shown}")


def check_type(argument: str, value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Check an argument of the public surface.

    Raises:
        TypeError: it is of another type; see `wrong_type`.
    """
    if not isinstance(value, kind):
        raise wrong_type(argument, value, expected)


def check_number(
    argument: str, value: object, expected: str, *, least: float = 0, whole: bool = False, optional: bool = False
) -> None:
    """Check an argument that is a number, such as a limit.

    Args:
        argument: the parameter's name.
        value: the value that was passed.
        expected: a noun phrase, such as "a number of seconds".
        least: the smallest number that makes sense.
        whole: a fraction makes none.
        optional: None stands for no limit.

    Raises:
        TypeError: it is of another type; True and False do not count as numbers.
        ValueError: it is smaller than that, or not a number at all (NaN), which no comparison would ever reach.
    """
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise wrong_type(argument, value, f"{expected} or None" if optional else expected)
    if not value >= least:
        raise ValueError(f"{argument} must be at least {least:g}, not {value:g}")


def check_choice(argument: str, value: object, choices: Sequence[str | None]) -> None:
    """Check an argument that is one of a few values.

    Raises:
        ValueError: it is another one.
    """
    if value not in choices:
        *all_but_last, last = (repr(choice) for choice in choices if choice is not None)
        raise ValueError(f"{argument} is {value!r:.100}; it can be {', '.join(all_but_last)} or {last}")


def check_items(argument: str, values: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Check an argument that is a collection of values of one type; text is not a collection.

    Raises:
        TypeError: it is not a collection, or contains a value of another type; see `wrong_type`.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, (list, tuple, Collection)):  # the fast ones first
        raise wrong_type(argument, values, expected)
    for value in values:
        if not isinstance(value, kind):
            raise wrong_type(argument, [value], expected)


def warn_deprecated(thing: str, version: str, *, instead: str = "") -> None:
    """Warn the caller of the function that calls this one.

    Args:
        thing: what is deprecated, such as "toolwire.parse(mode=...)".
        version: the version that removes it.
        instead: what to use in its place.
    """
    import warnings

    from toolwire.errors import ToolwireDeprecationWarning

    hint = f"; use {instead} instead" if instead else ""
    message = f"{thing} is deprecated and will be removed in Toolwire {version}{hint}"
    warnings.warn(message, ToolwireDeprecationWarning, stacklevel=3)
