"""Requests that are too long for a model: the sizes in messages of providers, and the words of Anthropic."""

import pytest

from toolwire.providers.context_overflow import Overflow, anthropic_words, overflow_in, recognisable

MESSAGES = [
    (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        Overflow(130_000, 128_000),
    ),
    (
        "maximum context length is 100 tokens, you requested 140 tokens (120 in the messages, 20 in the completion)",
        Overflow(120, 100, 20),
    ),
    ("prompt is too long: 205,000 tokens > 200,000 maximum", Overflow(205_000, 200_000)),
    ("prompt is too long: 9 tokens > 8 maximum", Overflow(9, 8)),
    ("input length and `max_tokens` exceed context limit: 5000 + 3000 > 6000, decrease", Overflow(5000, 6000, 3000)),
    (
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        Overflow(1_048_577, 1_048_576),
    ),
    ("Your input exceeds the context window of this model.", Overflow()),
    ("INPUT IS TOO LONG for requested model.", Overflow()),
    ("the request exceeds the available context size (4096 tokens)", Overflow(0, 4096)),
    ("Rate limit: too many tokens per minute", None),
    ("Too many tokens, please wait before trying again.", None),
    ("Too many tokens: the request was throttled", None),
    ("max_tokens must not exceed the maximum of 4096 tokens", None),
    ("max_completion_tokens exceeds the max output tokens limit", None),
    ("maxOutputTokens exceeds the limit of 8192 tokens", None),
    ("You requested 9000 output tokens, which exceeds the maximum of 4096 tokens", None),
    ("too many tokens requested: max_tokens=9000, limit 4096", None),
    ("context_length_exceeded: max_tokens exceeds the limit of 100 tokens", Overflow(0, 100)),
    (
        "'max_tokens' is too large: 500. This model's maximum context length is 4096 tokens and your request has 4000 "
        "input tokens (500 > 4096 - 4000).",
        Overflow(4000, 4096, 500),
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        Overflow(140_000, 131_072),
    ),
    ("Please reduce the length of the messages. Current length is 9000 while limit is 8192", Overflow(9000, 8192)),
    (
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`",
        Overflow(4000, 4096),
    ),
    ("the value is too long", None),
    ("", None),
]


@pytest.mark.parametrize(("message", "overflow"), MESSAGES, ids=[row[0][:30] for row in MESSAGES])
def test_sizes_are_read_from_a_message(message: str, overflow: Overflow | None) -> None:
    assert overflow_in(message) == overflow


@pytest.mark.parametrize("message", [row[0] for row in MESSAGES if row[1]], ids=lambda message: message[:30])
def test_words_of_anthropic_stay_what_they_are(message: str) -> None:
    words = anthropic_words(message)
    assert anthropic_words(words) == words
    assert "prompt is too long: " in words or "exceed context limit: " in words


def test_a_message_says_that_it_is_about_an_overflow() -> None:
    assert recognisable("Too many tokens") == "Too many tokens"
    assert recognisable("m") == "context_length_exceeded: m"
    assert overflow_in(recognisable("No more than 5 per minute")) is not None


@pytest.mark.parametrize(
    ("overflow", "words"),
    [
        (Overflow(), "prompt is too long: 1 tokens > 0 maximum"),
        (Overflow(500), "prompt is too long: 500 tokens > 499 maximum"),
        (Overflow(500, 400), "prompt is too long: 500 tokens > 400 maximum"),
        (Overflow(300, 400), "prompt is too long: 401 tokens > 400 maximum"),
        (Overflow(0, 400), "prompt is too long: 401 tokens > 400 maximum"),
        (Overflow(500, 400, 20), "prompt is too long: 500 tokens > 400 maximum"),
        (
            Overflow(390, 400, 20),
            "input length and `max_tokens` exceed context limit: 390 + 20 > 400, "
            "decrease input length or `max_tokens` and try again",
        ),
    ],
)
def test_the_words_of_anthropic_say_that_the_prompt_is_longer(overflow: Overflow, words: str) -> None:
    assert overflow.for_anthropic() == words


@pytest.mark.parametrize(
    ("message", "overflow"),
    [
        ("The context window is 4096, the request contains 5000 tokens in 12000 bytes.", Overflow(5000, 4096)),
        ("Context limit: 4096. Got 5000 and 6000.", Overflow(6000, 4096)),
        ("Too many tokens: 5000 > max 4096", Overflow(5000, 4096)),
        ("4096 tokens maximum context length, prompt of 4096 tokens and 5000 more", Overflow(5000, 4096)),
    ],
)
def test_the_size_that_is_not_the_limit_is_that_of_the_prompt(message: str, overflow: Overflow) -> None:
    assert overflow_in(message) == overflow
