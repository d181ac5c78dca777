"""TeleChat4 and Xing 4.0: like GLM-4.5, with other names for the tags of a pair.

    <tool_call>get_weather<param_key>city</param_key><param_value>Paris</param_value></tool_call>

As in every format with these outer tags, the JSON object of Hermes is read between them too.
Source: https://modelscope.cn/models/XingChen-AGI/Xing4.0-29B-A4B (chat template)
"""

from toolwire.wire.formats.glm4 import pairs
from toolwire.wire.syntax import Call, Lit, Name, WireFormat

FORMAT = WireFormat(
    name="telechat4",
    title="<tool_call>NAME<param_key>k</param_key><param_value>v</param_value></tool_call>",
    aliases=("xing4", "telechat3_coder"),
    models="TeleChat4, Xing 4.0",
    source="https://modelscope.cn/models/XingChen-AGI/Xing4.0-29B-A4B",
    join="",
    blocks=((Lit("<tool_call>"), Call((Name(), pairs(of="param", before=""), Lit("</tool_call>")))),),
    result=("<tool_response>", "</tool_response>"),
)
