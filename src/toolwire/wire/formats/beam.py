"""Beam: messages with a recipient, as in Harmony, but with a raw value per parameter.

    <|start|>assistant to=get_weather<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="city">
    Paris
    </rfl:parameter><|call|>

The prompt ends with `<|start|>assistant`. A server that strips `<|call|>` makes every last call look cut, so keep the
special tokens.
Source: https://huggingface.co/reflection (`response_template` of Beam 1.0)
"""

from toolwire.wire.syntax import Call, Lit, Name, Params, Span, Tag, Value, WireFormat

FORMAT = WireFormat(
    name="beam",
    title='to=F<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="k">v',
    models="Beam 1.0",
    source="https://huggingface.co/reflection",
    spans=(Span("<|channel|>analysis<|message|>", "<|end|>"),),
    drop=("<|start|>assistant", "<|channel|>final<|message|>", "<|end|>", "<|call|>"),
    blocks=(
        (
            Call(
                (
                    *(Lit("<|start|>assistant to=", also=("<|start|>assistantto=",), hint=True), Name()),
                    *(Lit("<|channel|>analysis", after=" "), Lit("<|constrain|>xml"), Lit("<|message|>")),
                    Params((Tag("rfl:parameter", role="key"), Value("</rfl:parameter>", newline=True))),
                    Lit("<|call|>", also=("<|end|>",)),
                )
            ),
        ),
    ),
    primed="<|start|>assistant",
    join="",
)
