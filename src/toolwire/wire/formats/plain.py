"""Plain text: no calls, only reasoning is separated from content.

<think>2 + 2 = 4</think>The answer is 4.
"""

from toolwire.wire.syntax import THINK, THINKING, Span, WireFormat

FORMAT = WireFormat(
    name="plain",
    title="no calls; reasoning tags only",
    aliases=("think_only", "generic_content"),
    models="any",
    spans=(THINK, THINKING, Span("◁think▷", "◁/think▷")),
)
