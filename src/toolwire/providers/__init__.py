"""Provider APIs: requests, responses and streams, encoded and decoded."""

from toolwire._surface import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "providers.bedrock_converse": "for_boto3",
        "providers.openai_chat": "GEMINI_CHAT",
    },
)
