"""Qwen-Agent's earlier prompt, for Qwen2 and Qwen-VL: a line for the name and one for the JSON arguments.

    ✿FUNCTION✿: get_weather
    ✿ARGS✿: {"city": "Paris"}

The model makes up everything after `✿RESULT✿`. The answer follows `✿RETURN✿:`.
Source: https://github.com/QwenLM/Qwen-Agent (prompt `qwen`)
"""

from toolwire.wire.syntax import Args, Call, Lit, Name, WireFormat

FORMAT = WireFormat(
    name="qwen_agent",
    title="✿FUNCTION✿: NAME\\n✿ARGS✿: {json}",
    models="Qwen2, Qwen2-VL (prompted by Qwen-Agent)",
    source="https://github.com/QwenLM/Qwen-Agent",
    drop=("✿RETURN✿:",),
    stop=("✿RESULT✿",),
    blocks=((Call((Lit("✿FUNCTION✿:", after=" "), Name(), Lit("✿ARGS✿:", before="\n", after=" "), Args())),),),
    result=("✿RESULT✿: ", ""),
)
