"""Whole JSON texts, read with the scanner's repairs and limits."""

from __future__ import annotations

from typing import Any

from toolwire.text.json_scanner import JsonScanner
from toolwire.text.json_text import FastJsonReader, JsonError, decode


def broken_limit(text: str) -> str:
    """Return the limit that a JSON value breaks, or "" if it breaks none or is not JSON."""
    scanner = JsonScanner()
    scanner.scan(text, len(text) - len(text.lstrip()), True)
    scanner.finish()
    return scanner.error if scanner.limited else ""


def read_json(text: str, *, repair: bool = True) -> tuple[Any, list[str]]:
    """Return the value of JSON text, with white space around it, and the names of the repairs made.

    Raises:
        JsonError: it is not JSON, even after repairs, or text follows it.
    """
    start = len(text) - len(text.lstrip())
    scanner = JsonScanner(repair=repair, fast=FastJsonReader())
    end = scanner.scan(text, start, True)
    scanner.finish()
    if scanner.error:
        raise JsonError(scanner.error, end)
    if not scanner.done:
        raise JsonError("the text ends inside the value", end)
    if text[end:].strip():
        raise JsonError("text follows the value", end)
    return (scanner.value if scanner.whole else decode("".join(scanner.ready))), scanner.repairs
