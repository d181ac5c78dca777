"""Models and transports for tests: scripted answers, recordings of real ones, and assertions about calls.

`toolwire.testing.pytest_plugin` is a plugin for pytest, which finds it by itself.
"""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "testing.assertions": "assert_called assert_not_called calls_in",
        "testing.real_requests": "forbid_real_requests",
        "testing.transports": "RecordingTransport ReplayTransport ScriptedBackend ScriptedTransport",
    },
)
