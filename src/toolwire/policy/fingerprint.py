"""Keys of approvals: digests of a tool's definition and of the arguments that would run."""

from __future__ import annotations

from toolwire.messages import ToolCall, digest
from toolwire.tools import ToolDefinition


def definition_hash(definition: ToolDefinition) -> str:
    """Return the SHA-256 hex digest of a tool's definition; any change gives another digest."""
    # Everything that the person sees or that decides what runs. A server that rewrites a description after the approval
    # (a rug pull) has to be approved again.
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


def shown_key(key: str, preview: str) -> str:
    """Return the key of an approval that a person gave after this preview; the approval key alone if there was none."""
    return f"{key}/{digest(preview)}" if preview else key


def approval_key(call: ToolCall, definition: ToolDefinition) -> str:
    """Return the SHA-256 hex digest of a tool's definition and a call's arguments."""
    return digest([definition_hash(definition), call.arguments])
