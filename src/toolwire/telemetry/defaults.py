"""The observers and the archive that every agent has by default.

The environment variable TOOLWIRE_TELEMETRY is `on` (the default), `figures` to store no task, text, argument or result,
or `off`. OpenTelemetry has variables of its own, see `telemetry.otel`.
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

SWITCH: Final = "TOOLWIRE_TELEMETRY"
_ON: Final = frozenset({"", "on", "yes", "true", "1"})
_OFF: Final = frozenset({"off", "no", "false", "0", "none"})
_FIGURES: Final = "figures"

_recorders: dict[tuple[str, bool], Recorder] = {}
_tracings: list[Observer] = []
_lock = threading.Lock()


def standard_observers() -> tuple[Observer, ...]:
    """Return the default observers of agents: the recorder, and OpenTelemetry if it is configured.

    Raises:
        ConfigurationError: the variable has an unknown value.
    """
    switch = _switch()
    recorders: tuple[Observer, ...] = () if switch in _OFF else (_recorder(content=switch != _FIGURES),)
    return (*recorders, *_tracing())


def keeps_content() -> bool:
    """Return whether texts of runs may be stored on this machine.

    Raises:
        ConfigurationError: the variable has an unknown value.
    """
    return _switch() in _ON


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
    if switch not in _ON | _OFF | {_FIGURES}:
        raise ConfigurationError(f"{SWITCH} can be on, off or figures, not {switch!r:.80}")
    return switch


def _recorder(*, content: bool) -> Recorder:
    path = state_folder() / FILE
    key = str(path), content
    with _lock:
        if key not in _recorders:
            _recorders[key] = Recorder(path, content=content)
        return _recorders[key]


def _tracing() -> tuple[Observer, ...]:
    if "opentelemetry.sdk" not in sys.modules and not any(name.startswith("OTEL_") for name in os.environ):
        return ()  # neither the program nor the environment has anything to do with it: nothing is imported
    with _lock:
        if not _tracings:
            try:
                from toolwire.telemetry.otel import configured
            except ImportError:
                return ()
            if (tracing := configured()) is not None:
                _tracings.append(tracing)
        return tuple(_tracings)
