"""Code World Model: an element with the tool's name after a colon, and its input as plain text.

    <tool: bash>
    ls
    </tool>

The input of a tool with several parameters is a JSON object here; the publisher leaves its form to the prompt.
Source: https://github.com/facebookresearch/cwm (PROMPTING_GUIDE.md)
"""

from toolwire.wire.syntax import Args, Call, Lit, Name, WireFormat

FORMAT = WireFormat(
    name="cwm",
    title="<tool: NAME>\\ntext or {json}\\n</tool>",
    models="Code World Model",
    source="https://github.com/facebookresearch/cwm",
    blocks=(
        (
            Call(
                (
                    *(Lit("<tool:", after=" "), Name(phrase=True), Lit(">", after="\n")),
                    *(Args(lone=True, until="</tool>"), Lit("</tool>", before="\n")),
                )
            ),
        ),
    ),
    result=("<|start_header_id|>tool: {name}<|end_header_id|>\n\n", "<|eot_id|>"),
)
