"""LongCat Flash: like Hermes, with other tags.

    <longcat_tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </longcat_tool_call>

Source: https://huggingface.co/meituan-longcat/LongCat-Flash-Chat (chat template)
"""

from dataclasses import replace

from toolwire.wire.formats.hermes import FORMAT as HERMES
from toolwire.wire.syntax import JsonCall, Lit, Span

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
            JsonCall(),
            Lit("</longcat_tool_call>", need="forgiven", before="\n"),
        ),
    ),
)
