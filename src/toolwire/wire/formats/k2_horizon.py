"""K2 Horizon: a name and pairs of key and value in tags, with an optional type, or a JSON object.

    <ifm|tool_calls><ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key><ifm|arg_value>Paris</ifm|arg_value>
    </ifm|tool_call></ifm|tool_calls>

Source: the parser of this name in vLLM
"""

from toolwire.wire.syntax import Call, JsonCall, Key, Lit, Many, Mark, Name, OneOf, Params, Span, Value, WireFormat

_TYPED = (Lit("<ifm|arg_type>"), Mark(), Lit("</ifm|arg_type>"), Lit("<ifm|arg_value>"))
_PAIRS = Params(
    (
        Lit("<ifm|arg_key>"),
        Key(phrase=True),
        Lit("</ifm|arg_key>"),
        OneOf((_TYPED, (Lit("<ifm|arg_value>"),))),
        Value("</ifm|arg_value>"),
    )
)
_CLOSE = Lit("</ifm|tool_call>")
_BODY = OneOf(((Call((Name(), _PAIRS, _CLOSE)),), (JsonCall(), Lit("</ifm|tool_call>", need="forgiven"))))

FORMAT = WireFormat(
    name="k2_horizon",
    title="<ifm|tool_calls><ifm|tool_call>NAME<ifm|arg_key>k</ifm|arg_key><ifm|arg_value>v",
    models="K2 Horizon",
    source="vLLM",
    spans=(Span("<ifm|think>", "</ifm|think>"),),
    blocks=(
        (
            Lit("<ifm|tool_calls>", need="optional"),
            Many((Lit("<ifm|tool_call>"), _BODY)),
            Lit("</ifm|tool_calls>", need="forgiven"),
        ),
    ),
    join="",
)
