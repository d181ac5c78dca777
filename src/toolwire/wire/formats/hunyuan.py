"""Hunyuan A13B: the list of calls of Jamba, with the answer in tags of its own.

    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>

Source: https://huggingface.co/tencent/Hunyuan-A13B-Instruct (chat template)
"""

from dataclasses import replace

from toolwire.wire.formats.jamba import FORMAT as JAMBA
from toolwire.wire.syntax import Listing

FORMAT = replace(
    JAMBA,
    name="hunyuan",
    detected=False,
    models="Hunyuan A13B",
    source="https://huggingface.co/tencent/Hunyuan-A13B-Instruct",
    aliases=("hunyuan_a13b",),
    drop=("<answer>", "</answer>"),
    definitions=Listing(),
)
