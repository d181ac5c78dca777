"""Functionary v3.1: the name in a tag, and the arguments inside as one JSON object.

    <function=get_weather>{"city": "Paris"}</function>

Models also leave out the `>` behind the name, or write it behind the arguments.
Source: https://huggingface.co/meetkai/functionary-small-v3.1 (chat template)
"""

from toolwire.wire.syntax import Args, Call, Lit, Name, WireFormat

FORMAT = WireFormat(
    name="functionary_v3_1",
    title="<function=NAME>{json}</function>",
    aliases=("llama_function_tag",),
    models="Functionary v3.1 (Llama 3.1), Groq's Llama tool use",
    source="https://huggingface.co/meetkai/functionary-small-v3.1",
    result=("", ""),
    blocks=(
        (
            Call((Lit("<function="), Name(phrase=True), Lit(">", need="optional"), Args())),
            Lit(">", need="optional", written=False),
            Lit("</function>", need="forgiven"),
        ),
    ),
)
