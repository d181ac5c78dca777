"""Gemma 2 and 3, as in Google's examples: Python calls in a code fence.

    ```tool_code
    get_weather(city="Paris")
    ```

Source: https://ai.google.dev/gemma/docs/capabilities/function-calling
"""

from toolwire.wire.syntax import Lit, PyCalls, WireFormat

FORMAT = WireFormat(
    name="gemma_tool_code",
    title='```tool_code\\nf(a="x")\\n```',
    models="Gemma 2, 3 (prompted)",
    source="https://ai.google.dev/gemma/docs/capabilities/function-calling",
    blocks=(
        (
            Lit("```tool_code", after="\n"),
            PyCalls(open="", close="", bare=True),
            Lit("```", need="forgiven", before="\n"),
        ),
    ),
    result=("```tool_output\n", "\n```"),
)
