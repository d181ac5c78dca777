"""Apertus: a JSON list of objects whose only key is the name of the tool.

    <|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|>

Source: https://huggingface.co/swiss-ai/Apertus-8B-Instruct-2509 (chat template)
"""

from toolwire.wire.syntax import JsonCall, Lit, Span, WireFormat

FORMAT = WireFormat(
    name="apertus",
    title='<|tools_prefix|>[{"NAME": {args}}]<|tools_suffix|>',
    aliases=("apertus2509", "apertus15"),
    models="Apertus",
    source="https://huggingface.co/swiss-ai/Apertus-8B-Instruct-2509",
    spans=(Span("<|inner_prefix|>", "<|inner_suffix|>"),),
    blocks=(
        (
            Lit("<|tools_prefix|>"),
            JsonCall(keyed=True, array="always"),
            Lit("<|tools_suffix|>", need="forgiven"),
        ),
    ),
)
