"""LongCat Flash: like Hermes, with other tags; later models write the name, then pairs as GLM-4.5 does.

    <longcat_tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </longcat_tool_call>
    <longcat_tool_call>get_weather<longcat_arg_key>city</longcat_arg_key>
    <longcat_arg_value>Paris</longcat_arg_value></longcat_tool_call>

Source: https://huggingface.co/meituan-longcat/LongCat-Flash-Chat (chat template)
"""

from dataclasses import replace

from toolwire.wire.formats.glm4 import pairs
from toolwire.wire.formats.hermes import FORMAT as HERMES
from toolwire.wire.syntax import Call, JsonCall, Lit, Name, OneOf, Span

FORMAT = replace(
    HERMES,
    name="longcat",
    models="LongCat Flash",
    source="https://huggingface.co/meituan-longcat/LongCat-Flash-Chat",
    title='<longcat_tool_call>{"name":..,"arguments":{..}}</longcat_tool_call>',
    aliases=(),
    spans=(Span("<longcat_think>", "</longcat_think>"),),
    blocks=(
        (
            Lit("<longcat_tool_call>", after="\n"),
            OneOf(
                (
                    (JsonCall(), Lit("</longcat_tool_call>", need="forgiven", before="\n")),
                    (Call((Name(), pairs(of="longcat_arg"), Lit("</longcat_tool_call>"))),),
                )
            ),
        ),
    ),
)
