"""GLM-4.5 and later: the name, then pairs of a key and a raw value in tags.

    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Paris</arg_value>
    </tool_call>

GLM-4.7 writes no newlines between the parts.
Source: https://huggingface.co/zai-org/GLM-4.5 (chat template)
"""

from toolwire.wire.syntax import Call, Key, Lit, Name, Params, Value, WireFormat


def pairs(suffix: str = "") -> Params:
    """Return pairs of a key and a value, with the tokenizer's suffix in every tag."""
    return Params(
        (
            Lit(f"<arg_key{suffix}>", before="\n"),
            Key(free=True),
            Lit(f"</arg_key{suffix}>"),
            Lit(f"<arg_value{suffix}>", before="\n"),
            Value(f"</arg_value{suffix}>"),
        )
    )


FORMAT = WireFormat(
    name="glm4",
    title="<tool_call>NAME<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>",
    aliases=("glm45", "glm47", "glm4_xml", "glm46", "glm", "ling3", "spark25", "iquest_q1"),
    models="GLM-4.5, 4.6, 4.7, 5, Ling 3, Spark 2.5",
    source="https://huggingface.co/zai-org/GLM-4.5",
    blocks=((Call((Lit("<tool_call>"), Name(), pairs(), Lit("</tool_call>", before="\n"))),),),
)
