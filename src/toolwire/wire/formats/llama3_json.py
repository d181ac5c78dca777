"""Llama 3: JSON objects after a token or as the whole message.

    {"name": "get_weather", "parameters": {"city": "Paris"}}

After `<|python_tag|>` models also write Python, `get_weather(city="Paris")` or `get_weather.call(city="Paris")`, and
anywhere the tags of custom tools, `<function=get_weather>{"city": "Paris"}</function>`.
The format has no markers, so only known tools count. Source: https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct
"""

from dataclasses import replace

from toolwire.wire.formats.json_fence import FORMAT as JSON_FENCE
from toolwire.wire.formats.qwen3_coder import FORMAT as QWEN3_CODER
from toolwire.wire.syntax import JsonCall, Lit, PyCalls

_CALLS = JsonCall(args=("parameters", "arguments"), inside=("function",), between="; ", needs_args=True)

FORMAT = replace(
    JSON_FENCE,
    name="llama3_json",
    detected=True,
    title='{"name":..,"parameters":{..}} alone or after <|python_tag|>, ; between calls',
    aliases=("llama3", "llama4_json", "llama_json"),
    models="Llama 3.1, 3.2, 3.3, Llama 4 (JSON prompt)",
    source="https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct",
    blocks=(
        (_CALLS,),
        (Lit("<|python_tag|>", repeats=True), PyCalls(bare=True, json=_CALLS, method="call")),
        (Lit("<|python_start|>"), _CALLS, Lit("<|python_end|>", need="forgiven")),
        *QWEN3_CODER.blocks,
    ),
)
