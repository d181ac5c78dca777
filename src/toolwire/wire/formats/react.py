"""ReAct: a thought, the name of a tool and its input as JSON, each on a line with a heading.

    Thought: I should look it up.
    Action: get_weather
    Action Input: {"city": "Paris"}

The input may be plain text if the tool takes one argument. Only known tools count, and nothing after an observation,
which the model made up.
Source: Yao et al., ReAct (2022), as frameworks prompt it
"""

from toolwire.wire.syntax import THINK, Args, Call, Lit, Name, Span, WireFormat

FORMAT = WireFormat(
    name="react",
    detected=False,
    title="Action: NAME\\nAction Input: {json}",
    models="any prompted model",
    source="https://arxiv.org/abs/2210.03629",
    spans=(THINK, Span("Thought:", "Final Answer:", prose=True)),
    ends_reasoning=True,
    drop=("Final Answer:",),
    stop=("Observation:",),
    markers=False,
    confidence=0.8,
    blocks=(
        (Call((Lit("Action:", after=" "), Name(), Lit("Action Input:", before="\n", after=" "), Args(lone=True))),),
    ),
    result=("Observation: ", ""),
)
