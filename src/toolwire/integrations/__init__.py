"""Integrations: any model of Toolwire inside other frameworks, in the interface that each framework expects."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "integrations.model_argument": "AnyModel",
        "integrations.openai_transport": "ToolwireTransport",
        "integrations.transformers": "parse_response tokenizer_format",
    },
)
