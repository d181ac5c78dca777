"""LFM2: a list of Python calls between tokens; a JSON list, or a call without brackets, is read too.

    <|tool_call_start|>[get_weather(city="Paris", days=3)]<|tool_call_end|>

Source: https://huggingface.co/LiquidAI/LFM2-1.2B (chat template)
"""

from toolwire.wire.syntax import JsonCall, Listing, Lit, PyCalls, WireFormat

FORMAT = WireFormat(
    name="lfm2",
    title="<|tool_call_start|>[f(a=1)]<|tool_call_end|>",
    aliases=("lfm2_pythonic", "lfm2_thinking"),
    models="LFM2, LFM2.5",
    source="https://huggingface.co/LiquidAI/LFM2-1.2B",
    blocks=(
        (
            Lit("<|tool_call_start|>"),
            PyCalls(bare=True, json=JsonCall(array="several")),
            Lit("<|tool_call_end|>", need="forgiven"),
        ),
    ),
    definitions=Listing("List of tools: [", "]", between=", "),
    result=("<|tool_response_start|>", "<|tool_response_end|>"),
)
