"""LangChain's XML agent: an element with the tool's name, then one with its input as plain text.

    <tool>get_weather</tool><tool_input>Paris</tool_input>

The input of a tool with several parameters is a JSON object. The model makes up everything in an observation.
Source: the prompt of LangChain's XML agent, https://github.com/langchain-ai/langchain
"""

from toolwire.wire.syntax import Args, Call, Lit, Name, WireFormat

FORMAT = WireFormat(
    name="langchain_xml",
    title="<tool>F</tool><tool_input>v</tool_input>",
    models="any prompted model (LangChain's XML agent)",
    source="https://github.com/langchain-ai/langchain",
    drop=("<final_answer>", "</final_answer>"),
    stop=("<observation>",),
    blocks=(
        (
            Call(
                (
                    *(Lit("<tool>"), Name(), Lit("</tool>")),
                    *(Lit("<tool_input>"), Args(lone=True, until="</tool_input>"), Lit("</tool_input>")),
                )
            ),
        ),
    ),
    result=("<observation>", "</observation>"),
)
