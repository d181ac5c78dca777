"""Laguna: like GLM-4; the body may also be a name and JSON arguments, or one JSON object.

    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Paris</arg_value>
    </tool_call>

Source: https://huggingface.co/poolside (chat template of Laguna XS)
"""

from toolwire.wire.formats.glm4 import named_call
from toolwire.wire.syntax import JsonCall, Listing, Lit, OneOf, WireFormat

FORMAT = WireFormat(
    name="laguna",
    title="<tool_call>NAME<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>, or with {..}",
    aliases=("poolside_v1", "laguna_poolside"),
    models="Poolside Laguna XS, S",
    source="https://huggingface.co/poolside",
    blocks=(
        (
            Lit("<tool_call>"),
            OneOf(
                (
                    (named_call("tool_call"),),
                    (JsonCall(), Lit("</tool_call>", need="forgiven")),
                )
            ),
        ),
    ),
    definitions=Listing("<available_tools>\n", "\n</available_tools>"),
)
