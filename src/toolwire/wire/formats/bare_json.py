"""Bare JSON: the whole message is one call or a list of calls, with or without a code fence around it.

    {"name": "get_weather", "arguments": {"city": "Paris"}}

Objects around a call or a list of calls, as in APIs, are read too. The format has no markers, so only known tools
count, and only at the start of the message.
Source: output of small models that are asked for JSON, and of models with `tool_choice: required`
"""

from toolwire.wire.syntax import THINK, THINKING, JsonCall, Lit, WireFormat

_CALLS = JsonCall(
    name=("name", "function", "tool_name"),
    args=("arguments", "parameters", "args"),
    inside=("function", "tool"),
    lists=("tool_calls", "tools", "tool"),
    array="several",
    between="; ",
    needs_args=True,
)

FORMAT = WireFormat(
    name="bare_json",
    title='{"name":..,"arguments|parameters":{..}} or a list of them, bare or as the only fence',
    aliases=("json_array",),
    models='any; output of tool_choice "required"',
    spans=(THINK, THINKING),
    markers=False,
    at="start",
    fences=False,
    confidence=0.9,
    blocks=(
        (_CALLS,),
        (Lit("```json", also=("```", "```JSON", "```tool_call", "```tool_code")), _CALLS, Lit("```", need="forgiven")),
    ),
)
