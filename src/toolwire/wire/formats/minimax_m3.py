"""MiniMax M3: a token before every tag, and parameters as elements, nested for objects and lists.

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

Source: https://huggingface.co/MiniMaxAI (chat template of MiniMax-M3)
"""

from toolwire.wire.syntax import Call, Elements, Listing, Lit, Many, Span, Tag, WireFormat

_TOKEN = "]<]minimax[>["
_INVOKE = Call(
    (
        Tag("invoke", role="name", open=f"{_TOKEN}<"),
        Elements(token=_TOKEN),
        Lit(f"{_TOKEN}</invoke>", after="\n"),
    )
)

FORMAT = WireFormat(
    name="minimax_m3",
    title=f'{_TOKEN}<invoke name="F">{_TOKEN}<k>v{_TOKEN}</k>{_TOKEN}</invoke>',
    aliases=("minimax-m3",),
    models="MiniMax M3",
    source="https://huggingface.co/MiniMaxAI",
    spans=(Span("<mm:think>", "</mm:think>"),),
    blocks=(
        (
            Lit(f"{_TOKEN}<tool_call>", after="\n"),
            Many((_INVOKE,)),
            Lit(f"{_TOKEN}</tool_call>", need="forgiven"),
        ),
    ),
    definitions=Listing(each=("<tool>", "</tool>"), shape="function"),
    result=("<response>", "</response>"),
)
