"""Solar Open 2: the name on a line, then each parameter between markers, with a raw value.

    <|tool_call:start|>get_weather
    <|tool_arg:start|>city<|tool_arg:value|>Paris<|tool_arg:end|>
    <|tool_call:end|>

Source: https://huggingface.co/upstage/Solar-Open2-250B (its special tokens, and vLLM's documentation of the parser)
"""

from toolwire.wire.syntax import Call, Key, Lit, Name, Params, Span, Value, WireFormat

FORMAT = WireFormat(
    name="solar_open2",
    title="<|tool_call:start|>NAME\\n<|tool_arg:start|>k<|tool_arg:value|>v<|tool_arg:end|>",
    models="Solar Open 2",
    source="https://huggingface.co/upstage/Solar-Open2-250B",
    spans=(Span("<|think:start|>", "<|think:end|>"),),
    blocks=(
        (
            Call(
                (
                    *(Lit("<|tool_call:start|>"), Name(after="\n")),
                    Params(
                        (
                            *(Lit("<|tool_arg:start|>"), Key(free=True), Lit("<|tool_arg:value|>")),
                            Value("<|tool_arg:end|>", after="\n"),
                        )
                    ),
                    Lit("<|tool_call:end|>"),
                )
            ),
        ),
    ),
    result=("<|tool_response:start|>", "<|tool_response:end|>"),
)
