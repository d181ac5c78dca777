"""RWKV-7 G1: a heading and one call in a code fence.

    **Tool Call:**
    ```json
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    ```

Later checkpoints write the call in the tags of Hermes, which are read too.
Source: the parser of this name in vLLM's branch for RWKV
"""

from toolwire.wire.syntax import JsonCall, Lit, WireFormat

FORMAT = WireFormat(
    name="rwkv",
    title='**Tool Call:** ```json {"name":..,"arguments":{..}} ```',
    models="RWKV-7 G1",
    source="https://github.com/BlinkDL/RWKV-LM",
    detected=False,
    blocks=(
        (
            Lit("**Tool Call:**", hint=True, after="\n"),
            Lit("```json", also=("```",), after="\n"),
            JsonCall(),
            Lit("```", need="forgiven", before="\n"),
        ),
        (Lit("<tool_call>", after="\n"), JsonCall(), Lit("</tool_call>", need="forgiven", before="\n")),
    ),
)
