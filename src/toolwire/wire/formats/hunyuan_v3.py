"""Hunyuan Hy3: like GLM-4, with a separator after the name and a section around the calls.

    <tool_calls>
    <tool_call>get_weather<tool_sep>
    <arg_key>city</arg_key>
    <arg_value>Paris</arg_value>
    </tool_call>
    </tool_calls>

A tokenizer may add a suffix to every tag. Source: https://huggingface.co/tencent (chat template of Hy3)
"""

from toolwire.wire.formats.glm4 import pairs
from toolwire.wire.syntax import THINK, Call, Lit, Many, Name, Node, Span, WireFormat


def _block(suffix: str) -> tuple[Node, ...]:
    def tag(name: str) -> str:
        return f"<{name}{suffix}>"

    header = (Lit(tag("tool_call")), Name(), Lit(tag("tool_sep"), need="optional"))
    return (
        Lit(tag("tool_calls"), need="optional", after="\n"),
        Many((Call((*header, pairs(suffix), Lit(tag("/tool_call"), before="\n", after="\n"))),)),
        Lit(tag("/tool_calls"), need="forgiven"),
    )


FORMAT = WireFormat(
    name="hunyuan_v3",
    title="<tool_calls><tool_call>NAME<tool_sep><arg_key>k</arg_key><arg_value>v</arg_value></tool_call></tool_calls>",
    aliases=("hy_v3", "hy_v4", "hy3"),
    models="Hunyuan Hy3, Hy4",
    source="https://huggingface.co/tencent",
    spans=(THINK, Span("<think:opensource>", "</think:opensource>")),
    blocks=(_block(""), _block(":opensource")),
)
