"""Functionary v2 to v2.4: a message per call, whose recipient is the tool.

    <|from|>assistant
    <|recipient|>get_weather
    <|content|>{"city": "Paris"}

Text has the recipient `all`. The prompt ends with the marker of the recipient.
Source: https://github.com/MeetKai/functionary (chat template v2)
"""

from toolwire.wire.syntax import Args, Call, Lit, Name, WireFormat

_FROM = Lit("<|from|>assistant", need="optional", after="\n")

FORMAT = WireFormat(
    name="functionary_v2",
    title="<|recipient|>NAME\\n<|content|>{json}; <|recipient|>all\\n<|content|>content",
    models="Functionary v2 to v2.4",
    source="https://github.com/MeetKai/functionary",
    drop=("<|from|>assistant", "<|recipient|>all\n<|content|>", "<|stop|>"),
    blocks=((Call((_FROM, Lit("<|recipient|>", hint=True), Name(after="\n"), Lit("<|content|>"), Args())),),),
    primed="<|recipient|>",
    result=("<|from|>{name}\n<|recipient|>all\n<|content|>", ""),
)
