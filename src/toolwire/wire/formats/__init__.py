"""Descriptions of wire formats, one file each, and the tuple that lists them."""

from importlib import import_module

from toolwire.wire.syntax import WireFormat

# Each name is a module of this package. The order decides ties of detection, so frequent formats come first.
_NAMES = [
    "plain", "hermes", "qwen3_coder", "forge_xml", "forge_json", "autobyteus_xml", "anthropic_xml", "utp_xml",
    "langchain_xml", "mistral_args", "mistral_json", "deepseek_v3_1", "kimi_k2", "apertus", "apriel", "beam",
    "cohere_action", "cohere_json", "cwm", "deepseek_dsml", "deepseek_v3", "deepseek_v4_1", "dots", "ernie45",
    "firefunction", "functionary_v2", "functionary_v2_5", "functionary_v3_1", "functionary_v3_2", "functiongemma",
    "gemma_tool_code", "gemma4", "gigachat", "gigachat35", "glimmer", "glm4", "granite", "granite_20b", "harmony",
    "hunyuan", "hunyuan_v3", "inkling", "internlm", "iquest_coder_v2", "jamba", "k2_horizon", "kimi_k3", "laguna",
    "lfm2", "longcat", "mimo", "minicpm5", "minimax_json", "minimax_m2", "minimax_m3", "nemotron", "olmo3", "phi4",
    "plamo3", "qwen_agent", "rwkv", "sarashina", "seed_oss", "solar_open", "solar_open2", "step3", "telechat4",
    "react", "action_json", "pythonic", "bare_json", "llama3_json", "json_fence", "gemini_json", "openai_json",
    "autobyteus_json", "xlam", "smolagents_code", "tool_tags",
]  # fmt: skip

FORMATS: tuple[WireFormat, ...] = tuple(import_module(f"{__name__}.{name}").FORMAT for name in _NAMES)
"""The wire formats of this package, without registered ones."""
