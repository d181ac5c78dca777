"""Solar Open: a section of calls, with id, name and JSON arguments of each between markers.

    <|tool_calls|><|tool_call:begin|>abc<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Paris"}
    <|tool_call:end|><|calls|>

Source: https://huggingface.co/upstage/Solar-Open-100B (chat template)
"""

from toolwire.wire.syntax import Args, Call, Ident, Listing, Lit, Many, Name, WireFormat

FORMAT = WireFormat(
    name="solar_open",
    title="<|tool_call:begin|>ID<|tool_call:name|>NAME<|tool_call:args|>{..}<|tool_call:end|>",
    models="Solar Open 100B",
    source="https://huggingface.co/upstage/Solar-Open-100B",
    blocks=(
        (
            Lit("<|tool_calls|>", need="optional"),
            Many(
                (
                    Call(
                        (
                            Lit("<|tool_call:begin|>"),
                            Ident(),
                            Lit("<|tool_call:name|>"),
                            Name(),
                            Lit("<|tool_call:args|>"),
                            Args(),
                        )
                    ),
                    Lit("<|tool_call:end|>", need="forgiven"),
                )
            ),
            Lit("<|calls|>", need="forgiven"),
        ),
    ),
    join="",
    definitions=Listing(
        "<|tools:begin|>", "<|tools:end|>", between="", each=("<|tool:begin|>", "<|tool:end|>"), shape="function"
    ),
    result=("<|tool_response:begin|>{id}<|tool_response:name|>{name}<|tool_response:result|>", "<|tool_response:end|>"),
)
