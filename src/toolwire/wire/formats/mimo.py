"""MiMo: like Qwen3-Coder, with values inline, in which every character counts.

    <tool_call><function=get_weather><parameter=city>Paris</parameter></function></tool_call>

Source: https://huggingface.co/XiaomiMiMo (chat template of MiMo-V2)
"""

from dataclasses import replace

from toolwire.wire.formats.qwen3_coder import FORMAT as QWEN3_CODER
from toolwire.wire.formats.seed_oss import block
from toolwire.wire.syntax import Value

FORMAT = replace(
    QWEN3_CODER,
    name="mimo",
    detected=False,
    aliases=(),
    models="MiMo 7B, MiMo-V2",
    source="https://huggingface.co/XiaomiMiMo",
    blocks=(block("tool_call", Value("</parameter>", missing="line", after="\n")),),
)
