"""OpenAPI: the operations of an HTTP API as tools (`OpenApi`).

Calls need the extra `agent`; documents in YAML and `strict=True` need the extra `openapi`.
"""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {"openapi.openapi_tools": "OpenApi OpenApiOptions"},
)
