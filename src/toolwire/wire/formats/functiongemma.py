"""FunctionGemma: like Gemma 4, with other tokens.

    <start_function_call>call:get_weather{city:<escape>Paris<escape>,days:3}<end_function_call>

Source: https://huggingface.co/google/functiongemma-270m-it (chat template)
"""

from toolwire.wire.syntax import Call, Listing, Lit, Many, Name, TokenArgs, WireFormat

FORMAT = WireFormat(
    name="functiongemma",
    title="<start_function_call>call:NAME{k:<escape>v<escape>}<end_function_call>",
    models="FunctionGemma 270M",
    source="https://huggingface.co/google/functiongemma-270m-it",
    blocks=(
        (
            Lit("<start_function_call>"),
            Many((Call((Lit("call:"), Name(), TokenArgs("<escape>"))),), together=False),
            Lit("<end_function_call>", need="forgiven"),
        ),
    ),
    join="",
    result=("<start_function_response>response:{name}{<escape>", "<escape>}<end_function_response>"),
    definitions=Listing(
        open="",
        close="",
        between="",
        each=("<start_function_declaration>", "<end_function_declaration>"),
        shape="declaration",
        token="<escape>",
    ),
)
