"""XML as in Anthropic's prompts: one element per call in a wrapper, with values as raw text.

    <function_calls>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </function_calls>

Source: Anthropic's published prompts for tool use in text, https://docs.anthropic.com
"""

from toolwire.wire.syntax import THINK, THINKING, Call, Lit, Many, Node, Params, Tag, Value, WireFormat


def invoke(prefix: str = "") -> Call:
    """Return a call as one element, whose tags have this prefix."""
    return Call(
        (
            Tag(f"{prefix}invoke", role="name", after="\n"),
            Params((Tag(f"{prefix}parameter", role="key"), Value(f"</{prefix}parameter>", after="\n"))),
            Lit(f"</{prefix}invoke>", after="\n"),
        )
    )


def block(wrapper: str, *inside: Node) -> tuple[Node, ...]:
    """Return nodes between the tags of a wrapper with this name."""
    return Lit(f"<{wrapper}>", after="\n"), Many(inside), Lit(f"</{wrapper}>", need="forgiven")


FORMAT = WireFormat(
    name="anthropic_xml",
    title='<function_calls><invoke name="F"><parameter name="k">v</parameter></invoke></function_calls>',
    models="Claude in text; any prompted model",
    source="https://docs.anthropic.com (tool use in text)",
    spans=(THINKING, THINK),
    blocks=(block("function_calls", invoke()),),
    result=("<function_results>\n", "\n</function_results>"),
)
