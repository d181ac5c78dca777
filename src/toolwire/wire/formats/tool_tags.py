"""Tags named after the tools: an element per call, with an element per parameter.

    <read_file>
    <path>a.txt</path>
    </read_file>

Only known tools count. The inside may also be a JSON object, as Nova writes it, or YAML.
Source: the system prompts of Cline and of the agents made from it, https://github.com/cline/cline
"""

from toolwire.wire.syntax import THINK, THINKING, Call, ToolBody, ToolTag, WireFormat

FORMAT = WireFormat(
    name="tool_tags",
    title="<NAME><k>v</k></NAME>",
    aliases=("cline", "roo_code", "kilo_code", "tag_per_tool"),
    models="any prompted model (Cline, Roo Code, Kilo Code); Nova",
    source="https://github.com/cline/cline",
    spans=(THINKING, THINK),
    markers=False,
    confidence=0.9,
    blocks=((Call((ToolTag(), ToolBody())),),),
    result=("<tool_result>\n", "\n</tool_result>"),
)
