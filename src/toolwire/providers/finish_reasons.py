"""Finish reasons in the vocabulary of each API: one table, read in both directions."""

from __future__ import annotations

from toolwire.messages import FinishReason

_STOP, _CALLS, _LENGTH = FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH
_FILTER, _ERROR = FinishReason.CONTENT_FILTER, FinishReason.ERROR

# The first word of a cell is written; all are read.
WORDS: dict[str, dict[FinishReason, tuple[str, ...]]] = {
    "openai_chat": {
        _STOP: ("stop", "eos", "eos_token", "stop_sequence", "end_turn"),
        _CALLS: ("tool_calls", "function_call", "tool_use"),
        _LENGTH: ("length", "model_length", "max_tokens"),
        _FILTER: ("content_filter",),
        _ERROR: ("stop", "error", "insufficient_system_resource", "abort", "network_error"),
    },
    "mistral": {
        _STOP: ("stop",),
        _CALLS: ("tool_calls",),
        _LENGTH: ("length", "model_length"),
        _FILTER: ("stop", "content_filter"),
        _ERROR: ("error",),
    },
    "openai_responses": {
        _STOP: ("completed",),
        _CALLS: ("completed",),
        _LENGTH: ("max_output_tokens", "max_tokens"),
        _FILTER: ("content_filter",),
        _ERROR: ("failed", "cancelled"),
    },
    "anthropic_messages": {
        _STOP: ("end_turn", "stop_sequence", "pause_turn", "compaction"),
        _CALLS: ("tool_use",),
        _LENGTH: ("max_tokens", "model_context_window_exceeded"),
        _FILTER: ("refusal",),
        _ERROR: ("end_turn",),
    },
    "gemini": {
        _STOP: ("STOP", "FINISH_REASON_UNSPECIFIED", "1"),
        _CALLS: ("STOP",),
        _LENGTH: ("MAX_TOKENS", "2"),
        _FILTER: (
            "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "3", "4",
        ),
        _ERROR: (
            "OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "IMAGE_OTHER",
            "MISSING_THOUGHT_SIGNATURE", "NO_IMAGE", "5",
        ),
    },
    "gemini_interactions": {
        _STOP: ("completed", "idle"),
        _CALLS: ("requires_action",),
        _LENGTH: ("incomplete", "budget_exceeded", "requires_continuation"),
        _FILTER: ("incomplete",),
        _ERROR: ("failed", "cancelled"),
    },
    "bedrock_converse": {
        _STOP: ("end_turn", "stop_sequence"),
        _CALLS: ("tool_use",),
        _LENGTH: ("max_tokens", "model_context_window_exceeded"),
        _FILTER: ("content_filtered", "guardrail_intervened"),
        _ERROR: ("end_turn", "malformed_model_output", "malformed_tool_use"),
    },
    "cohere": {
        _STOP: ("COMPLETE", "STOP_SEQUENCE"),
        _CALLS: ("TOOL_CALL",),
        _LENGTH: ("MAX_TOKENS",),
        _FILTER: ("ERROR_TOXIC",),
        _ERROR: ("ERROR", "TIMEOUT", "ERROR_LIMIT"),
    },
    "ollama": {
        _STOP: ("stop", "load", "unload"),
        _CALLS: ("stop",),
        _LENGTH: ("length",),
        _FILTER: ("stop",),
        _ERROR: ("stop",),
    },
}  # fmt: skip

_READ = {
    api: {word: reason for reason, words in reversed(table.items()) for word in reversed(words)}
    for api, table in WORDS.items()
}
_CUT = frozenset(word.lower() for table in WORDS.values() for word in table[_LENGTH] if not word.isdigit())
"""The words of all APIs for an answer that reached its maximum length."""


_EXPLAINED = "incomplete"
"""The state of an answer whose reason is in another member."""


def is_cut(word: object) -> bool:
    """Return whether any API says with this word, in capitals or not, that an answer reached its maximum length."""
    return isinstance(word, str) and word.lower() in _CUT


def read_reason(api: str, word: object) -> FinishReason | None:
    """Return the reason that an API's word stands for; None if there is no word.

    A word of another API for the maximum length means that here too: servers pass on the words of their models'
    providers. Any other unknown word is an error, because it does not say that the answer is whole.
    """
    if word is None or word == "":
        return None
    return _READ[api].get(str(word), FinishReason.LENGTH if is_cut(word) else FinishReason.ERROR)


def is_own_word(api: str, word: object, reason: FinishReason) -> bool:
    """Return whether an answer has another word for its finish reason than the one that its API would get back."""
    words = {_EXPLAINED, *(WORDS[api][other][0] for other in (_STOP, _CALLS, reason))}
    return isinstance(word, str) and word != "" and word not in words


def write_reason(api: str, reason: FinishReason) -> str:
    """Return an API's word for a reason."""
    return WORDS[api][reason][0]


def has_failure_word(api: str) -> bool:
    """Return whether an API has a word for an answer that failed, and does not write it as a whole one."""
    return write_reason(api, _ERROR) != write_reason(api, _STOP)
