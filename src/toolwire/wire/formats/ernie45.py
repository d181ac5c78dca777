"""ERNIE 4.5: like Hermes, with the answer in tags of its own.

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>

Source: https://huggingface.co/baidu/ERNIE-4.5-21B-A3B-Thinking (chat template)
"""

from dataclasses import replace

from toolwire.wire.formats.hermes import FORMAT as HERMES

FORMAT = replace(
    HERMES,
    name="ernie45",
    detected=False,
    models="ERNIE 4.5 (thinking)",
    source="https://huggingface.co/baidu/ERNIE-4.5-21B-A3B-Thinking",
    aliases=(),
    drop=("<response>", "</response>"),
)
