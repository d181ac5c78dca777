"""FireFunction v2: like Phi-4-mini, after a blank.

     functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

Source: https://huggingface.co/fireworks-ai/llama-3-firefunction-v2 (chat template)
"""

from dataclasses import replace

from toolwire.wire.formats.phi4 import FORMAT as PHI4
from toolwire.wire.syntax import JsonCall, Listing, Lit

FORMAT = replace(
    PHI4,
    name="firefunction",
    detected=False,
    models="FireFunction v2",
    source="https://huggingface.co/fireworks-ai/llama-3-firefunction-v2",
    aliases=(),
    definitions=Listing("[", "]", between=", "),
    result=("", ""),
    blocks=((Lit("functools", hint=True, before=" "), JsonCall(array="always")),),
)
