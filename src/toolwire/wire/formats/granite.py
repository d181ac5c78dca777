"""Granite 3: a marker and a JSON list of calls, without a closing marker.

    <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]

Source: https://huggingface.co/ibm-granite/granite-3.3-8b-instruct (chat template)
"""

from toolwire.wire.syntax import THINK, JsonCall, Lit, Span, WireFormat

FORMAT = WireFormat(
    name="granite",
    title='<|tool_call|>[{"name":..,"arguments":{..}}]',
    aliases=("granite3",),
    models="Granite 3.0 to 3.3",
    source="https://huggingface.co/ibm-granite/granite-3.3-8b-instruct",
    spans=(Span("Here is my thought process:", "Here is my response:", prose=True), THINK),
    blocks=(
        (
            Lit("<|tool_call|>", also=("<tool_call>",)),
            JsonCall(array="always"),
            Lit("<|/tool_call|>", need="optional", written=False),
        ),
    ),
)
