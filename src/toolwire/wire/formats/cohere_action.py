"""Command R7B and Command A: a JSON list of calls between markers; reasoning and answer have markers too.

    <|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}
    ]<|END_ACTION|>

Source: https://huggingface.co/CohereLabs/c4ai-command-a-03-2025 (chat template)
"""

from toolwire.wire.syntax import JsonCall, Lit, Span, WireFormat

_CALLS = JsonCall(name=("tool_name", "name"), args=("parameters", "arguments"), id=("tool_call_id",), array="always")

FORMAT = WireFormat(
    name="cohere_action",
    title='<|START_ACTION|>[{"tool_call_id":..,"tool_name":..,"parameters":{..}}]<|END_ACTION|>',
    aliases=("cohere_command3", "cohere_command4", "cohere_command", "cohere"),
    models="Command R7B, Command A, Cohere2MoE",
    source="https://huggingface.co/CohereLabs/c4ai-command-a-03-2025",
    spans=(Span("<|START_THINKING|>", "<|END_THINKING|>"),),
    drop=("<|START_TEXT|>", "<|END_TEXT|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    answers=("<|START_TEXT|>", "<|START_RESPONSE|>"),
    blocks=((Lit("<|START_ACTION|>"), _CALLS, Lit("<|END_ACTION|>", need="forgiven")),),
    result=("<|START_TOOL_RESULT|>[", "]<|END_TOOL_RESULT|>"),
)
