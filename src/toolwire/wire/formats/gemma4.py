"""Gemma 4: arguments with bare keys, and with strings between tokens, in which nothing is escaped.

    <|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>

Small models also write keyword arguments in parentheses, `call:get_weather(city="Paris")`, and Gemma 3's code fences.
Source: https://huggingface.co/google (chat template of Gemma 4)
"""

from toolwire.wire.formats.gemma_tool_code import FORMAT as GEMMA_TOOL_CODE
from toolwire.wire.syntax import Call, KeywordArgs, Listing, Lit, Many, Name, OneOf, Span, TokenArgs, WireFormat

_CALL = Call((Lit("call:", also=(":",)), Name(), OneOf(((TokenArgs('<|"|>'),), (KeywordArgs(),)))))

FORMAT = WireFormat(
    name="gemma4",
    title='<|tool_call>call:NAME{k:<|"|>v<|"|>,n:1}<tool_call|>',
    aliases=("gemma4_no_thinking",),
    models="Gemma 4",
    source="https://huggingface.co/google",
    spans=(
        Span("<|channel>thought\n", "<channel|>"),
        Span("<|channel>thought", "<channel|>"),
        Span("<|channel>", "<channel|>"),
    ),
    ends_reasoning=True,
    blocks=(
        (
            Lit("<|tool_call>"),
            Many((_CALL,), together=False),
            Lit("<tool_call|>", need="forgiven"),
        ),
        *GEMMA_TOOL_CODE.blocks,
    ),
    join="",
    result=('<|tool_response>response:{name}{value:<|"|>', '<|"|>}<tool_response|>'),
    definitions=Listing("", "", between="", each=("<|tool>", "<tool|>"), shape="declaration", token='<|"|>'),
)
