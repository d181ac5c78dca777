"""Pythonic: a list of Python calls with keyword arguments, without markers.

    [get_weather(city="Paris", days=3)]

Only known tools count. Source: https://huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct (chat template)
"""

from toolwire.wire.syntax import Lit, PyCalls, WireFormat

FORMAT = WireFormat(
    name="pythonic",
    title='[f(a=1), g(b="x")]',
    aliases=("llama4_pythonic",),
    models="Llama 4, Llama 3.2 (zero-shot), ToolACE",
    source="https://huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct",
    markers=False,
    confidence=0.9,
    blocks=(
        (PyCalls(),),
        (Lit("<|python_start|>"), PyCalls(), Lit("<|python_end|>", need="optional", written=False)),
    ),
)
