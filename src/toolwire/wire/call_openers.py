"""A fast look at a whole text: can any call begin in it?"""

from __future__ import annotations

from toolwire._surface import check_type
from toolwire.wire.compiled_format import compile_format
from toolwire.wire.format_registry import AUTO, get_format
from toolwire.wire.syntax import WireFormat


def may_contain_call(text: str, *, format: str | WireFormat = AUTO) -> bool:
    """Return False if a text certainly contains no call, because no marker that begins one is in it.

    Args:
        text: a whole message, or its beginning up to now.
        format: a format's name or alias; with "auto", any text may contain a call.

    Raises:
        UnknownFormat: no such format.
    """
    check_type("text", text, str, "text")
    if isinstance(format, str) and format.lower() == AUTO:
        return bool(text)
    wire = get_format(format)
    # Without case, a marker may be spelled in many ways; and the prompt may have written it already.
    if wire.nocase or wire.primed:
        return bool(text)
    return bool(text) and any(opener in text for opener in compile_format(wire).blocks)
