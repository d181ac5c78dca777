"""Code agents of smolagents, as far as their code is nothing but calls.

    <code>
    get_weather(city="Paris")
    </code>

Code is never run: from the first line that is not a call of a known tool it stays content, and a problem says so.
Source: the prompt of smolagents (code_agent.yaml), https://github.com/huggingface/smolagents
"""

from toolwire.wire.syntax import Lit, PyCalls, WireFormat

_CODE = PyCalls(open="", close="", bare=True)

FORMAT = WireFormat(
    name="smolagents_code",
    title='<code>\\nf(a="x")\\n</code>',
    models="any prompted model (code agents of smolagents)",
    source="https://github.com/huggingface/smolagents",
    detected=False,
    stop=("Observation:",),
    markers=False,
    confidence=0.8,
    blocks=(
        (Lit("<code>", after="\n"), _CODE, Lit("</code>", need="forgiven", before="\n")),
        (Lit("```py", also=("```python",), after="\n"), _CODE, Lit("```", need="forgiven", before="\n")),
    ),
    result=("Observation:\n", ""),
)
