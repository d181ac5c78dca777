"""Sarashina: a marker and a list of calls, which the model writes as Python writes a list of dictionaries.

    <|tool_calls|>[{'name': 'get_weather', 'arguments': {'city': 'Paris'}}]

A server that strips special tokens leaves the list alone, which `auto` reads as a call to known tools.
Source: https://huggingface.co/sbintuitions, and the parser of this name in the crate tool-parser
"""

from toolwire.wire.syntax import JsonCall, Lit, WireFormat

FORMAT = WireFormat(
    name="sarashina",
    title="<|tool_calls|>[{'name': 'F', 'arguments': {..}}]",
    models="Sarashina",
    source="https://huggingface.co/sbintuitions",
    blocks=(
        (
            Lit("<|tool_calls|>"),
            JsonCall(array="always"),
            Lit("<|/tool_calls|>", need="optional", written=False),
        ),
    ),
)
