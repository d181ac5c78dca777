"""Seed-OSS: a tag for the name and for each parameter, with raw values inline.

    <seed:tool_call>
    <function=get_weather>
    <parameter=city>Paris</parameter>
    </function>
    </seed:tool_call>

Source: https://huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct (chat template)
"""

from toolwire.wire.syntax import Args, Call, Elements, Key, Lit, Many, Name, OneOf, Params, Span, Tag, Value, WireFormat


def block(wrapper: str, value: Value) -> tuple[Lit, Many, Lit]:
    """Return functions in a wrapper with this name, with values of this kind."""
    spelled = (Lit("<parameter="), Key(phrase=True), Lit(">")), (Lit("<parameter>"), Key(), Lit("</parameter>"))
    parameter = OneOf((*spelled, (Tag("parameter", role="key"),)))
    short = Params((Tag("param", role="key"), Value("</param>", cdata=True)))
    arguments = OneOf(((Params((parameter, value)),), (short,), (Elements(literal=True),), (Args(),)))

    def call(tag: str, *header: Lit | Name | Tag) -> tuple[Call]:
        return (Call((*header, arguments, Lit(f"</{tag}>"))),)

    tags = ("function", "call", "tool", "invoke")
    calls = [call(tag, Lit(f"<{tag}="), Name(phrase=True), Lit(">", after="\n")) for tag in tags]
    functions = Many((OneOf((*calls, call("function", Tag("function", role="name")))),), together=False)
    opener, closer = (
        Lit(f"<{wrapper}>", need="optional", after="\n"),
        Lit(f"</{wrapper}>", need="forgiven", before="\n"),
    )
    return opener, functions, closer


FORMAT = WireFormat(
    name="seed_oss",
    title="<seed:tool_call><function=F><parameter=k>v</parameter></function></seed:tool_call>",
    models="Seed-OSS",
    source="https://huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct",
    spans=(Span("<seed:think>", "</seed:think>"),),
    ends_reasoning=True,
    blocks=(block("seed:tool_call", Value("</parameter>", missing="line", after="\n")),),
)
