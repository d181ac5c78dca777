"""MiniMax M2: one element per call in a wrapper, with values as raw text.

    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </minimax:tool_call>

Source: https://huggingface.co/MiniMaxAI/MiniMax-M2 (chat template)
"""

from toolwire.wire.formats.anthropic_xml import block, invoke
from toolwire.wire.syntax import Listing, WireFormat

FORMAT = WireFormat(
    name="minimax_m2",
    title='<minimax:tool_call><invoke name="F"><parameter name="k">v</parameter></invoke></minimax:tool_call>',
    aliases=("minimax-m2", "minimax"),
    models="MiniMax M2, M2.1",
    source="https://huggingface.co/MiniMaxAI/MiniMax-M2",
    ends_reasoning=True,
    blocks=(block("minimax:tool_call", invoke(), bare=True),),
    result=("<response>", "</response>"),
    definitions=Listing(each=("<tool>", "</tool>"), shape="function"),
)
