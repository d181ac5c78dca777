"""InternLM 2.5: one JSON object between two opening markers and a closing marker.

    <|action_start|><|plugin|>
    {"name": "get_weather", "parameters": {"city": "Paris"}}<|action_end|>

Source: https://huggingface.co/internlm/internlm2_5-7b-chat (chat template)
"""

from toolwire.wire.syntax import JsonCall, Lit, WireFormat

FORMAT = WireFormat(
    name="internlm",
    title='<|action_start|><|plugin|>{"name":..,"parameters":{..}}<|action_end|>',
    aliases=("interns1",),
    models="InternLM 2.5, Intern-S1",
    source="https://huggingface.co/internlm/internlm2_5-7b-chat",
    blocks=(
        (
            Lit("<|action_start|>"),
            Lit("<|plugin|>", after="\n"),
            JsonCall(args=("parameters", "arguments")),
            Lit("<|action_end|>", need="forgiven"),
        ),
    ),
)
