# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.web.ag_ui import ag_ui_stream as ag_ui_stream
from toolwire.web.ag_ui_input import ag_ui_run as ag_ui_run
from toolwire.web.vercel import VERCEL_HEADERS as VERCEL_HEADERS
from toolwire.web.vercel import vercel_stream as vercel_stream
from toolwire.web.vercel_input import vercel_run as vercel_run

__all__ = [
    "VERCEL_HEADERS",
    "ag_ui_run",
    "ag_ui_stream",
    "vercel_run",
    "vercel_stream",
]
