"""Autobyteus XML: the name in an attribute, parameters as `<arg name="...">`, lists as `<item>`.

    <tool name="get_weather">
    <arguments>
      <arg name="city">Paris</arg>
    </arguments>
    </tool>

Values are strings unless the schema has another type. The wrapper `<arguments>` may be missing. A parameter may also be
an element with its own name. Source: https://github.com/AutoByteus/autobyteus
"""

from toolwire.wire.syntax import THINK, THINKING, Call, Elements, Lit, Tag, WireFormat

FORMAT = WireFormat(
    name="autobyteus_xml",
    title='<tool name="F"><arguments><arg name="k">v</arg></arguments></tool>',
    models="any prompted model (Autobyteus)",
    source="https://github.com/AutoByteus/autobyteus",
    spans=(THINK, THINKING),
    nocase=True,
    strict=True,
    blocks=(
        (
            Call(
                (
                    Tag("tool", role="name", after="\n"),
                    Lit("<arguments>", also=("<arguments/>", "<arguments />"), need="optional"),
                    Elements(tag="arg", nested=("arg", "item")),
                    Lit("</arguments>", need="optional", before="\n", after="\n"),
                    Lit("</tool>"),
                )
            ),
        ),
    ),
    result=("<tool_result>\n", "\n</tool_result>"),
)
