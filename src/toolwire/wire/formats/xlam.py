"""xLAM: a JSON list of calls, bare, in a code fence, or between tags of other formats.

    [{"name": "get_weather", "arguments": {"city": "Paris"}}]

The format has no markers, so only known tools count. Source: https://huggingface.co/Salesforce/Llama-xLAM-2-8b-fc-r
"""

from dataclasses import replace

from toolwire.wire.formats.json_fence import FORMAT as JSON_FENCE
from toolwire.wire.formats.json_fence import fenced
from toolwire.wire.syntax import JsonCall, Lit

_CALLS = JsonCall(array="always", needs_args=True)

FORMAT = replace(
    JSON_FENCE,
    name="xlam",
    title='[{"name":..,"arguments":{..}}] bare, fenced, after [TOOL_CALLS] or in <tool_call>',
    models="xLAM, xLAM-2",
    source="https://huggingface.co/Salesforce/Llama-xLAM-2-8b-fc-r",
    blocks=(
        (_CALLS,),
        fenced(_CALLS),
        (Lit("[TOOL_CALLS]"), _CALLS),
        (Lit("<tool_call>"), _CALLS, Lit("</tool_call>", need="forgiven")),
    ),
)
