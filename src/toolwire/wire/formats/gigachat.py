"""GigaChat 3 and 3.1: one JSON object after a marker or a message header, without a closing marker.

    <|function_call|>{"name": "get_weather", "arguments": {"city": "Paris"}}

Source: https://huggingface.co/ai-sage/GigaChat3-10B-A1.8B (chat template)
"""

from toolwire.wire.syntax import JsonCall, Lit, WireFormat

FORMAT = WireFormat(
    name="gigachat",
    title='<|function_call|>{"name":..,"arguments":{..}}',
    aliases=("gigachat3",),
    models="GigaChat 3, 3.1",
    source="https://huggingface.co/ai-sage/GigaChat3-10B-A1.8B",
    result=("function result<|role_sep|>\n", "<|message_sep|>"),
    blocks=(
        (Lit("<|function_call|>"), JsonCall()),
        (Lit("<|message_sep|>"), Lit("function call"), Lit("<|role_sep|>"), JsonCall()),
    ),
)
