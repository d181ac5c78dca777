# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.openapi.openapi_tools import OpenApi as OpenApi
from toolwire.openapi.openapi_tools import OpenApiOptions as OpenApiOptions

__all__ = [
    "OpenApi",
    "OpenApiOptions",
]
