"""The endpoints of provider APIs: addresses, paths, and where keys go."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The public endpoint of a provider API.

    Attributes:
        base_url: the base URL; "" if there is no public endpoint.
        path: the path of a request; `{model}` is replaced by the model's name.
        stream_path: the path of a request for a stream, if it differs.
        key: environment variables that may contain the key; the first that is set counts.
        header: the header of the key.
        prefix: text before the key.
        headers: additional headers.
        omit: members of the body that are part of the URL.
        signed: whether requests are signed with AWS credentials.
    """

    base_url: str = ""
    path: str = "/chat/completions"
    stream_path: str = ""
    key: tuple[str, ...] = ()
    header: str = "authorization"
    prefix: str = "Bearer "
    headers: tuple[tuple[str, str], ...] = ()
    omit: tuple[str, ...] = ()
    signed: bool = False


_GEMINI = Endpoint(
    "https://generativelanguage.googleapis.com",
    "/v1beta/models/{model}:generateContent",
    "/v1beta/models/{model}:streamGenerateContent?alt=sse",
    ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    header="x-goog-api-key",
    prefix="",
)
ENDPOINTS = {
    "openai_chat": Endpoint("https://api.openai.com/v1", key=("OPENAI_API_KEY",)),
    "openai_responses": Endpoint("https://api.openai.com/v1", "/responses", key=("OPENAI_API_KEY",)),
    "azure": Endpoint(key=("AZURE_OPENAI_API_KEY",), header="api-key", prefix=""),
    "anthropic_messages": Endpoint(
        "https://api.anthropic.com",
        "/v1/messages",
        key=("ANTHROPIC_API_KEY",),
        header="x-api-key",
        prefix="",
        headers=(("anthropic-version", "2023-06-01"),),
    ),
    "gemini": _GEMINI,
    "gemini_openapi": _GEMINI,
    "bedrock_converse": Endpoint(
        "https://bedrock-runtime.{region}.amazonaws.com",
        "/model/{model}/converse",
        "/model/{model}/converse-stream",
        omit=("modelId",),
        signed=True,
    ),
    "mistral": Endpoint("https://api.mistral.ai/v1", key=("MISTRAL_API_KEY",)),
    "cohere": Endpoint("https://api.cohere.com", "/v2/chat", key=("COHERE_API_KEY", "CO_API_KEY")),
    "ollama": Endpoint("http://localhost:11434", "/api/chat", key=("OLLAMA_API_KEY",)),
    "groq": Endpoint("https://api.groq.com/openai/v1", key=("GROQ_API_KEY",)),
    "deepseek": Endpoint("https://api.deepseek.com", key=("DEEPSEEK_API_KEY",)),
    "xai": Endpoint("https://api.x.ai/v1", key=("XAI_API_KEY",)),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", key=("OPENROUTER_API_KEY",)),
    "together": Endpoint("https://api.together.xyz/v1", key=("TOGETHER_API_KEY",)),
    "fireworks": Endpoint("https://api.fireworks.ai/inference/v1", key=("FIREWORKS_API_KEY",)),
    "cerebras": Endpoint("https://api.cerebras.ai/v1", key=("CEREBRAS_API_KEY",)),
    "moonshot": Endpoint("https://api.moonshot.ai/v1", key=("MOONSHOT_API_KEY",)),
    "vllm": Endpoint("http://localhost:8000/v1", key=("VLLM_API_KEY",)),
    "sglang": Endpoint("http://localhost:30000/v1"),
    "llama_cpp": Endpoint("http://localhost:8080/v1"),
}
