"""The endpoints of provider APIs: addresses, paths, and where keys go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from toolwire.errors import ConfigurationError


def is_relative(model: str) -> bool:
    """Return whether the name of a model leads to another address as a part of a path, however it is encoded."""
    return model in (".", "..")


def with_model(path: str, model: str) -> str:
    """Return a path with the name of a model in its place.

    Raises:
        ConfigurationError: the name would lead to another address.
    """
    if "{model}" in path and is_relative(model):
        raise ConfigurationError(f"{model!r} is a relative path, and not the name of a model")
    return path.replace("{model}", quote(model, safe=""))


@dataclass(frozen=True, slots=True)
class CountEndpoint:
    """An endpoint that counts the tokens of a request without answering it.

    Attributes:
        path: the path; `{model}` is replaced by the model's name.
        tokens: the member of the response that has the number.
        members: members of the request that it takes; empty for all.
        wrapper: the member that contains the request, with the model's name; "" if the request is the body.
    """

    path: str
    tokens: str = "input_tokens"
    members: frozenset[str] = frozenset()
    wrapper: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The public endpoint of a provider API.

    Attributes:
        base_url: the base URL; "" if there is no public endpoint. Names in braces are those of `cloud_places`.
        root: the path of a base URL that has none.
        path: the path of a request; `{model}` is replaced by the model's name.
        stream_path: the path of a request for a stream, if it differs.
        key: environment variables that may contain the key; the first that is set counts.
        header: the header of the key.
        prefix: text before the key.
        headers: additional headers.
        omit: members of the body that are part of the URL.
        signed: whether requests are signed with AWS credentials.
        prices: the provider in the list of published prices; "" if it publishes none.
        counts_streams: the server reports the tokens of a stream only if `stream_options` asks for them.
        betas: values of the header `anthropic-beta`, by the types of the edits in `context_management` that need them.
        beta_member: the member of the body that contains these values; "" if the header does.
        count: where tokens are counted before a request; None if the API does not count them.
        models: the path of the list of models; "" for none.
    """

    base_url: str = ""
    root: str = ""
    path: str = "/chat/completions"
    stream_path: str = ""
    key: tuple[str, ...] = ()
    header: str = "authorization"
    prefix: str = "Bearer "
    headers: tuple[tuple[str, str], ...] = ()
    omit: tuple[str, ...] = ()
    signed: bool = False
    prices: str = ""
    counts_streams: bool = False
    betas: tuple[tuple[str, str], ...] = ()
    beta_member: str = ""
    count: CountEndpoint | None = None
    models: str = "/models"

    def betas_of(self, body: Mapping[str, Any]) -> list[str]:
        """Return the features of a body that the service takes only if a header names them."""
        match body.get("context_management"):
            case {"edits": [*edits]}:
                types = [edit.get("type") for edit in edits if isinstance(edit, Mapping)]
                return [beta for type, beta in self.betas if type in types]
        return []


