"""Forge XML: a call as nested elements, one per argument, with entities or CDATA for special characters.

    <tool>
    <server_name>local</server_name>
    <tool_name>get_weather</tool_name>
    <arguments>
      <city>Paris</city>
      <days>3</days>
    </arguments>
    </tool>

Langroid's spelling, `<tool><request>get_weather</request><city>Paris</city></tool>`, is read too.
The type of an argument without a schema is inferred: true, null, 7 for 007. CDATA is always text.
Source: Forge ADR-0019 and ADR-0024, https://github.com/entrhq/forge
"""

from toolwire.wire.syntax import THINK, THINKING, AnyOrder, Call, Elements, Lit, Name, OneOf, Server, WireFormat

_PARTS = AnyOrder(
    (
        (Lit("<server_name>"), Server(), Lit("</server_name>", after="\n")),
        (Lit("<tool_name>"), Name(), Lit("</tool_name>", after="\n")),
        (Lit("<arguments>"), Elements(infer=True), Lit("</arguments>", before="\n", after="\n")),
        (Lit("<arguments/>", also=("<arguments />",), written=False),),
    )
)

FORMAT = WireFormat(
    name="forge_xml",
    title="<tool><tool_name>F</tool_name><arguments><k>v</k></arguments></tool>",
    models="any prompted model (Forge)",
    source="https://github.com/entrhq/forge (ADR-0019, ADR-0024)",
    spans=(THINK, THINKING),
    nocase=True,
    strict=True,
    blocks=(
        (
            Call(
                (
                    Lit("<tool>", after="\n"),
                    OneOf(((_PARTS,), (Lit("<request>"), Name(), Lit("</request>"), Elements()))),
                    Lit("</tool>"),
                )
            ),
        ),
    ),
    result=("<tool_result>\n", "\n</tool_result>"),
)
