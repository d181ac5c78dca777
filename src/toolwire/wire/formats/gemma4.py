"""Gemma 4: arguments with bare keys, and with strings between tokens, in which nothing is escaped.

    <|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>

Source: https://huggingface.co/google (chat template of Gemma 4)
"""

from toolwire.wire.syntax import Call, Listing, Lit, Name, Span, TokenArgs, WireFormat

FORMAT = WireFormat(
    name="gemma4",
    title='<|tool_call>call:NAME{k:<|"|>v<|"|>,n:1}<tool_call|>',
    models="Gemma 4",
    source="https://huggingface.co/google",
    spans=(Span("<|channel>thought", "<channel|>"), Span("<|channel>", "<channel|>")),
    blocks=(
        (
            Lit("<|tool_call>"),
            Call((Lit("call:", also=(":",)), Name(), TokenArgs('<|"|>'))),
            Lit("<tool_call|>", need="forgiven"),
        ),
    ),
    join="",
    result=('<|tool_response>response:{name}{value:<|"|>', '<|"|>}<tool_response|>'),
    definitions=Listing("", "", between="", each=("<|tool>", "<tool|>"), shape="declaration", token='<|"|>'),
)