_BETAS = (("compact_20260112", "compact-2026-01-12"),)
_Compatible = partial(Endpoint, counts_streams=True)
"""A server of Chat Completions."""
_AZURE = partial(_Compatible, key=("AZURE_OPENAI_API_KEY",), header="api-key", prefix="", prices="azure")
_BEDROCK = partial(Endpoint, "https://bedrock-runtime.{aws_region}.amazonaws.com", signed=True, prices="aws", models="")
_VERTEX_CLAUDE = "/projects/{google_project}/locations/{google_region}/publishers/anthropic/models/{model}"
_GEMINI = Endpoint(
    "https://generativelanguage.googleapis.com",
    path="/v1beta/models/{model}:generateContent",
    stream_path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
    key=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    header="x-goog-api-key",
    prefix="",
    prices="google",
    # https://ai.google.dev/api/tokens
    count=CountEndpoint("/v1beta/models/{model}:countTokens", "totalTokens", wrapper="generateContentRequest"),
    models="/v1beta/models",
)
ENDPOINTS = {
    "openai_chat": _Compatible("https://api.openai.com/v1", key=("OPENAI_API_KEY",), prices="openai"),
    "openai_responses": Endpoint(
        "https://api.openai.com/v1",
        path="/responses",
        key=("OPENAI_API_KEY",),
        prices="openai",
        # https://platform.openai.com/docs/api-reference/responses/input-tokens
        count=CountEndpoint(
            "/responses/input_tokens",
            members=frozenset(("model", "input", "instructions", "tools", "tool_choice", "text", "reasoning")),
        ),
    ),
    # https://learn.microsoft.com/en-us/azure/ai-foundry/openai/api-version-lifecycle
    "azure": _AZURE(root="/openai/v1"),
    "azure_deployments": _AZURE(
        path="/openai/deployments/{model}/chat/completions?api-version={azure_version}", models=""
    ),
    "anthropic_messages": Endpoint(
        "https://api.anthropic.com",
        path="/v1/messages",
        models="/v1/models",
        key=("ANTHROPIC_API_KEY",),
        header="x-api-key",
        prefix="",
        headers=(("anthropic-version", "2023-06-01"),),
        prices="anthropic",
        betas=_BETAS,
        # https://docs.claude.com/en/api/messages-count-tokens
        count=CountEndpoint(
            "/v1/messages/count_tokens",
            members=frozenset(
                (
                    *("model", "messages", "system", "tools", "tool_choice"),
                    *("thinking", "output_config", "context_management"),
                )
            ),
        ),
    ),
    "gemini": _GEMINI,
    "gemini_openapi": _GEMINI,
    "gemini_interactions": Endpoint(
        "https://generativelanguage.googleapis.com",
        path="/v1beta/interactions",
        models="/v1beta/models",
        key=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        header="x-goog-api-key",
        prefix="",
        prices="google",
    ),
    "bedrock_converse": _BEDROCK(
        path="/model/{model}/converse", stream_path="/model/{model}/converse-stream", omit=("modelId",)
    ),
    "anthropic_bedrock": _BEDROCK(
        path="/model/{model}/invoke",
        stream_path="/model/{model}/invoke-with-response-stream",
        betas=_BETAS,
        beta_member="anthropic_beta",
    ),
    "anthropic_vertex": Endpoint(
        "https://{google_host}/v1",
        path=f"{_VERTEX_CLAUDE}:rawPredict",
        stream_path=f"{_VERTEX_CLAUDE}:streamRawPredict",
        key=("GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
        prices="google",
        models="",
        betas=_BETAS,
    ),
    "mistral": Endpoint("https://api.mistral.ai/v1", key=("MISTRAL_API_KEY",), prices="mistral"),
    "cohere": Endpoint(
        "https://api.cohere.com",
        path="/v2/chat",
        key=("COHERE_API_KEY", "CO_API_KEY"),
        prices="cohere",
        models="/v1/models",
    ),
    "ollama": Endpoint("http://localhost:11434", path="/api/chat", key=("OLLAMA_API_KEY",), models="/api/tags"),
    "groq": _Compatible("https://api.groq.com/openai/v1", key=("GROQ_API_KEY",), prices="groq"),
    "deepseek": _Compatible("https://api.deepseek.com", key=("DEEPSEEK_API_KEY",), prices="deepseek"),
    "xai": _Compatible("https://api.x.ai/v1", key=("XAI_API_KEY",), prices="x-ai"),
    "openrouter": _Compatible("https://openrouter.ai/api/v1", key=("OPENROUTER_API_KEY",), prices="openrouter"),
    "together": _Compatible("https://api.together.xyz/v1", key=("TOGETHER_API_KEY",), prices="together"),
    "fireworks": _Compatible("https://api.fireworks.ai/inference/v1", key=("FIREWORKS_API_KEY",), prices="fireworks"),
    "cerebras": _Compatible("https://api.cerebras.ai/v1", key=("CEREBRAS_API_KEY",), prices="cerebras"),
    "moonshot": _Compatible("https://api.moonshot.ai/v1", key=("MOONSHOT_API_KEY",), prices="moonshotai"),
    "vllm": _Compatible("http://localhost:8000/v1", key=("VLLM_API_KEY",)),
    "sglang": _Compatible("http://localhost:30000/v1"),
    "llama_cpp": _Compatible("http://localhost:8080/v1"),
    "lm_studio": _Compatible("http://localhost:1234/v1"),
    "ollama_chat": _Compatible("http://localhost:11434/v1", key=("OLLAMA_API_KEY",)),
    "zai": _Compatible("https://api.z.ai/api/paas/v4", key=("ZAI_API_KEY",), prices="zai"),
    "venice": _Compatible("https://api.venice.ai/api/v1", key=("VENICE_API_KEY",)),
    "hugging_face": _Compatible("https://router.huggingface.co/v1", key=("HF_TOKEN",)),
    "deepinfra": _Compatible("https://api.deepinfra.com/v1/openai", key=("DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN")),
    "cloudflare": _Compatible(
        "https://api.cloudflare.com/client/v4/accounts/{cloudflare_account}/ai/v1",
        key=("CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY"),
        prices="cloudflare",
    ),
    # No variable for the key: a key of one provider must not be sent to whatever server the address names.
    "openai_compatible": _Compatible(),
}
