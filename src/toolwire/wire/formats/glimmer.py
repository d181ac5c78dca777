"""Muse Glimmer: messages with a recipient; a message to a tool contains elements with raw values.

    <|start|>assistant to=get_weather<|message|><atem:function_calls>
    <atem:invoke name="get_weather">
    <atem:parameter name="city">Paris</atem:parameter>
    </atem:invoke>
    </atem:function_calls><|eom|>

Messages to `self` are reasoning, messages to `user` content. The prompt ends with `<|start|>assistant`.
Source: the parsers of this name in llama.cpp and SGLang
"""

from toolwire.wire.formats.anthropic_xml import invoke
from toolwire.wire.syntax import Header, Lit, Many, Span, WireFormat

FORMAT = WireFormat(
    name="glimmer",
    title='to=F<|message|><atem:function_calls><atem:invoke name="F"><atem:parameter name="k">v',
    aliases=("muse", "muse_glimmer", "glimmer_atem", "musespark1x", "muse_spark"),
    models="Muse Glimmer",
    source="llama.cpp, SGLang",
    spans=(Span("<|start|>assistant to=self<|message|>", "<|eom|>"),),
    drop=(
        "<|start|>assistant",
        "<|start|>assistant<|message|>",
        "<|start|>assistant to=user<|message|>",
        "<|eom|>",
        "<|eot|>",
    ),
    blocks=(
        (
            Lit("<|start|>assistant to=", also=("<|start|>assistantto=",), hint=True),
            Header(),
            Lit("<|message|>", hint=True),
            Lit("<atem:function_calls>", after="\n"),
            Many((invoke("atem:"),), together=False),
            Lit("</atem:function_calls>", need="forgiven"),
            Lit("<|eom|>", also=("<|eot|>",), need="optional"),
        ),
    ),
    primed="<|start|>assistant",
    result=('<tool_output name="{name}">\n', "\n</tool_output>"),
    join="",
)
