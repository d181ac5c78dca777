"""PLaMo 3: a section of requests, with name and JSON arguments between markers.

    <|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>get_weather
    <|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{"city": "X"}
    <|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>

Source: https://huggingface.co/pfnet (chat template of PLaMo 3)
"""

from toolwire.wire.syntax import Args, Call, Lit, Many, Name, Span, WireFormat


def _token(name: str, *, forgiven: bool = False, optional: bool = False) -> Lit:
    return Lit(f"<|plamo:{name}:plamo|>", need="forgiven" if forgiven else "optional" if optional else "required")


_MARK = (
    Lit("<|plamo:constrain|>", need="optional"),
    Lit("json", need="optional"),
    Lit("<|plamo:msg|>", need="optional"),
)
_REQUEST = (
    _token("begin_tool_request"),
    _token("begin_tool_name"),
    Name(),
    _token("end_tool_name"),
    _token("begin_tool_arguments"),
    *_MARK,
    Args(),
)

FORMAT = WireFormat(
    name="plamo3",
    title="<|plamo:begin_tool_name:plamo|>F<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>..{json}",
    models="PLaMo 3",
    source="https://huggingface.co/pfnet",
    spans=(Span("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),),
    ends_reasoning=True,
    blocks=(
        (
            _token("begin_tool_requests", optional=True),
            Many(
                (
                    Call(_REQUEST),
                    _token("end_tool_arguments", forgiven=True),
                    _token("end_tool_request", forgiven=True),
                )
            ),
            _token("end_tool_requests", forgiven=True),
        ),
    ),
    join="",
)
