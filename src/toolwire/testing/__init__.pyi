# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.testing.assertions import assert_called as assert_called
from toolwire.testing.assertions import assert_not_called as assert_not_called
from toolwire.testing.assertions import calls_in as calls_in
from toolwire.testing.real_requests import forbid_real_requests as forbid_real_requests
from toolwire.testing.transports import RecordingTransport as RecordingTransport
from toolwire.testing.transports import ReplayTransport as ReplayTransport
from toolwire.testing.transports import ScriptedBackend as ScriptedBackend
from toolwire.testing.transports import ScriptedTransport as ScriptedTransport

__all__ = [
    "RecordingTransport",
    "ReplayTransport",
    "ScriptedBackend",
    "ScriptedTransport",
    "assert_called",
    "assert_not_called",
    "calls_in",
    "forbid_real_requests",
]
