"""The members for settings in Chat Completions, as each provider takes them."""

from __future__ import annotations

from toolwire.providers import reasoning_effort
from toolwire.providers.setting_members import SettingMembers

_BASIC = {"temperature": "temperature", "top_p": "top_p", "stop": "stop"}
_PENALTIES = {"frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty"}
_SAMPLING = {**_BASIC, **_PENALTIES, "seed": "seed"}
_OPEN = {**_SAMPLING, "top_k": "top_k"}
_USER = {"user": "end_user"}
_SERVICE = {"service_tier": "service_tier", "metadata": "metadata"}
_STANDARD_ONLY = {"auto": "auto", "default": "standard_only"}

OPENAI = SettingMembers({**_SAMPLING, **_USER, **_SERVICE}, reasoning_effort.CHAT)
"""Source: https://platform.openai.com/docs/api-reference/chat/create"""

OPENROUTER = SettingMembers({**_OPEN, **_USER, **_SERVICE}, reasoning_effort.OPENROUTER)
"""Source: https://openrouter.ai/docs/api-reference/parameters"""

GROQ = SettingMembers(
    {**_SAMPLING, **_USER, "service_tier": "service_tier"},
    reasoning_effort.FOUR_LEVELS,
    {"auto": "auto", "default": "on_demand", "flex": "flex", "priority": "performance"},
)
"""Source: https://console.groq.com/docs/api-reference and https://console.groq.com/docs/service-tiers"""

DEEPSEEK = SettingMembers({**_BASIC, **_PENALTIES}, reasoning_effort.DEEPSEEK)
"""Source: https://api-docs.deepseek.com/api/create-chat-completion"""

XAI = SettingMembers({**_SAMPLING, **_USER}, reasoning_effort.FOUR_LEVELS)
"""Source: https://docs.x.ai/docs/api-reference"""

TOGETHER = SettingMembers(_OPEN, reasoning_effort.TOGETHER)
"""Source: https://docs.together.ai/reference/chat-completions-1"""

FIREWORKS = SettingMembers({**_OPEN, **_USER}, reasoning_effort.FIREWORKS)
"""Source: https://docs.fireworks.ai/api-reference/post-chatcompletions"""

CEREBRAS = SettingMembers({**_BASIC, "seed": "seed", **_USER}, reasoning_effort.FOUR_LEVELS)
"""It refuses penalties. Source: https://inference-docs.cerebras.ai/resources/openai"""

MOONSHOT = SettingMembers({**_BASIC, **_PENALTIES}, reasoning_effort.MOONSHOT)
"""Source: https://platform.moonshot.ai/docs/api/chat"""

MISTRAL = SettingMembers(
    {**_BASIC, **_PENALTIES, "top_k": "top_k", "random_seed": "seed", **_SERVICE}, reasoning_effort.CHAT, _STANDARD_ONLY
)
"""Source: https://docs.mistral.ai/api/endpoint/chat and the types of the official client"""

VLLM = SettingMembers(_OPEN, reasoning_effort.VLLM)
"""Its server ignores the user. Source: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"""

SGLANG = SettingMembers(_OPEN, reasoning_effort.CHAT)
"""Source: https://docs.sglang.ai/basic_usage/openai_api_completions.html"""

LLAMA_CPP = SettingMembers(_OPEN, reasoning_effort.LLAMA_CPP)
"""Source: https://github.com/ggml-org/llama.cpp/tree/master/tools/server"""

ZAI = SettingMembers({**_BASIC, "user_id": "end_user"}, reasoning_effort.ZAI)
"""Source: https://docs.z.ai/api-reference/llm/chat-completion"""

VENICE = SettingMembers({**_OPEN, **_USER}, reasoning_effort.CHAT)
"""Source: https://docs.venice.ai/api-reference/endpoint/chat/completions"""

HUGGING_FACE = SettingMembers(_SAMPLING, reasoning_effort.CHAT)
"""Its router passes requests on to many providers. Source: https://huggingface.co/docs/inference-providers"""

DEEPINFRA = SettingMembers({**_OPEN, **_USER}, reasoning_effort.FOUR_LEVELS)
"""Source: https://deepinfra.com/docs/openai_api"""

CLOUDFLARE = SettingMembers(_OPEN, reasoning_effort.FOUR_LEVELS)
"""Source: https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility"""

OLLAMA_CHAT = SettingMembers(_SAMPLING, reasoning_effort.CHAT)
"""Its names of levels depend on the model. Source: https://docs.ollama.com/api/openai-compatibility"""

LM_STUDIO = SettingMembers(_OPEN, reasoning_effort.CHAT)
"""Source: https://lmstudio.ai/docs/developer/openai-compat"""

COMPATIBLE = SettingMembers({**_SAMPLING, **_USER}, reasoning_effort.CHAT)
"""The members of OpenAI's that other servers implement: tiers and metadata are for its own service."""

GEMINI_CHAT = SettingMembers(_BASIC, reasoning_effort.GEMINI_CHAT)
"""Source: https://ai.google.dev/gemini-api/docs/openai"""
