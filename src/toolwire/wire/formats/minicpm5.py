"""MiniCPM 5: names in attributes, with values as raw text or in CDATA sections.

    <function name="get_weather"><param name="city">Paris</param></function>

Source: https://huggingface.co/openbmb (chat template of MiniCPM5)
"""

from toolwire.wire.syntax import Call, Lit, Params, Tag, Value, WireFormat

FORMAT = WireFormat(
    name="minicpm5",
    title='<function name="F"><param name="k">v</param></function>',
    models="MiniCPM 4, 5",
    source="https://huggingface.co/openbmb",
    blocks=(
        (
            Call(
                (
                    Tag("function", role="name"),
                    Params((Tag("param", role="key"), Value("</param>", cdata=True))),
                    Lit("</function>"),
                )
            ),
        ),
    ),
)
