"""Finish reasons: the words of each API, as its provider documents them, and as compatible servers spell them."""

import pytest

from toolwire import FinishReason
from toolwire.providers.finish_reasons import WORDS, is_cut, read_reason, write_reason

READ = {
    "gemini_interactions": {
        "stop": "completed idle",
        "tool_calls": "requires_action",
        "length": "incomplete budget_exceeded requires_continuation",
        "error": "failed cancelled",
    },
    "openai_chat": {
        "stop": "stop eos eos_token stop_sequence end_turn",
        "tool_calls": "tool_calls function_call tool_use",
        "length": "length model_length max_tokens",
        "content_filter": "content_filter",
        "error": "error insufficient_system_resource abort network_error",
    },
    "mistral": {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length model_length",
        "content_filter": "content_filter",
        "error": "error",
    },
    "openai_responses": {
        "stop": "completed",
        "length": "max_output_tokens max_tokens",
        "content_filter": "content_filter",
        "error": "failed cancelled",
    },
    "anthropic_messages": {
        "stop": "end_turn stop_sequence pause_turn compaction",
        "tool_calls": "tool_use",
        "length": "max_tokens model_context_window_exceeded",
        "content_filter": "refusal",
    },
    "gemini": {
        "stop": "STOP FINISH_REASON_UNSPECIFIED 1",
        "length": "MAX_TOKENS 2",
        "content_filter": "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII LANGUAGE IMAGE_SAFETY"
        " IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION 3 4",
        "error": "OTHER MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS IMAGE_OTHER"
        " MISSING_THOUGHT_SIGNATURE NO_IMAGE 5",
    },
    "bedrock_converse": {
        "stop": "end_turn stop_sequence",
        "tool_calls": "tool_use",
        "length": "max_tokens model_context_window_exceeded",
        "content_filter": "content_filtered guardrail_intervened",
        "error": "malformed_model_output malformed_tool_use",
    },
    "cohere": {
        "stop": "COMPLETE STOP_SEQUENCE",
        "tool_calls": "TOOL_CALL",
        "length": "MAX_TOKENS",
        "content_filter": "ERROR_TOXIC",
        "error": "ERROR TIMEOUT ERROR_LIMIT",
    },
    "ollama": {"stop": "stop load unload", "length": "length"},
}
WRITTEN = {
    "gemini_interactions": "completed requires_action incomplete incomplete failed",
    "openai_chat": "stop tool_calls length content_filter stop",
    "mistral": "stop tool_calls length stop error",
    "openai_responses": "completed completed max_output_tokens content_filter failed",
    "anthropic_messages": "end_turn tool_use max_tokens refusal end_turn",
    "gemini": "STOP STOP MAX_TOKENS SAFETY OTHER",
    "bedrock_converse": "end_turn tool_use max_tokens content_filtered end_turn",
    "cohere": "COMPLETE TOOL_CALL MAX_TOKENS ERROR_TOXIC ERROR",
    "ollama": "stop stop length stop stop",
}


@pytest.mark.parametrize("api", WORDS)
def test_the_words_of_an_api_are_read(api: str) -> None:
    expected = {word: FinishReason(reason) for reason, words in READ[api].items() for word in words.split()}
    assert {word: read_reason(api, word) for word in expected} == expected
    assert {word for words in WORDS[api].values() for word in words} == expected.keys()


@pytest.mark.parametrize("api", WORDS)
def test_an_unknown_word_is_an_error_and_no_word_is_no_reason(api: str) -> None:
    assert read_reason(api, "never_heard_of") is FinishReason.ERROR
    assert read_reason(api, 77) is FinishReason.ERROR
    assert (read_reason(api, None), read_reason(api, "")) == (None, None)


@pytest.mark.parametrize("api", WORDS)
def test_each_reason_has_a_word_in_each_api(api: str) -> None:
    reasons = ("stop", "tool_calls", "length", "content_filter", "error")
    assert [write_reason(api, FinishReason(reason)) for reason in reasons] == WRITTEN[api].split()


def test_a_cut_answer_is_recognised_by_the_words_of_all_apis() -> None:
    cut = ("length", "model_length", "max_tokens", "MAX_TOKENS", "Max_Output_Tokens", "model_context_window_exceeded")
    assert all(map(is_cut, cut))
    assert not any(map(is_cut, ("stop", "2", 2, None, "", ["length"], "tool_calls", "content_filter")))


@pytest.mark.parametrize("word", ["MAX_TOKENS", "max_output_tokens", "Length", "model_context_window_exceeded"])
@pytest.mark.parametrize("api", WORDS)
def test_a_server_may_pass_on_the_word_of_another_provider_for_the_maximum_length(api: str, word: str) -> None:
    assert read_reason(api, word) is FinishReason.LENGTH
