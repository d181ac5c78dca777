"""Gemini's function calls, written as text.

    {"name": "get_weather", "args": {"city": "Paris"}}

The format has no markers, so only known tools count. Source: https://github.com/AutoByteus/autobyteus
"""

from dataclasses import replace

from toolwire.wire.formats.json_fence import FORMAT as JSON_FENCE
from toolwire.wire.formats.json_fence import fenced
from toolwire.wire.syntax import JsonCall

_CALLS = JsonCall(args=("args",), array="several", needs_args=True)

FORMAT = replace(
    JSON_FENCE,
    name="gemini_json",
    title='{"name":..,"args":{..}}',
    models="any prompted model (Autobyteus)",
    source="https://github.com/AutoByteus/autobyteus",
    blocks=((_CALLS,), fenced(_CALLS)),
)
