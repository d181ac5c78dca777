"""Unified Tool Protocol: JSON, or elements for name and JSON arguments, in any of four pairs of tags.

    <tool_use>
    {"name": "read_file", "arguments": {"path": "foo.py"}}
    </tool_use>

Source: LLMC, https://github.com/vmlinuzx/llmc
"""

from toolwire.wire.syntax import THINK, THINKING, AnyOrder, Args, Call, JsonCall, Lit, Name, Node, OneOf, WireFormat


def _block(tag: str) -> tuple[Node, ...]:
    elements = AnyOrder(
        (
            (Lit("<name>"), Name(), Lit("</name>")),
            (Lit("<arguments>"), Args(element="arguments")),
            (Lit("<parameters>"), Args(element="parameters")),
        )
    )
    return (
        Lit(f"<{tag}>", repeats=True, after="\n"),
        OneOf(
            (
                (JsonCall(), Lit(f"</{tag}>", need="forgiven", before="\n")),
                (Call((elements, Lit(f"</{tag}>"))),),
            )
        ),
    )


FORMAT = WireFormat(
    name="utp_xml",
    title='<tool_use>|<tools>|<function_call>|<tool_call> with {"name","arguments"} or <name>/<arguments>',
    aliases=("qwen_xml", "llmc"),
    models="any prompted model (LLMC)",
    source="https://github.com/vmlinuzx/llmc",
    spans=(THINK, THINKING),
    nocase=True,
    blocks=tuple(_block(tag) for tag in ("tool_use", "tools", "function_call", "tool_call")),
    result=("<tool_result>\n", "\n</tool_result>"),
)
