"""Kimi K2: a section of calls, in which a name with its index is also the call's id.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}
    <|tool_call_end|><|tool_calls_section_end|>

A section opener ends unclosed reasoning. Source: https://huggingface.co/moonshotai/Kimi-K2-Instruct (chat template)
"""

from toolwire.wire.syntax import Args, Call, Listing, Lit, Many, Name, WireFormat

FORMAT = WireFormat(
    name="kimi_k2",
    title="<|tool_call_begin|>functions.NAME:IDX<|tool_call_argument_begin|>{..}<|tool_call_end|>",
    models="Kimi K2, K2-Instruct, K2-Thinking, K2.5",
    source="https://huggingface.co/moonshotai/Kimi-K2-Instruct",
    ends_reasoning=True,
    blocks=(
        (
            Lit("<|tool_calls_section_begin|>", need="optional"),
            Many(
                (
                    Call(
                        (
                            Lit("<|tool_call_begin|>"),
                            Name(prefix="functions.", is_id=True),
                            Lit("<|tool_call_argument_begin|>"),
                            Args(),
                        )
                    ),
                    Lit("<|tool_call_end|>", need="forgiven"),
                )
            ),
            Lit("<|tool_calls_section_end|>", need="forgiven"),
        ),
    ),
    join="",
    definitions=Listing("[", "]", between=", "),
    result=("## Return of {id}\n", ""),
)
