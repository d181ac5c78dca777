"""Forge JSON: one JSON object per call in `<tool>` tags, with the name of the tool's server.

    <tool>
    {"server_name": "local", "tool_name": "get_weather", "arguments": {"city": "Paris"}}
    </tool>

Source: Forge ADR-0002, https://github.com/entrhq/forge
"""

from toolwire.wire.syntax import THINK, THINKING, JsonCall, Lit, WireFormat

FORMAT = WireFormat(
    name="forge_json",
    title='<tool>{"server_name":..,"tool_name":..,"arguments":{..}}</tool>',
    models="any prompted model (Forge)",
    source="https://github.com/entrhq/forge (ADR-0002)",
    spans=(THINK, THINKING),
    nocase=True,
    strict=True,
    blocks=(
        (
            Lit("<tool>", after="\n"),
            JsonCall(name=("tool_name",), args=("arguments",), server=("server_name",)),
            Lit("</tool>", need="forgiven", before="\n"),
        ),
    ),
    result=("<tool_result>\n", "\n</tool_result>"),
)
