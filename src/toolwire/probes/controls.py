"""Controls: requests that show what a model can write by itself, so that no server is blamed for a model's mistakes.

A model that writes 1234 for the text "01234" in a call may do so by itself. If it copies the same JSON as text without
a change, and the call arrives changed each time, then the server changes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolwire.client.response_body import json_of
from toolwire.probes.probe import RuleNotShown
from toolwire.probes.probe_exchange import ProbeExchange, ProbeRequest
from toolwire.probes.probe_requests import chat


def control_if_changed(exchanges: Sequence[ProbeExchange]) -> ProbeRequest | None:
    """Return the request to copy the arguments as text; None if each call so far has them as they should be."""
    for exchange in exchanges:
        arguments = exchange.request.arguments
        if arguments is not None and any(
            call.repairs or not _is_same(call.arguments, arguments) for call in exchange.response.tool_calls
        ):
            text = f"Repeat exactly: {json.dumps(arguments, ensure_ascii=False)}"
            name = exchange.request.id.removesuffix("-stream")
            return ProbeRequest(f"{name}-control", chat(text), arguments=arguments, is_control=True)
    return None


def without_controls(exchanges: Sequence[ProbeExchange]) -> list[ProbeExchange]:
    """Return the exchanges whose requests ask for calls."""
    return [exchange for exchange in exchanges if not exchange.request.is_control]


def check_model_copies(exchanges: Sequence[ProbeExchange], *names: str) -> None:
    """Check that the model copies these arguments as text without a change; without names, all of them.

    Raises:
        RuleNotShown: it does not, so the model may have changed them in the call too.
    """
    control = exchanges[-1]
    # Calls that differ in their names or their number only have the right arguments, and there is no control.
    if not control.request.is_control:
        return
    expected = control.request.arguments or {}
    copied = _object_in(control.response.content)
    for name in names or expected:
        if name not in copied or not _is_same(copied[name], expected[name]):
            raise RuleNotShown(
                f"the model does not copy the argument {name} as text either: {control.response.content!r:.200}"
            )


def _is_same(value: Any, expected: Any) -> bool:
    """Return whether two values are the same in JSON, in which 3 and 3.0 differ."""
    return json.dumps(value, sort_keys=True) == json.dumps(expected, sort_keys=True)


def _object_in(text: str) -> Mapping[str, Any]:
    """Return the JSON object in a text, which may have words or a fence around it; an empty one if there is none."""
    value = json_of(text[text.find("{") : text.rfind("}") + 1].encode("utf-8", "replace"))
    return value if isinstance(value, Mapping) else {}
