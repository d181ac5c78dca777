"""OLMo 3: Python calls between tags, one on each line.

    <function_calls>get_weather(city="Paris", days=3)</function_calls>

Source: https://huggingface.co/allenai/Olmo-3-7B-Instruct (chat template)
"""

from toolwire.wire.syntax import Listing, Lit, PyCalls, WireFormat

FORMAT = WireFormat(
    name="olmo3",
    title='<function_calls>f(a="x")\\ng()</function_calls>',
    aliases=("olmo3_pythonic", "olmo3_think"),
    models="OLMo 3",
    source="https://huggingface.co/allenai/Olmo-3-7B-Instruct",
    blocks=(
        (
            Lit("<function_calls>"),
            PyCalls(open="", close="", bare=True),
            Lit("</function_calls>", need="forgiven"),
        ),
    ),
    result=("", ""),
    definitions=Listing("<functions>[", "]</functions>", between=", "),
)
