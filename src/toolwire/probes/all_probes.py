"""All probes in the order in which they run: those that most endpoints are asked for come first."""

from __future__ import annotations

from typing import Final

from toolwire.probes.answer_probes import ANSWER_PROBES
from toolwire.probes.argument_probes import ARGUMENT_PROBES
from toolwire.probes.call_probes import CALL_PROBES
from toolwire.probes.choice_probes import CHOICE_PROBES
from toolwire.probes.error_probes import ERROR_PROBES
from toolwire.probes.event_probes import EVENT_PROBES
from toolwire.probes.load_probes import LOAD_PROBES
from toolwire.probes.probe import Probe
from toolwire.probes.prompt_probes import PROMPT_PROBES
from toolwire.probes.result_probes import RESULT_PROBES
from toolwire.probes.wire_probes import WIRE_PROBES

PROBES: Final[tuple[Probe, ...]] = (
    *ANSWER_PROBES,
    *CALL_PROBES,
    *WIRE_PROBES,
    *EVENT_PROBES,
    *LOAD_PROBES,
    *CHOICE_PROBES,
    *ARGUMENT_PROBES,
    *RESULT_PROBES,
    *PROMPT_PROBES,
    *ERROR_PROBES,
)
