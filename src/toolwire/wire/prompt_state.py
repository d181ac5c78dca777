"""The state in which a prompt leaves the message of a model: is its reasoning already open?"""

from __future__ import annotations

from toolwire._surface import check_type
from toolwire.wire.format_registry import AUTO, all_formats, get_format
from toolwire.wire.reasoning_reader import any_reasoning
from toolwire.wire.syntax import Span, WireFormat
from toolwire.wire.template_tokens import TEMPLATE_TOKEN

_TAIL = 1 << 16
"""Maximum number of characters at the end of a prompt that are looked at: a message that the model continues."""


def prompt_opens_reasoning(prompt: str, *, format: str | WireFormat = AUTO) -> bool:
    """Return whether a prompt ends inside reasoning, so that the text of the model begins there.

    That depends on the chat template and its settings, and shows at the end of the prompt alone: a marker opens
    reasoning there, and neither its closing marker nor a control token follows. Pass the answer to `StreamParser` as
    `reasoning_started`.

    Args:
        prompt: the prompt, or its end, with its special tokens as text.
        format: a format's name or alias; "auto" for the markers of all formats.

    Raises:
        UnknownFormat: no such format.
    """
    check_type("prompt", prompt, str, "text")
    is_any = isinstance(format, str) and format.lower() == AUTO
    wire = any_reasoning(all_formats()) if is_any else get_format(format)
    tail = prompt[-_TAIL:]
    return any(_is_open(span, tail) for span in wire.spans)


def _is_open(span: Span, tail: str) -> bool:
    begin = tail.rfind(span.open)
    if begin < 0:
        return False
    inside = tail[begin + len(span.open) :]
    if span.prose:  # ordinary words, which a prompt may also explain
        return not inside.strip()
    return span.close not in inside and TEMPLATE_TOKEN.search(inside) is None
