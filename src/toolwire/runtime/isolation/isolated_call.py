"""Call a tool's function in a process of its own, with limits: a fresh interpreter imports it and calls it once.

Arguments and result travel as JSON. The process starts in an empty directory that is removed afterwards, with few
environment variables. Processor time, memory, time, disk and open files are limited as `Isolation` says, and its whole
process group is killed when it ends. It is not a sandbox: it may read what this process may read, and use the network.
POSIX systems only.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolwire.errors import DefinitionError, ToolError
from toolwire.runtime.watcher import watch_directory
from toolwire.schema.signatures import argument_converter
from toolwire.tools import Isolation, Tool

if TYPE_CHECKING:
    from toolwire.runtime.process_groups import ProgramResult

MAX_RESULT = 16 << 20
"""Maximum size of a result, in bytes."""
MAX_PRINTED = 2_000
"""Maximum size of printed output in an error, in bytes."""
_WORKER = str(Path(__file__).with_name("worker.py"))
_ENVIRONMENT = frozenset({"PATH", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"})


def importable(function: Callable[..., Any], tool: str = "") -> tuple[str, str]:
    """Return the module and the name by which another process can import a function.

    Args:
        function: the function to isolate.
        tool: its tool's name, for the message.

    Raises:
        DefinitionError: the function has no such name: it is a lambda, is defined in another function or in the script
            that was started, belongs to an object, or its name now means something else.
    """
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", "") or ""
    tool = tool or getattr(function, "__name__", "") or type(function).__name__
    if not name or "<" in name:
        raise DefinitionError("cannot be isolated: it has no importable name; define it in a module", tool=tool)
    if inspect.ismethod(function) and not inspect.isclass(function.__self__):
        raise DefinitionError("cannot be isolated: it belongs to an object; make it a function", tool=tool)
    if module == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is None:
            raise DefinitionError("cannot be isolated: it is in the script itself; move it to a module", tool=tool)
        target: Any = sys.modules["__main__"]
        module = spec.name
    else:
        target = sys.modules.get(module)
    for part in name.split("."):
        target = getattr(target, part, None)
    if (target.function if isinstance(target, Tool) else target) != function:
        raise DefinitionError(f"cannot be isolated: {module}.{name} is not this function (any more)", tool=tool)
    return module, name


async def run_isolated(function: Callable[..., Any], arguments: dict[str, Any], isolation: Isolation) -> Any:
    """Run a tool's function in a process of its own.

    Args:
        function: plain or async, and importable by its module and name.
        arguments: JSON values; the process converts them to the types of the function's signature.
        isolation: the limits.

    Returns:
        The function's result, as JSON.

    Raises:
        DefinitionError: the function cannot be imported there, or this system does not support limits.
        ToolError: it failed, or exceeded a limit; the message says which.
    """
    import tempfile  # here, and the next one too, because a registry imports this module and runs nothing

    from toolwire.runtime import processes

    if sys.platform == "win32":
        raise DefinitionError("cannot be isolated: this system cannot limit processes")
    module, name = importable(function)
    request = {
        "module": module,
        "file": _file(function),
        "name": name,
        "arguments": arguments,
        "typed": _is_typed(function),
        "path": [os.path.abspath(entry) for entry in sys.path],
        "limits": _limits(isolation),
    }
    with tempfile.TemporaryDirectory(prefix="toolwire-", ignore_cleanup_errors=True) as directory, _noted(directory):
        env = {key: value for key, value in processes.environment().items() if key in _ENVIRONMENT}
        ended = await processes.run(
            [sys.executable, "-I", "-B", _WORKER],
            directory=directory,
            env=env | {"HOME": directory, "TMPDIR": directory},
            seconds=isolation.seconds,
            max_output=2 * MAX_RESULT,
            stdin=json.dumps(request).encode(),
            separate_stderr=True,
        )
    return _answer(function.__name__, ended, isolation)


def remove_all() -> None:
    """Remove the directories of all running calls, for a process that has killed them and exits without waiting."""
    import shutil

    for directory in tuple(_DIRECTORIES):
        for _ in range(10):  # who was killed may still be writing there
            shutil.rmtree(directory, ignore_errors=True)
            if not os.path.lexists(directory):
                break


_DIRECTORIES: set[str] = set()


@contextmanager
def _noted(directory: str) -> Iterator[None]:
    _DIRECTORIES.add(directory)
    try:
        with watch_directory(directory):
            yield
    finally:
        _DIRECTORIES.discard(directory)


def _file(function: Callable[..., Any]) -> str:
    """Return the file of a function's module; "" if there is none."""
    file = getattr(sys.modules[function.__module__], "__file__", None)
    return os.path.abspath(file) if file else ""


@lru_cache(maxsize=1_000)
def _is_typed(function: Callable[..., Any]) -> bool:
    return argument_converter(function) is not None


def _limits(isolation: Isolation) -> dict[str, int]:
    limits = {
        "RLIMIT_CPU": isolation.cpu_seconds,
        "RLIMIT_AS": isolation.memory,
        "RLIMIT_FSIZE": isolation.file_size,
        "RLIMIT_NOFILE": isolation.open_files,
        "RLIMIT_CORE": 0,
    }
    return limits if isolation.processes is None else limits | {"RLIMIT_NPROC": isolation.processes}


def _answer(tool: str, ended: ProgramResult, isolation: Isolation) -> Any:
    if ended.timed_out:
        raise ToolError(f"{tool} took longer than {isolation.seconds:g} seconds and was stopped.")
    if ended.status == -signal.SIGXCPU:
        raise ToolError(f"{tool} used more than {isolation.cpu_seconds} s of processor time and was stopped.")
    if ended.out.size > MAX_RESULT:
        raise ToolError(f"{tool} returned more than {MAX_RESULT >> 20} MB.")
    try:
        answer = json.loads(ended.out.joined())
    except ValueError:
        raise ToolError(_died(tool, ended)) from None
    match answer:
        case {"value": value}:
            return value
        case {"failed": "memory"}:
            raise ToolError(f"{tool} needed more than {isolation.memory >> 20} MB of memory and was stopped.")
        case {"failed": "file_size"}:
            raise ToolError(f"{tool} wrote a file of more than {isolation.file_size:,} bytes and was stopped.")
        case {"failed": "open_files"}:
            raise ToolError(f"{tool} opened more than {isolation.open_files} files and was stopped.")
        case {"failed": "result", "message": message}:
            raise ToolError(f"{tool} ran, but its result is not JSON: {message}")
        case {"failed": "error", "message": str(message)}:
            raise ToolError(message)
    raise ToolError(_died(tool, ended))


def _died(tool: str, ended: ProgramResult) -> str:
    """Describe the end of a process that gave no answer."""
    if ended.status >= 0:
        ending = f"ended its process (exit status {ended.status}) before it returned anything."
    else:
        killer = signal.Signals(-ended.status).name
        cause = ", perhaps by the system because memory ran out" if ended.status == -signal.SIGKILL else ""
        ending = f"was killed ({killer}{cause})."
    last = ended.err.parts()[1] or ended.err.parts()[0]
    printed = last[-MAX_PRINTED:].decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"{tool} {ending}" + (f" It printed last: {printed}" if printed else "")
