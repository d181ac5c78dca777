"""Model backends: an API, plain text, or a model in this process; and the transports of API clients."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "client.client": "Client",
        "client.exchange": "HttpAnswer HttpRequest Transport",
        "client.extraction": "ExtractOptions",
        "client.transport": "HttpTransport Retry",
        "models.backends": ("ApiBackend Attempt Backend Source StreamOptions TextBackend client_source text_messages"),
        "models.constraints": "Constraint GrammarServer",
        "models.model_group": "CircuitBreaker Failure Fallback Route",
        "models.process_sources": "TextFunction Writer function_source local_source",
        "models.local.model_files": "locate open_model",
        "models.local.runtime": "LocalModel",
        "models.local.weights": "WEIGHTS fetch",
        "providers.model_settings": "Effort ModelOptions ModelSettings",
        "providers.request": "AskOptions RequestOptions",
    },
)
