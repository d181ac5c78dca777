r"""OpenAI's tool calls, written as text.

    {"tool_calls": [{"function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}]}

The format has no markers, so only known tools count. Source: https://github.com/AutoByteus/autobyteus
"""

from dataclasses import replace

from toolwire.wire.formats.json_fence import FORMAT as JSON_FENCE
from toolwire.wire.formats.json_fence import fenced
from toolwire.wire.syntax import JsonCall

_CALLS = JsonCall(
    args=("arguments",),
    id=("id",),
    inside=("function", "tool"),
    lists=("tool_calls", "tools", "tool"),
    nested=True,
    array="several",
    text=True,
    needs_args=True,
)

FORMAT = replace(
    JSON_FENCE,
    name="openai_json",
    title='{"tool_calls": [{"function": {"name":..,"arguments":"{..}"}}]}',
    models="any prompted model (Autobyteus)",
    source="https://github.com/AutoByteus/autobyteus",
    blocks=((_CALLS,), fenced(_CALLS)),
)
