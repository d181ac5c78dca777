"""Kimi K3: sections, calls and typed arguments, all between the same few tokens.

    <|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>
    Paris<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>

Source: https://huggingface.co/moonshotai (chat template of Kimi K3)
"""

from toolwire.wire.syntax import Call, Lit, Many, Mark, Params, Span, Tag, Value, WireFormat

_TOOL = Tag("call", role="name", attribute="tool", counted="index", open="<|open|>", close="<|sep|>")
_KEY = Tag("argument", role="key", attribute="key", mark=Mark("type"), open="<|open|>", close="<|sep|>")
_CALL = Call((_TOOL, Params((_KEY, Value("<|close|>argument<|sep|>"))), Lit("<|close|>call<|sep|>")))

FORMAT = WireFormat(
    name="kimi_k3",
    title='<|open|>call tool="F" index="1"<|sep|><|open|>argument key="k" type="string"<|sep|>v',
    aliases=("kimi_k3_xtml",),
    models="Kimi K3",
    source="https://huggingface.co/moonshotai",
    spans=(Span("<|open|>think<|sep|>", "<|close|>think<|sep|>"),),
    drop=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
    answers=("<|open|>response<|sep|>",),
    blocks=(
        (
            Lit("<|open|>tools<|sep|>", need="optional"),
            Many((_CALL,)),
            Lit("<|close|>tools<|sep|>", need="forgiven"),
        ),
    ),
    join="",
)
