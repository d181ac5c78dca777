"""Phi-4-mini: the word `functools` and a JSON list of calls.

    functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

The tokens of its vocabulary, `<|tool_call|>` and `<|/tool_call|>`, are read too.
Source: https://huggingface.co/microsoft/Phi-4-mini-instruct (chat template)
"""

from toolwire.wire.syntax import JsonCall, Listing, Lit, WireFormat

_CLOSE = Lit("<|/tool_call|>", need="optional", written=False)

FORMAT = WireFormat(
    name="phi4",
    title='functools[{"name":..,"arguments":{..}}]',
    aliases=("phi4_mini_json",),
    models="Phi-4-mini",
    source="https://huggingface.co/microsoft/Phi-4-mini-instruct",
    blocks=(
        (Lit("functools", hint=True), JsonCall(array="always"), _CLOSE),
        (Lit("<|tool_call|>"), JsonCall(array="always"), _CLOSE),
    ),
    definitions=Listing("<|tool|>[", "]<|/tool|>", between=", "),
)
