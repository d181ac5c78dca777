"""Seed-OSS: a tag for the name and for each parameter, with raw values inline.

    <seed:tool_call>
    <function=get_weather>
    <parameter=city>Paris</parameter>
    </function>
    </seed:tool_call>

Source: https://huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct (chat template)
"""

from toolwire.wire.formats.qwen3_coder import block
from toolwire.wire.syntax import Span, Value, WireFormat

FORMAT = WireFormat(
    name="seed_oss",
    title="<seed:tool_call><function=F><parameter=k>v</parameter></function></seed:tool_call>",
    models="Seed-OSS",
    source="https://huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct",
    spans=(Span("<seed:think>", "</seed:think>"),),
    blocks=(block("seed:tool_call", Value("</parameter>", missing="line", after="\n")),),
)
