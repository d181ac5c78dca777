"""Functions that `test_isolation.py` runs in processes of their own; little is imported, so that they begin at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from datetime import date
from typing import Any


def add(a: int, b: int = 1) -> int:
    print("noise")
    os.write(1, b'{"value": "forged"}\n')
    sys.stderr.write("more noise\n")
    return a + b


async def later(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


def burn() -> None:
    while True:
        pass


def eat(size: int) -> int:
    return len(bytearray(size))


def fill(size: int) -> int:
    with open("file", "wb") as file:
        return file.write(b"x" * size)


def open_many(count: int) -> int:
    return len([open(os.devnull) for _ in range(count)])


def fork(count: int) -> int:
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(count)]
    return len(children)


def leave_running() -> int:
    return subprocess.Popen(["sleep", "60"]).pid


def fail(how: str) -> Any:
    if how == "abort":
        os.abort()
    if how == "exit":
        os._exit(5)
    if how == "killed":
        os.kill(os.getpid(), 9)
    if how == "object":
        return object()
    if how == "nan":
        return [float("nan")]
    if how == "deep":
        value: list[Any] = []
        for _ in range(100_000):
            value = [value]
        return value
    if how == "big":
        return "x" * (20 << 20)
    if how == "leave":
        sys.exit(3)
    print("the last word")
    raise ValueError(how)


def fail_by_itself() -> None:
    from toolwire import ToolError

    raise ToolError("not so")


def where() -> dict[str, Any]:
    return {"cwd": os.getcwd(), "files": os.listdir(), "env": dict(os.environ), "argv": sys.argv[1:]}


def typed(day: date) -> str:
    return f"{type(day).__name__} {day.isoformat()}"


def echo(value: Any) -> Any:
    return value


def wait(path: str) -> None:
    with open(path, "w") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(60)


class Counter:
    @staticmethod
    def one() -> int:
        return 1

    def many(self) -> int:
        return 2
