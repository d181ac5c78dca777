"""A plugin for pytest: the marker `forbid_real_requests`, and fixtures for scripted and recorded models.

pytest loads it by itself where Toolwire is installed. It imports nothing else until a test uses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from toolwire.testing import RecordingTransport, ReplayTransport, ScriptedBackend

MARKER = "forbid_real_requests"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that records."""
    group = parser.getgroup("toolwire")
    group.addoption(
        "--record-requests",
        action="store_true",
        help="send the requests of recorded_transport to the real models, and record them anew",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", f"{MARKER}: a request to a real model is an error; see toolwire.testing")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Forbid real requests in a test with the marker, fixtures included, unless they are recorded."""
    recorded = item.config.getoption("--record-requests") and "recorded_transport" in getattr(item, "fixturenames", ())
    if item.get_closest_marker(MARKER) is None or recorded:
        return (yield)
    from toolwire.testing import forbid_real_requests

    with forbid_real_requests():
        return (yield)


@pytest.fixture
def scripted_model() -> Callable[..., ScriptedBackend]:
    """A function that makes a model of its answers: `scripted_model("first", "second")`."""
    from toolwire.testing import ScriptedBackend

    def make(*answers: Any, format: str = "") -> ScriptedBackend:
        return ScriptedBackend(answers, format=format)

    return make


@pytest.fixture
def recorded_transport(request: pytest.FixtureRequest) -> ReplayTransport | RecordingTransport:
    """A transport that replays `recordings/MODULE/TEST.jsonl` beside the test's file; `--record-requests` writes it."""
    # Imported here: pytest loads this module in every project where Toolwire is installed.
    from toolwire.client.transport import HttpTransport
    from toolwire.testing import RecordingTransport, ReplayTransport

    test = re.sub(r"[^\w.-]+", "_", request.node.name)
    path = request.path.parent / "recordings" / request.path.stem / f"{test}.jsonl"
    if not request.config.getoption("--record-requests"):
        if not path.exists():
            pytest.fail(f"{path} does not exist: run this test once with --record-requests", pytrace=False)
        return ReplayTransport(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Exchanges are appended to a recording, so one of an earlier run has to go first.
    path.unlink(missing_ok=True)
    return RecordingTransport(HttpTransport(), path)
