"""Functionary v3.0 and v3.2: a name on its own line, then JSON arguments; the prompt ends with the marker.

    >>>get_weather
    {"city": "Paris"}

Text has the recipient `all`. Source: https://huggingface.co/meetkai/functionary-medium-v3.2 (chat template)
"""

from toolwire.wire.syntax import Args, Call, Lit, Name, WireFormat

FORMAT = WireFormat(
    name="functionary_v3_2",
    title=">>>NAME\\n{json}; >>>all\\ncontent",
    models="Functionary v3.0, v3.2",
    source="https://huggingface.co/meetkai/functionary-medium-v3.2",
    drop=(">>>all\n", ">>>"),
    answers=(">>>all\n",),
    blocks=((Call((Lit(">>>", hint=True), Name(after="\n"), Args())),),),
    result=("", ""),
    primed=">>>",
    detected=False,
)
