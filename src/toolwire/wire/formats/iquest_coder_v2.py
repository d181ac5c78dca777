"""IQuest Coder V2: as GLM-4.5, in a tag of its own.

    <iquestcoder_tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Paris</arg_value>
    </iquestcoder_tool_call>

Source: vLLM's tests of the parser of this name
"""

from toolwire.wire.formats.glm4 import named_call
from toolwire.wire.syntax import Lit, WireFormat

FORMAT = WireFormat(
    name="iquest_coder_v2",
    title="<iquestcoder_tool_call>NAME<arg_key>k</arg_key><arg_value>v</arg_value></iquestcoder_tool_call>",
    models="IQuest Coder V2",
    source="https://huggingface.co/IQuestLab",
    ends_reasoning=True,
    blocks=((Lit("<iquestcoder_tool_call>"), named_call("iquestcoder_tool_call")),),
)
