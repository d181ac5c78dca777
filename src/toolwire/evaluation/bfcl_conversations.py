"""The multi-turn questions of the leaderboard, from the data in its package."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from toolwire.evaluation.bfcl_schemas import json_schema
from toolwire.evaluation.bfcl_services import MODULES, BfclServices
from toolwire.evaluation.call_scoring import ExpectedCalls
from toolwire.evaluation.conversations import ConversationTurn, NamedArguments, ScriptedConversation
from toolwire.evaluation.suite import SuiteQuestion, text_message
from toolwire.tools import ToolDefinition, definitions

MULTI_TURN: Final = (
    "multi_turn_base",
    "multi_turn_miss_func",
    "multi_turn_miss_param",
    "multi_turn_long_context",
)
_MORE_TOOLS: Final = "I have updated some more functions you can choose from. What about now?"
"""The leaderboard's message of a turn that offers more tools."""


def read_conversation(
    category: str, row: Mapping[str, Any], right: Sequence[Sequence[str]], data: Path
) -> SuiteQuestion:
    """Return the question that a row stands for.

    Args:
        category: the category.
        row: the row.
        right: the right calls of each turn, as Python.
        data: the directory of the leaderboard's data.

    Raises:
        ValueError, LookupError, TypeError, DefinitionError: the row is not a question.
        ConfigurationError: the services cannot be loaded.
    """
    services = tuple(row["involved_classes"])
    tools = {tool.name: tool for service in services for tool in _tools(data, service)}
    for name in row.get("excluded_function") or ():
        tools.pop(name, None)
    later = {int(turn): names for turn, names in (row.get("missed_function") or {}).items()}
    offered_later = {name for names in later.values() for name in names}
    first = tuple(tool for name, tool in tools.items() if name not in offered_later)
    conversation = ScriptedConversation(services, row["initial_config"], (), "long_context" in category)
    world = BfclServices(conversation)
    turns = []
    for number, (messages, texts) in enumerate(zip(row["question"], right, strict=True)):
        added = tuple(tools[name] for name in later.get(number, ()))
        spoken = [text_message(message["role"], message["content"]) for message in messages]
        turns.append(
            ConversationTurn(
                tuple(spoken or [text_message("user", _MORE_TOOLS)]),
                added if number else (*first, *added),
                tuple(_right_call(text, world) for text in texts),
            )
        )
    conversation = replace(conversation, turns=tuple(turns))
    opening = conversation.turns[0]
    # The verdict is that of the conversation.
    return SuiteQuestion(row["id"], category, opening.messages, opening.tools, ExpectedCalls(), conversation)


def _right_call(text: str, world: BfclServices) -> NamedArguments:
    """Return a call that is written as Python, such as `sort('report.txt')`."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not a call: {text!r:.100}") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"not a call: {text!r:.100}")
    positional = [ast.literal_eval(value) for value in call.args]
    keywords = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    return call.func.id, world.named(call.func.id, positional, keywords)


def _tools(data: Path, service: str) -> list[ToolDefinition]:
    path = data / "multi_turn_func_doc" / f"{MODULES[service]}.json"
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]
    described = [
        {
            "name": row["name"],
            "description": row["description"],
            "parameters": json_schema(row["parameters"]),
        }
        for row in rows
    ]
    return list(definitions(described).values())
