"""Autobyteus JSON: a call as an object under the key `tool`.

    {"tool": {"function": "get_weather", "parameters": {"city": "Paris"}}}

The format has no markers, so only known tools count. Source: https://github.com/AutoByteus/autobyteus
"""

from dataclasses import replace

from toolwire.wire.formats.json_fence import FORMAT as JSON_FENCE
from toolwire.wire.formats.json_fence import fenced
from toolwire.wire.syntax import JsonCall

_CALLS = JsonCall(
    name=("function", "name"),
    args=("parameters", "arguments"),
    inside=("tool",),
    nested=True,
    array="several",
    needs_args=True,
)

FORMAT = replace(
    JSON_FENCE,
    name="autobyteus_json",
    title='{"tool":{"function":"F","parameters":{..}}}',
    models="any prompted model (Autobyteus)",
    source="https://github.com/AutoByteus/autobyteus",
    blocks=((_CALLS,), fenced(_CALLS)),
)
