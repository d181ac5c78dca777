"""Anthropic-like XML: one element per call in a wrapper, values as raw text.

    <function_calls>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </function_calls>

Source: Anthropic's published prompts for tool use in text, https://docs.anthropic.com
"""

from toolwire.wire.syntax import THINK, THINKING, Call, Lit, Many, Params, Tag, Value, WireFormat

FORMAT = WireFormat(
    name="anthropic_xml",
    title='<function_calls><invoke name="F"><parameter name="k">v</parameter></invoke></function_calls>',
    models="Claude in text; any prompted model",
    source="https://docs.anthropic.com (tool use in text)",
    spans=(THINKING, THINK),
    blocks=(
        (
            Lit("<function_calls>", after="\n"),
            Many(
                (
                    Call(
                        (
                            Tag("invoke", role="name", after="\n"),
                            Params((Tag("parameter", role="key"), Value("</parameter>", after="\n"))),
                            Lit("</invoke>", after="\n"),
                        )
                    ),
                )
            ),
            Lit("</function_calls>", need="forgiven"),
        ),
    ),
    result=("<function_results>\n", "\n</function_results>"),
)
