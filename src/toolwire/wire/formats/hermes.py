"""Hermes: one JSON object per call, each in a pair of tags.

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}
    </tool_call>

Some models write `<tools>` for `<tool_call>`; quantized ones write `[Calling tool: get_weather({"city": "Paris"})]`.
Source: https://github.com/NousResearch/Hermes-Function-Calling
"""

from toolwire.wire.syntax import Args, Call, JsonCall, Lit, Name, WireFormat

_ALIASES = (
    "qwen25", "qwen", "qwen3_json", "granite4",
    "trinity", "reka_tool_call", "qwen3-vl", "template_generic",
    "qwen3", "qwen3_thinking", "qwen3_vl_instruct", "qwen3_vl_thinking", "json_tools", "kolibri1",
)  # fmt: skip

FORMAT = WireFormat(
    name="hermes",
    title='<tool_call>{"name":..,"arguments":{..}}</tool_call>',
    aliases=_ALIASES,
    models="Hermes 2 Pro/3, Qwen2.5, Qwen3, QwQ, Qwen3-VL, MiMo-VL, Granite 4, Bielik 3, Reka Edge, SmolLM3, Kolibri 1",
    source="https://github.com/NousResearch/Hermes-Function-Calling",
    blocks=(
        (
            Lit("<tool_call>", also=("<tools>",), after="\n"),
            JsonCall(),
            Lit("</tool_call>", also=("</tools>",), need="forgiven", before="\n"),
        ),
        (Lit("[Calling tool:", hint=True, after=" "), Call((Name(), Lit("("), Args(), Lit(")"), Lit("]")))),
    ),
)
