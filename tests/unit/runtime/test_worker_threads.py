"""Plain functions in threads that do not hold up anybody."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from toolwire.runtime import worker_threads
from toolwire.runtime.worker_threads import in_thread

WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")


def test_idle_threads_are_reused() -> None:
    async def main() -> set[int | None]:
        return {await in_thread(lambda: threading.get_ident(), {}) for _ in range(50)}

    assert len(asyncio.run(main())) == 1


def test_errors_and_context_variables_are_passed_on() -> None:
    async def main() -> None:
        WHERE.set("here")
        assert await in_thread(WHERE.get, {}) == "here"
        with pytest.raises(KeyError, match="gone"):
            await in_thread(lambda key: {}[key], {"key": "gone"})
        with pytest.raises(SystemExit):
            await in_thread(sys.exit, {})

    asyncio.run(main())


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_threads, "IDLE_SECONDS", 0.01)
    idle: list[worker_threads._Worker] = []
    worker = worker_threads._Worker(idle, threading.Lock())
    worker.start()
    worker.jobs.put(lambda: lambda: None)
    worker.join(5)
    assert not worker.is_alive()
    assert not idle


def test_an_abandoned_thread_does_not_keep_the_program_running() -> None:
    program = """
import asyncio, threading
from toolwire.runtime.worker_threads import in_thread
async def main():
    try:
        async with asyncio.timeout(0.1):
            await in_thread(threading.Event().wait, {})
    except TimeoutError:
        print("left behind")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (0, "left behind\n"), done.stderr


def test_a_forked_process_has_its_own_threads() -> None:
    program = """
import asyncio, os
from toolwire.runtime.worker_threads import in_thread
async def main():
    return await asyncio.wait_for(in_thread(os.getpid, {}), 20)
asyncio.run(main())
child = os.fork()
if child == 0:
    print(asyncio.run(main()) == os.getpid(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "True\n", done.stderr
