"""Step-3: a section of calls between tokens, each an element with raw values.

    <｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">
    <steptml:parameter name="city">Paris</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>

Source: https://huggingface.co/stepfun-ai/step3 (chat template)
"""

from toolwire.wire.syntax import Call, Lit, Many, Params, Tag, Value, WireFormat

_CALL = Call(
    (
        Lit("<｜tool_call_begin｜>"),
        Lit("function", need="optional"),
        Lit("<｜tool_sep｜>", need="optional"),
        Tag("steptml:invoke", role="name"),
        Params((Tag("steptml:parameter", role="key"), Value("</steptml:parameter>"))),
        Lit("</steptml:invoke>"),
    )
)

FORMAT = WireFormat(
    name="step3",
    title='<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="F"><steptml:parameter name="k">v',
    models="Step-3",
    source="https://huggingface.co/stepfun-ai/step3",
    blocks=(
        (
            Lit("<｜tool_calls_begin｜>", need="optional"),
            Many((_CALL, Lit("<｜tool_call_end｜>", need="forgiven"))),
            Lit("<｜tool_calls_end｜>", need="forgiven"),
        ),
    ),
    join="",
)
