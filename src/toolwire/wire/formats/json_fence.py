"""JSON calls in a code fence anywhere in the message.

    ```json
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    ```

The format has no markers, so only known tools count. Source: output of models that are asked for JSON in Markdown
"""

from dataclasses import replace

from toolwire.wire.formats.bare_json import FORMAT as BARE_JSON
from toolwire.wire.syntax import JsonCall, Lit, Node


def fenced(calls: JsonCall) -> tuple[Node, ...]:
    """Return calls in a code fence."""
    return Lit("```json", also=("```", "```JSON"), after="\n"), calls, Lit("```", need="forgiven", before="\n")


FORMAT = replace(
    BARE_JSON,
    name="json_fence",
    aliases=(),
    detected=False,
    title='```json {"name":..,"arguments":{..}} ```',
    models="any prompted model",
    source="output of models that are asked for JSON in Markdown",
    at="mixed",
    blocks=(fenced(JsonCall(array="several", needs_args=True)),),
)
