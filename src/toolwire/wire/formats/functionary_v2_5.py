"""Functionary v2.5: a token, the name on the rest of its line, then JSON arguments.

    <|reserved_special_token_249|>get_weather
    {"city": "Paris"}

Source: https://github.com/MeetKai/functionary (chat template v2.llama3)
"""

from toolwire.wire.syntax import Args, Call, Lit, Name, WireFormat

FORMAT = WireFormat(
    name="functionary_v2_5",
    title="<|reserved_special_token_249|>NAME\\n{json}",
    models="Functionary v2.5",
    source="https://github.com/MeetKai/functionary",
    blocks=((Call((Lit("<|reserved_special_token_249|>"), Name(after="\n"), Args())),),),
    join="",
    result=("name={name}\n", ""),
)
