"""The process of `run_isolated`: limits itself, calls one function, and writes the outcome.

This file is run by path in a fresh interpreter, and imports nothing of Toolwire before the limits apply. The request is
one JSON object on standard input, the answer one on the original standard output. Whatever the tool prints goes to
standard error. Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import inspect
import json
import os
import resource
import sys
from typing import Any

MAX_MESSAGE = 2_000
_LIMITS_MET = {errno.EFBIG: "file_size", errno.EMFILE: "open_files"}


class _Held:
    """Capture any error of a tool, `SystemExit` and `KeyboardInterrupt` too: each is an answer here."""

    error: BaseException | None = None

    def __enter__(self) -> _Held:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        self.error = error
        return True


def main() -> None:
    """Answer the request."""
    request = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdin.close()
    answer: dict[str, Any] = {}
    with _Held() as output:
        _limit(request["limits"])
        sys.path[:] = request["path"]
        answer = {"value": _called(request)}
        answer = {"value": _json(answer["value"])}
    if output.error is not None:
        answer = _told(output.error, called=bool(answer))
    sys.stdout.flush()
    answers.write(json.dumps(answer))
    answers.flush()
    os._exit(0)  # threads that the tool left behind keep nobody waiting


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        number = getattr(resource, name)
        _, hard = resource.getrlimit(number)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        above = 1 if name == "RLIMIT_CPU" and most == value else 0  # the signal that says so comes before the kill
        resource.setrlimit(number, (most, most + above))


def _called(request: dict[str, Any]) -> Any:
    function: Any = _module(request["module"], request["file"])
    for name in request["name"].split("."):
        function = getattr(function, name)
    function = getattr(function, "function", function)  # a decorated one is a `Tool`
    arguments = request["arguments"]
    if request["typed"]:
        from toolwire.schema.signatures import argument_converter

        read = argument_converter(function)
        arguments = read(arguments) if read is not None else arguments
    value = function(**arguments)
    if inspect.isawaitable(value):
        import asyncio

        value = asyncio.run(_awaited(value))
    return value


def _json(value: Any) -> Any:
    """Return the value as JSON. Most values are JSON already, and nothing has to be imported for them."""
    try:
        json.dumps(value, allow_nan=False)
        return value
    except (TypeError, ValueError, RecursionError):
        from toolwire.schema.serialization import to_json_value

        return to_json_value(value)


def _module(name: str, file: str) -> Any:
    """Import the module of a function from the very file that it was read from, whatever its name finds here."""
    spec = importlib.util.find_spec(name)
    if spec is None and file:
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{name} cannot be read from {file}")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    if file and spec is not None and (not spec.origin or os.path.realpath(spec.origin) != os.path.realpath(file)):
        raise ImportError(f"in a process of its own the module {name} is another one, {spec.origin}; rename {file}")
    return importlib.import_module(name)


async def _awaited(value: Any) -> Any:
    return await value


def _told(error: BaseException, *, called: bool) -> dict[str, str]:
    """Return the kind of failure, and a description in one line."""
    if isinstance(error, MemoryError):
        return {"failed": "memory"}
    if isinstance(error, OSError) and error.errno in _LIMITS_MET:
        return {"failed": _LIMITS_MET[error.errno]}
    if called:
        return {"failed": "result", "message": str(error)[:MAX_MESSAGE]}
    is_tool_error = any(
        kind.__name__ == "ToolError" and kind.__module__ == "toolwire.errors" for kind in type(error).__mro__
    )
    message = str(error) if is_tool_error else f"{type(error).__name__}: {error}".removesuffix(": ")
    return {"failed": "error", "message": message[:MAX_MESSAGE]}


if __name__ == "__main__":
    main()
