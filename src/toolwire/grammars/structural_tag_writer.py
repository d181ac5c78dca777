"""Grammars as structural tags, which xgrammar reads in vLLM, SGLang and TensorRT-LLM; calls in them are EBNF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.grammars.algebra import EMPTY, NOTHING, Expression, without_prefix
from toolwire.grammars.gbnf_writer import write_gbnf
from toolwire.grammars.message_rules import MessageRules
from toolwire.text.json_text import json_text


def write_structural_tag(message: MessageRules) -> str:
    """Return the grammar of a message as JSON."""
    if _is_one_expression(message):
        return json_text({"type": "structural_tag", "format": _grammar(message.root, message.rules)})
    content = _content(message)
    if message.reasoning != EMPTY:
        content = {"type": "sequence", "elements": [_grammar(message.reasoning_or_none, message.rules), content]}
    return json_text({"type": "structural_tag", "format": content})


def excludes_markers(message: MessageRules) -> bool:
    """Return whether the engine itself looks for the markers that text cannot contain, and not an expression."""
    has_marker = message.text.opener is not None or message.calls == NOTHING
    return has_marker and not message.text.closed_start and not _is_one_expression(message)


def _is_one_expression(message: MessageRules) -> bool:
    """Return whether a message depends on what the prompt has begun, so that an engine cannot look for its marker."""
    if not message.primed:
        return False
    if message.reasoning != EMPTY:
        return True
    return message.allows_text and without_prefix(message.calls, message.primed, message.rules) != NOTHING


def _content(message: MessageRules) -> dict[str, Any]:
    calls = message.primed_calls
    if not message.allows_text:
        return _grammar(calls, message.rules)
    openers = message.openers
    if not openers:
        markers = message.text.opener.texts if message.text.opener else ()
        free: dict[str, Any] = {"type": "any_text", "excludes": [*markers, *message.text.banned]}
        if not excludes_markers(message):
            free = _grammar(message.free_text, message.rules)
        return free if calls == NOTHING else {"type": "or", "elements": [_grammar(calls, message.rules), free]}
    # The engine looks for the triggers itself, which is faster than text as an expression.
    tags = [
        {"type": "tag", "begin": opener, "content": _grammar(rest, message.rules), "end": ""}
        for opener, rest in openers.items()
    ]
    return {
        "type": "triggered_tags",
        "triggers": list(openers),
        "tags": tags,
        "stop_after_first": True,
        "excludes": list(message.text.banned),
    }


def _grammar(part: Expression, rules: Mapping[str, Expression]) -> dict[str, Any]:
    return {"type": "grammar", "grammar": write_gbnf(part, rules)}
