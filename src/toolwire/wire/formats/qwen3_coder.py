"""Qwen3-Coder: a tag for the name and for each parameter, with raw values on lines of their own.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    </function>
    </tool_call>

The outer tags may be missing. The opener of a call ends unclosed reasoning. Models also write other tags for the call,
attributes for the names, `<parameter>city</parameter>Paris</parameter>`, elements named after the parameters, or JSON.
Source: https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct (chat template)
"""

from toolwire.wire.formats.seed_oss import block
from toolwire.wire.syntax import Listing, Value, WireFormat

FORMAT = WireFormat(
    name="qwen3_coder",
    title="<tool_call><function=NAME><parameter=K>V</parameter></function></tool_call>",
    aliases=(
        *("qwen3_coder_xml", "qwen3_xml", "qwen3coder", "nemotron_nano", "nemotron_v3", "step3p5", "step5", "nanbeige"),
        *("granite_thinking_parser", "nemotron3nano", "qwen35", "qwen38", "ornith", "berrylm"),
    ),
    models="Qwen3-Coder, Qwen3.5+, Nemotron 3 Nano, Step-3.5, BerryLM, some Granite thinking models",
    source="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct",
    ends_reasoning=True,
    blocks=(block("tool_call", Value("</parameter>", newline=True, missing="line", after="\n")),),
    definitions=Listing(shape="elements"),
)
