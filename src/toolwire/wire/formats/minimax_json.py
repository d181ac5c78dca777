"""MiniMax-M1: one JSON object on each line between tags.

    <tool_calls>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_calls>

Source: https://huggingface.co/MiniMaxAI/MiniMax-M1-80k (chat template)
"""

from dataclasses import replace

from toolwire.wire.formats.jamba import FORMAT as JAMBA
from toolwire.wire.syntax import JsonCall, Listing, Lit

FORMAT = replace(
    JAMBA,
    name="minimax_json",
    models="MiniMax-M1",
    source="https://huggingface.co/MiniMaxAI/MiniMax-M1-80k",
    title='<tool_calls>{"name":..,"arguments":{..}}</tool_calls>, an object a line',
    aliases=("minimax_m1",),
    blocks=(
        (
            Lit("<tool_calls>", after="\n"),
            JsonCall(between="\n"),
            Lit("</tool_calls>", need="forgiven", before="\n"),
        ),
    ),
    result=("tool result: ", ""),
    definitions=Listing(),
)
