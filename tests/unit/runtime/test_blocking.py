import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator

import pytest

from toolwire.runtime.blocking import iterate_blocking, run_blocking


async def number() -> int:
    await asyncio.sleep(0)
    return 7


FORKS = """
import os, sys
from toolwire.runtime.blocking import run_blocking
async def number(): return 7
run_blocking(number)
child = os.fork()
if child == 0:
    sys.exit(run_blocking(number))  # runs every handler of an exit as well
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), run_blocking(number))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_starts_a_loop_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "7 7\n"


def test_an_iterator_may_be_collected_in_the_thread_of_the_loop() -> None:
    closed = []

    async def count() -> AsyncGenerator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            closed.append("closed")

    values = iterate_blocking(count)
    assert next(values) == 1

    async def close() -> None:
        values.close()  # type: ignore[attr-defined]
        while not closed:
            await asyncio.sleep(0)

    run_blocking(close)
    assert closed == ["closed"]
    assert run_blocking(number) == 7
