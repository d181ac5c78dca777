"""GLM-4.5 and later: the name, then pairs of a key and a raw value in tags.

    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Paris</arg_value>
    </tool_call>

GLM-4.7 writes no newlines between the parts. Models also write the arguments as JSON, or as a call in Python.
Source: https://huggingface.co/zai-org/GLM-4.5 (chat template)
"""

from toolwire.wire.syntax import Args, Call, Key, KeywordArgs, Lit, Name, OneOf, Params, Value, WireFormat


def pairs(suffix: str = "", of: str = "arg", before: str = "\n") -> Params:
    """Return pairs of a key and a value: tags that begin with `of`, end with the suffix, and follow white space."""
    key, value = f"{of}_key{suffix}", f"{of}_value{suffix}"
    return Params(
        (
            *(Lit(f"<{key}>", before=before), Key(free=True), Lit(f"</{key}>", need="forgiven")),
            *(Lit(f"<{value}>", before=before), Value(f"</{value}>")),
        )
    )


def named_call(tag: str) -> Call:
    """Return a call as its name and its arguments, up to the closing tag with this name."""
    arguments = OneOf(((pairs(),), (Args(),), (Lit(">"), Args()), (KeywordArgs(),)))
    return Call((Name(), arguments, Lit(f"</{tag}>", before="\n")))


FORMAT = WireFormat(
    name="glm4",
    title="<tool_call>NAME<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>",
    aliases=("glm45", "glm47", "glm4_xml", "glm46", "glm", "ling3", "spark25", "spark", "iquest_q1", "glm53_flash"),
    models="GLM-4.5, 4.6, 4.7, 5, Ling 3, Spark 2.5, 3",
    source="https://huggingface.co/zai-org/GLM-4.5",
    ends_reasoning=True,
    blocks=((Lit("<tool_call>"), named_call("tool_call")),),
)
