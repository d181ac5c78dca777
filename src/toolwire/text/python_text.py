"""Write Python literals as models and prompts do."""

from __future__ import annotations

from typing import Any

from toolwire.text.json_text import json_text


def python_literal(value: Any) -> str:
    """Write a JSON value as a Python literal, with strings in double quotes and JSON's escapes, which Python shares."""
    match value:
        case None | True | False:
            return repr(value)
        case list():
            return "[" + ", ".join(map(python_literal, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{json_text(key)}: {python_literal(item)}" for key, item in value.items()) + "}"
        case _:
            return json_text(value)
