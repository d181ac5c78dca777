"""MiniMax M3: a token before every tag, and parameters as elements, nested for objects and lists.

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

A server that strips special tokens leaves plain tags, with the text in them still literal. Between these, models also
write parameters as MiniMax M2 does.
Source: https://huggingface.co/MiniMaxAI (chat template of MiniMax-M3)
"""

from toolwire.wire.syntax import Call, Elements, Listing, Lit, Many, Node, OneOf, Params, Span, Tag, Value, WireFormat

_TOKEN = "]<]minimax[>["
_PARAMETERS = Params((Tag("parameter", role="key"), Value("</parameter>")))


def _block(token: str, arguments: Node, *wrappers: str) -> tuple[Node, ...]:
    openers, closers = [f"{token}<{name}>" for name in wrappers], [f"{token}</{name}>" for name in wrappers]
    invoke = Tag("invoke", role="name", open=f"{token}<")
    return (
        Lit(openers[0], also=tuple(openers[1:]), after="\n"),
        Many((Call((invoke, arguments, Lit(f"{token}</invoke>", after="\n"))),)),
        Lit(closers[0], also=tuple(closers[1:]), need="forgiven"),
    )


FORMAT = WireFormat(
    name="minimax_m3",
    title=f'{_TOKEN}<invoke name="F">{_TOKEN}<k>v{_TOKEN}</k>{_TOKEN}</invoke>',
    aliases=("minimax-m3",),
    models="MiniMax M3",
    source="https://huggingface.co/MiniMaxAI",
    spans=(Span("<mm:think>", "</mm:think>"),),
    blocks=(
        _block(_TOKEN, Elements(token=_TOKEN), "tool_call"),
        _block("", OneOf(((Elements(literal=True),), (_PARAMETERS,))), "tool_call", "minimax:tool_call"),
    ),
    definitions=Listing(each=("<tool>", "</tool>"), shape="function"),
    result=("<response>", "</response>"),
)
