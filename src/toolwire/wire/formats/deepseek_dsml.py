"""DeepSeek V3.2 and V4: elements in their own markup, with an attribute for text or JSON values.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

The wrapper of V3.2 is `function_calls`. Models forget or misspell the wrapper, and forget closing tags. A server that
strips special tokens leaves the tags without `｜DSML｜`.
Source: https://huggingface.co/deepseek-ai/DeepSeek-V3.2 (encoding)
"""

from toolwire.wire.syntax import Args, Call, Listing, Lit, Many, Mark, Node, OneOf, Params, Tag, Value, WireFormat


def block(prefix: str, *wrappers: str) -> tuple[Node, ...]:
    """Return calls in a wrapper, which is written with the first of these names; every tag has the prefix."""
    openers, closers = [f"<{prefix}{name}>" for name in wrappers], [f"</{prefix}{name}>" for name in wrappers]
    key = Tag(f"{prefix}parameter", role="key", mark=Mark("string", flag=True))
    parameters = Params((key, Value(f"</{prefix}parameter>", missing="anywhere", after="\n")))
    invoke = Tag(f"{prefix}invoke", role="name", after="\n")
    close = Lit(f"</{prefix}invoke>", need="forgiven", after="\n")
    return (
        Lit(openers[0], also=tuple(openers[1:]), need="optional", after="\n"),
        Many((Call((invoke, OneOf(((parameters,), (Args(),))), close)),)),
        Lit(closers[0], also=tuple(closers[1:]), need="forgiven"),
    )


FORMAT = WireFormat(
    name="deepseek_dsml",
    title='<｜DSML｜invoke name="F"><｜DSML｜parameter name="k" string="true|false">v',
    aliases=("dsml", "deepseek_v32", "deepseek_v3_2", "deepseekv32", "deepseek_v4", "deepseekv4"),
    models="DeepSeek V3.2 (wrapper function_calls), V4 (wrapper tool_calls)",
    source="https://huggingface.co/deepseek-ai/DeepSeek-V3.2",
    ends_reasoning=True,
    blocks=(
        block("｜DSML｜", "tool_calls", "function_calls", "toolcalls", "tool"),
        block("", "tool_calls", "function_calls"),
    ),
    result=("<tool_result>", "</tool_result>"),
    definitions=Listing("### Available Tool Schemas\n\n", "", shape="function"),
)
