# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.telemetry.archive import Archive as Archive
from toolwire.telemetry.archive import Figures as Figures
from toolwire.telemetry.archive import Recorded as Recorded
from toolwire.telemetry.coach import CONFIDENCE as CONFIDENCE
from toolwire.telemetry.coach import ENOUGH as ENOUGH
from toolwire.telemetry.coach import EXPLORE as EXPLORE
from toolwire.telemetry.coach import Advice as Advice
from toolwire.telemetry.coach import Choice as Choice
from toolwire.telemetry.coach import Standing as Standing
from toolwire.telemetry.coach import Tally as Tally
from toolwire.telemetry.coach import advise as advise
from toolwire.telemetry.coach import choose as choose
from toolwire.telemetry.coached_backend import Coach as Coach
from toolwire.telemetry.coached_backend import CoachedBackend as CoachedBackend
from toolwire.telemetry.coached_backend import coached as coached
from toolwire.telemetry.coached_backend import text_backend as text_backend
from toolwire.telemetry.defaults import flush as flush
from toolwire.telemetry.defaults import keeps_content as keeps_content
from toolwire.telemetry.defaults import standard_archive as standard_archive
from toolwire.telemetry.defaults import standard_observers as standard_observers
from toolwire.telemetry.otel import Tracing as Tracing
from toolwire.telemetry.recorder import MOST_BYTES as MOST_BYTES
from toolwire.telemetry.recorder import MOST_DAYS as MOST_DAYS
from toolwire.telemetry.recorder import WAITING_BYTES as WAITING_BYTES
from toolwire.telemetry.recorder import OutcomeRecord as OutcomeRecord
from toolwire.telemetry.recorder import Recorder as Recorder
from toolwire.telemetry.records import NATIVE as NATIVE
from toolwire.telemetry.records import ApprovalRecord as ApprovalRecord
from toolwire.telemetry.records import CallRecord as CallRecord
from toolwire.telemetry.records import EndRecord as EndRecord
from toolwire.telemetry.records import Observer as Observer
from toolwire.telemetry.records import RunRecord as RunRecord
from toolwire.telemetry.records import TurnRecord as TurnRecord
from toolwire.telemetry.row_codec import MAX_RAW as MAX_RAW
from toolwire.telemetry.row_codec import MAX_TEXT as MAX_TEXT
from toolwire.text.redaction import redact as redact

__all__ = [
    "CONFIDENCE",
    "ENOUGH",
    "EXPLORE",
    "MAX_RAW",
    "MAX_TEXT",
    "MOST_BYTES",
    "MOST_DAYS",
    "NATIVE",
    "WAITING_BYTES",
    "Advice",
    "ApprovalRecord",
    "Archive",
    "CallRecord",
    "Choice",
    "Coach",
    "CoachedBackend",
    "EndRecord",
    "Figures",
    "Observer",
    "OutcomeRecord",
    "Recorded",
    "Recorder",
    "RunRecord",
    "Standing",
    "Tally",
    "Tracing",
    "TurnRecord",
    "advise",
    "choose",
    "coached",
    "flush",
    "keeps_content",
    "redact",
    "standard_archive",
    "standard_observers",
    "text_backend",
]
