"""Events of runs as server-sent events for web front ends: AG-UI, and the data stream of Vercel's AI SDK."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "web.ag_ui": "ag_ui_stream",
        "web.ag_ui_input": "ag_ui_run",
        "web.vercel": "VERCEL_HEADERS vercel_stream",
        "web.vercel_input": "vercel_run",
    },
)
