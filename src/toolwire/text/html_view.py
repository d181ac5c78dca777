"""Values as HTML, for notebooks: tables of a name and a text in each row. Everything in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from toolwire.text.escape import escape_invisible

CELL = "text-align:left;vertical-align:top;white-space:pre-wrap"


def html_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table with a title above it."""
    body = "".join(
        f'<tr><th scope="row" style="{CELL}">{_safe(name)}</th><td style="{CELL}">{_safe(text)}</td></tr>'
        for name, text in rows
    )
    return f"<table><caption>{_safe(title)}</caption><tbody>{body}</tbody></table>"


def _safe(text: str) -> str:
    """Return text of a model or a tool that does nothing but show."""
    return escape("\n".join(map(escape_invisible, text.split("\n"))))
