"""GigaChat 3.5: elements as DeepSeek V3.2 and V4 write them, with another prefix in every tag.

    <｜GCML｜tool_calls>
    <｜GCML｜invoke name="get_weather">
    <｜GCML｜parameter name="city" string="true">Paris</｜GCML｜parameter>
    </｜GCML｜invoke>
    </｜GCML｜tool_calls>

Source: https://huggingface.co/ai-sage/GigaChat3.5-432B-A28B (chat template)
"""

from toolwire.wire.formats.deepseek_dsml import block
from toolwire.wire.syntax import WireFormat

FORMAT = WireFormat(
    name="gigachat35",
    title='<｜GCML｜invoke name="F"><｜GCML｜parameter name="k" string="true|false">v',
    models="GigaChat 3.5",
    source="https://huggingface.co/ai-sage/GigaChat3.5-432B-A28B",
    blocks=(block("｜GCML｜", "tool_calls"),),
    result=('<function_response name="{name}">', "</function_response>"),
)
