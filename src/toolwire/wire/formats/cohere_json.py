"""Command R and R+: a JSON list of calls in a code fence after a heading.

    Action:
    ```json
    [{"tool_name": "get_weather", "parameters": {"city": "Paris"}}]
    ```

Source: https://huggingface.co/CohereLabs/c4ai-command-r-plus-08-2024 (chat template)
"""

from toolwire.wire.syntax import JsonCall, Lit, WireFormat

_CALLS = JsonCall(name=("tool_name", "name"), args=("parameters", "arguments"), array="always")

FORMAT = WireFormat(
    name="cohere_json",
    detected=False,
    title='Action: ```json [{"tool_name":..,"parameters":{..}}] ```',
    aliases=("cohere_command_r",),
    models="Command R, R+ (08-2024)",
    source="https://huggingface.co/CohereLabs/c4ai-command-r-plus-08-2024",
    blocks=(
        (
            Lit("Action:", hint=True, after="\n"),
            Lit("```json", also=("```",), after="\n"),
            _CALLS,
            Lit("```", need="forgiven", before="\n"),
        ),
    ),
    result=("<results>\n", "</results>"),
    pseudo=("directly-answer", "directly_answer"),
)
