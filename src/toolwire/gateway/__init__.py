"""The gateway: an HTTP server that speaks the APIs of all clients, and asks any model behind it."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "gateway.access": "Access",
        "gateway.app": "Gateway",
        "gateway.model_table": "ModelTable ServedModel",
        "gateway.questions": "Upstream",
        "gateway.serving": "ServerOptions serve",
        "gateway.upstreams": "ApiUpstream TextUpstream",
        "inspector.inspector": "InspectorOptions",
    },
)
