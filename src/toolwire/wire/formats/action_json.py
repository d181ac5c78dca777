"""A heading and one JSON object with the action: agents of smolagents, and LangChain's structured chat.

    Action:
    {"name": "get_weather", "arguments": {"city": "Paris"}}

LangChain asks for the keys `action` and `action_input`, and for a code fence. Only known tools count, and nothing after
an observation, which the model made up.
Source: the prompts of smolagents (toolcalling_agent.yaml) and of LangChain's agents (structured_chat, chat)
"""

from toolwire.wire.syntax import THINK, JsonCall, Lit, OneOf, Span, WireFormat

_FENCE = Lit("```json", also=("```", "```JSON"), after="\n")
_CALL = JsonCall(name=("name", "action"), args=("arguments", "action_input"), needs_args=True, lone=True)

FORMAT = WireFormat(
    name="action_json",
    title='Action:\\n{"name":..,"arguments":{..}}',
    aliases=("smolagents_json", "structured_chat", "langchain_json"),
    models="any prompted model (smolagents, LangChain)",
    source="https://github.com/huggingface/smolagents",
    detected=False,
    spans=(THINK, Span("Thought:", "Final Answer:", prose=True)),
    ends_reasoning=True,
    drop=("Final Answer:",),
    stop=("Observation:",),
    markers=False,
    confidence=0.8,
    blocks=((Lit("Action:", after="\n"), OneOf(((_CALL,), (_FENCE, _CALL, Lit("```", need="forgiven"))))),),
    result=("Observation: ", ""),
)
