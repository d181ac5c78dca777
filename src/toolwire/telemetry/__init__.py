"""Telemetry: run records in a local file, statistics, OpenTelemetry, and the format coach."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "telemetry.archive": "Archive Figures Recorded",
        "telemetry.coach": "CONFIDENCE ENOUGH EXPLORE Advice Choice Standing Tally advise choose",
        "telemetry.coached_backend": "Coach CoachedBackend coached text_backend",
        "telemetry.defaults": "flush keeps_content standard_archive standard_observers",
        "telemetry.otel": "Tracing",
        "telemetry.recorder": "MOST_BYTES MOST_DAYS WAITING_BYTES OutcomeRecord Recorder",
        "telemetry.records": "NATIVE ApprovalRecord CallRecord EndRecord Observer RunRecord TurnRecord",
        "telemetry.row_codec": "MAX_RAW MAX_TEXT",
        "text.redaction": "redact",
    },
)
