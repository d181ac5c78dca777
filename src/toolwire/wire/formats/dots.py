"""dots: a wrapper around one element per call with raw values, or around a JSON object.

    <dots_function_call><invoke name="get_weather"><parameter name="city">Paris</parameter></invoke>
    </dots_function_call>

Source: https://huggingface.co/rednote-hilab (chat template of dots)
"""

from toolwire.wire.formats.anthropic_xml import block, invoke
from toolwire.wire.syntax import JsonCall, Lit, Many, OneOf, WireFormat

FORMAT = WireFormat(
    name="dots",
    title='<dots_function_call><invoke name="F"><parameter name="k">v</parameter></invoke></dots_function_call>',
    models="dots",
    source="https://huggingface.co/rednote-hilab",
    blocks=(
        # Only inside the wrapper is JSON a call: without it, any JSON in the text would begin a block.
        (
            Lit("<dots_function_call>", after="\n"),
            Many((OneOf(((invoke(),), (JsonCall(),))),)),
            Lit("</dots_function_call>", need="forgiven"),
        ),
        block("dots_function_call", invoke(), bare=True),
    ),
)
