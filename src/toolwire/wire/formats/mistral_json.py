"""Mistral before v11: a marker and a JSON list of calls, each with an id of nine characters.

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "abc123456"}]

A bare object, a doubled marker and a closing marker are read too, as is the later form with the name first. A server
that strips special tokens leaves the list alone, which then has to begin the message.
Source: https://github.com/mistralai/mistral-common
"""

from dataclasses import replace

from toolwire.wire.formats.mistral_args import FORMAT as MISTRAL_ARGS
from toolwire.wire.formats.mistral_args import LISTED, NAMED
from toolwire.wire.syntax import Lit, OneOf

FORMAT = replace(
    MISTRAL_ARGS,
    name="mistral_json",
    detected=False,
    title='[TOOL_CALLS][{"name":..,"arguments":{..}}, ..]',
    aliases=("mistral", "mistral_nemo", "mistral_pre_v11"),
    models="Mistral 7B v0.3, Nemo, Large 2407, Mixtral",
    blocks=(
        (
            Lit("[TOOL_CALLS]", repeats=True),
            OneOf(((LISTED,), (NAMED,))),
            Lit("[/TOOL_CALLS]", need="optional", written=False),
        ),
        (LISTED,),
    ),
    at="mixed",
)
