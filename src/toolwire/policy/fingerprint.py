"""What an approval is bound to: the tool as it was described, and the arguments as they would run."""

from __future__ import annotations

from toolwire.messages import ToolCall, digest
from toolwire.tools import ToolDefinition


def definition_hash(definition: ToolDefinition) -> str:
    """Sha256 hex digest of all that a model and a user are told of a tool; any change gives another."""
    facts = [
        definition.server,
        definition.name,
        definition.description,
        definition.parameters,
        int(definition.tier),
        definition.requires_confirmation,
        definition.annotations,
        definition.untrusted,
    ]
    return digest(facts)


def approval_key(call: ToolCall, definition: ToolDefinition) -> str:
    """Sha256 hex digest of a tool's definition and a call's arguments: agreement to one is none to another."""
    return digest([definition_hash(definition), call.arguments])
