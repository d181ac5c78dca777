"""Apriel: the list of calls of Jamba, after reasoning that the prompt begins and a marker ends.

    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>

Source: https://huggingface.co/ServiceNow-AI/Apriel-1.6-15b-Thinker (chat template)
"""

from dataclasses import replace

from toolwire.wire.formats.jamba import FORMAT as JAMBA
from toolwire.wire.syntax import THINK, Listing, Span

FORMAT = replace(
    JAMBA,
    name="apriel",
    detected=False,
    models="Apriel 1.5, 1.6 Thinker",
    source="https://huggingface.co/ServiceNow-AI/Apriel-1.6-15b-Thinker",
    spans=(Span("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", prose=True), THINK),
    result=("<|begin_tool_result|>\n", "\n"),
    drop=("[END FINAL RESPONSE]",),
    definitions=Listing("<available_tools>\n", "\n</available_tools>"),
)
