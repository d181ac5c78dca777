"""The log of the gateway: what clients and backends wrote forges no line in it, and steers no terminal."""

from __future__ import annotations

import logging
from textwrap import indent

from toolwire.errors import capture_errors
from toolwire.text.escape import escape_invisible


class _Escaping(logging.Filter):
    """Makes records safe to show: a path or an error may contain line ends and sequences that a terminal obeys."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Escape the message and the traceback of a record; let it pass."""
        with capture_errors():  # arguments that do not fit are reported by handlers, and not raised
            record.msg, record.args = escape_invisible(record.getMessage()), ()
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            # The message of an error may have several lines, none of which may look like a record.
            record.exc_text, record.exc_info = indent(escape_invisible(text, "\n\t"), "  "), None
        return True


LOG = logging.getLogger("toolwire.gateway")
LOG.addFilter(_Escaping())
