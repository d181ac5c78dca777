"""The observers of agents that name none, and the archive of the recorded runs.

A library writes nothing by itself: runs are recorded where a program asks for it, as `toolwire ask` and `chat` do, or
where the environment variable TOOLWIRE_RECORD does. It is `on`, `figures` to store no task, text, argument or result,
or `off`, which counts before what programs ask for. OpenTelemetry has variables of its own, see `telemetry.otel`.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Final

from toolwire.errors import ConfigurationError
from toolwire.runtime.state_dir import state_folder
from toolwire.telemetry.archive import Archive
from toolwire.telemetry.recorder import ENOUGH, FILE, Recorder
from toolwire.telemetry.records import Observer

SWITCH: Final = "TOOLWIRE_RECORD"
_ON: Final = frozenset({"on", "yes", "true", "1"})
_UNSET: Final = ""
_OFF: Final = frozenset({"off", "no", "false", "0", "none"})
_FIGURES: Final = "figures"

_recorders: dict[tuple[str, bool], Recorder] = {}
_tracings: list[Observer] = []
_lock = threading.Lock()


def standard_observers(telemetry: bool | None = None) -> tuple[Observer, ...]:
    """Return the default observers of an agent: the recorder if it is asked for, and OpenTelemetry if it is configured.

    Args:
        telemetry: True to record runs, unless TOOLWIRE_RECORD is `off`; None to record them if TOOLWIRE_RECORD is `on`
            or `figures`; False for no observer at all.

    Raises:
        ConfigurationError: the variable has an unknown value.
    """
    switch = _switch()
    if telemetry is False:
        return ()
    recorded = switch not in _OFF and (switch != _UNSET or telemetry is True)
    recorders: tuple[Observer, ...] = (_recorder(content=switch != _FIGURES),) if recorded else ()
    return (*recorders, *_tracing())


def keeps_content() -> bool:
    """Return whether texts of runs may be stored on this machine by a program that records runs.

    Raises:
        ConfigurationError: the variable has an unknown value.
    """
    return _switch() in {*_ON, _UNSET}


def standard_archive() -> Archive:
    """Return the recorded runs of this machine, after records of this process have been written."""
    flush()
    return Archive(state_folder() / FILE)


def flush(timeout: float = ENOUGH) -> None:
    """Wait until the records of this process are written, at most `timeout` seconds for each file."""
    for recorder in list(_recorders.values()):
        recorder.flush(timeout)


def _switch() -> str:
    switch = os.environ.get(SWITCH, "").strip().lower()
    if switch not in _ON | _OFF | {_FIGURES, _UNSET}:
        raise ConfigurationError(f"{SWITCH} can be on, off or figures, not {switch!r:.80}")
    return switch


def _recorder(*, content: bool) -> Recorder:
    path = state_folder() / FILE
    key = str(path), content
    with _lock:
        if key not in _recorders:
            _recorders[key] = Recorder(path, content=content)
        return _recorders[key]


def uses_opentelemetry() -> bool:
    """Return whether the program or the environment has to do with OpenTelemetry; otherwise nothing is imported."""
    return "opentelemetry.sdk" in sys.modules or any(name.startswith("OTEL_") for name in os.environ)


def _tracing() -> tuple[Observer, ...]:
    if not uses_opentelemetry():
        return ()
    with _lock:
        if not _tracings:
            try:
                from toolwire.telemetry.otel import configured
            except ImportError:
                return ()
            if (tracing := configured()) is not None:
                _tracings.append(tracing)
        return tuple(_tracings)
