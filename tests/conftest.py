"""What all tests share: Hypothesis profiles, and a directory of their own for what outlives a process.

`default` is short and the same every time, `thorough` is long and random:

pytest tests/property --hypothesis-profile=thorough
"""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

_COMMON = settings(
    deadline=None,  # no clock in tests
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    print_blob=True,
)

settings.register_profile("default", _COMMON, max_examples=40, derandomize=True, database=None)
settings.register_profile("thorough", _COMMON, max_examples=3000)
settings.load_profile("default")


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of garbage collection, which would look through all of it each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes what the user's own programs keep; recording stays on, as it is for users."""
    before = os.environ.get("TOOLWIRE_STATE")
    os.environ["TOOLWIRE_STATE"] = str(tmp_path_factory.mktemp("state"))
    yield
    if before is not None:
        os.environ["TOOLWIRE_STATE"] = before


@pytest.fixture(scope="session", autouse=True)
def _inherited_signals() -> Iterator[None]:
    """Programs that tests start can be ended by signals that the process which runs the tests ignores.

    `nohup` ignores SIGHUP, and a shell ignores SIGINT and SIGQUIT in what it runs in the background.
    """
    numbers = [getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGQUIT") if hasattr(signal, name)]
    ignored = [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)  # unlike an ignored signal, a handled one is not inherited
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
