"""Model backends: an API, plain text, or a model in this process; and the transports of API clients."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "client.client": "Client",
        "client.exchange": "HttpAnswer HttpRequest Transport",
        "client.transport": "HttpTransport Retry",
        "models.backends": "ApiBackend Backend Source StreamOptions TextBackend Writer client_source local_source",
        "models.local.model_files": "locate open_model",
        "models.local.runtime": "LocalModel",
        "models.local.weights": "WEIGHTS fetch",
        "providers.request": "RequestOptions",
    },
)
