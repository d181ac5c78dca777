"""XML as in Anthropic's prompts: one element per call in a wrapper, with values as raw text.

    <function_calls>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </function_calls>

The prefix `antml:` of every tag, a missing wrapper, and Claude 2's `<tool_name>` with `<parameters>` are read too.
Source: Anthropic's published prompts for tool use in text, https://docs.anthropic.com
"""

from toolwire.wire.syntax import THINK, THINKING, Call, Elements, Lit, Many, Name, OneOf, Params, Tag, Value, WireFormat


def invoke(prefix: str = "") -> Call:
    """Return a call as one element, whose tags have this prefix."""
    return Call(
        (
            Tag(f"{prefix}invoke", role="name", after="\n"),
            Params((Tag(f"{prefix}parameter", role="key"), Value(f"</{prefix}parameter>", after="\n"))),
            Lit(f"</{prefix}invoke>", after="\n"),
        )
    )


def block(wrapper: str, inside: Call | OneOf, *, bare: bool = False) -> tuple[Lit, Many, Lit]:
    """Return any number of nodes between the tags of a wrapper with this name, which may be missing if `bare`."""
    opener = Lit(f"<{wrapper}>", need="optional" if bare else "required", after="\n")
    return opener, Many((inside,)), Lit(f"</{wrapper}>", need="forgiven")


_PARAMETERS = (Lit("<parameters>", need="optional"), Elements(literal=True), Lit("</parameters>", need="optional"))
_OLDEST = Call((Lit("<invoke>"), Lit("<tool_name>"), Name(), Lit("</tool_name>"), *_PARAMETERS, Lit("</invoke>")))

FORMAT = WireFormat(
    name="anthropic_xml",
    title='<function_calls><invoke name="F"><parameter name="k">v</parameter></invoke></function_calls>',
    models="Claude in text; any prompted model",
    source="https://docs.anthropic.com (tool use in text)",
    spans=(THINKING, THINK),
    blocks=(
        block("function_calls", OneOf(((invoke(),), (_OLDEST,))), bare=True),
        block("antml:function_calls", invoke("antml:"), bare=True),
    ),
    result=("<function_results>\n", "\n</function_results>"),
)
