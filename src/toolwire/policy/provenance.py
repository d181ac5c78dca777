"""Provenance of calls: does a call contain no more than the user said?

Only the user's sentences vouch for a call, and untrusted content never does. One sentence has to contain the whole
call: a word that asks for it, and every value, not as a piece of a longer word, path, address or number. Short values
(a letter, a digit, a flag) are not vouched for, and neither is anything in a paragraph with a negation or a question.
The negations are English; those of other languages are not recognized, and pasted text looks like the user's own. So a
sentence that vouches for a call is shown to the person who is asked, and allows nothing.

Work is linear in what was said, for values up to `MAX_VALUE`; nothing backtracks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from toolwire.policy.intent_words import QUESTIONS, REFUSALS, WITHDRAWALS, is_negation
from toolwire.text.unicode_forms import normalize

MAX_VALUE = 2_000
"""Maximum length of a value that can be vouched for, in characters."""
MIN_CHARACTERS = 3
"""Minimum number of letters and digits of a text that can be vouched for."""
MIN_DIGITS = 2
"""Minimum number of digits of a number that can be vouched for."""

_END = re.compile(r"[.!?;](?=\s|$)|[\u3002\uff01\uff1f\uff1b\n\r\x0b\x0c\x85\u2028\u2029]")
_JOINING = frozenset("_-./\\@:#%+&=~,^$|*")
"""Characters that join what is on both sides of them into one word, besides letters and digits."""
_TRAILING = frozenset(".,:")
"""Punctuation that may follow a word without belonging to it."""
_NUMBER = re.compile(r"\$?([0-9]+(?:\.[0-9]+)?)")
_APOSTROPHES = str.maketrans(dict.fromkeys("`\u2019\u2018\u00b4\u02bc\u2032\uff07\u02b9", "'"))
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ASKED = re.compile("[?\uff1f\u037e\u061f]")


def vouching_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences and lines of a question that may vouch for a call.

    None of a paragraph with a negation or a question does: a line end or the period of an abbreviation may separate a
    "not" from what it negates.
    """
    sentences: list[str] = []
    doubtful, ended = False, True
    for paragraph in _paragraphs(text):
        parts = [sentence for part in _END.split(paragraph) if (sentence := part.strip())]
        # "Do not do the following:" and a blank line: the negation reaches into the next paragraph.
        goes_on = doubtful and not ended
        doubtful = goes_on or bool(_ASKED.search(paragraph)) or any(map(_is_doubtful, parts))
        ended = paragraph.rstrip().endswith((".", "!", "?"))
        if not doubtful:
            sentences += parts
    return tuple(sentences)


def _paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in (*text.splitlines(), ""):
        if line.strip():
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []


def _heard(sentence: str) -> list[str]:
    plain = normalize("NFKC", sentence.translate(_APOSTROPHES)).casefold()
    # Without invisible characters, or one inside "not" would hide the negation.
    return _WORD.findall("".join(c for c in plain if c.isascii() or unicodedata.category(c) != "Cf"))


def _is_doubtful(sentence: str) -> bool:
    """Return whether a sentence may negate something, or ask a question."""
    first, *rest = [word for word in _heard(sentence) if word != "please"] or [""]
    return (
        first in QUESTIONS
        or any(map(is_negation, (first, *rest)))
        or not REFUSALS.isdisjoint(rest)
        or not WITHDRAWALS.isdisjoint((first, *rest))
    )


def vouching_sentence(
    arguments: Mapping[str, Any], parameters: Mapping[str, Any], said: Iterable[str], asking: Sequence[str]
) -> str:
    """Return the first sentence that asks for a call and contains all of its values; "" if there is none.

    Args:
        arguments: of the call; at least one has to appear in the sentence.
        parameters: the tool's schema; what equals its default may as well be left out.
        said: the user's sentences.
        asking: words or phrases, one of which the sentence has to contain; case is ignored.
    """
    values = list(_values(arguments, parameters))
    # A call without a value has nothing that a sentence could vouch for, so the sentence may be about another call.
    if not values or any(isinstance(value, _Doubt) for value in values):
        return ""
    asking_sentences = (sentence for sentence in said if _asks(sentence, asking))
    return next((sentence for sentence in asking_sentences if all(stands_in(value, sentence) for value in values)), "")


def stands_in(value: Any, sentence: str) -> bool:
    """Return whether a sentence contains a text or a number as a whole; False for short and for other values."""
    if isinstance(value, str):
        # A text of few characters appears in most sentences by chance, so its presence proves nothing.
        if len(value) > MAX_VALUE or sum(map(str.isalnum, value)) < MIN_CHARACTERS:
            return False
        return _found(value, sentence)
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Decimals, because 0.1 in the sentence and 0.1 in the arguments are equal as written, not as binary fractions.
        number = Decimal(repr(value))
        return any(
            sum(map(str.isdigit, match[1])) >= MIN_DIGITS
            and Decimal(match[1]) == number
            and _whole(sentence, match.start(), match.end())
            for match in _NUMBER.finditer(sentence)
        )
    return False


class _Doubt:
    """Something that no sentence vouches for."""


def _values(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values that the sentence has to contain; a `_Doubt` for those that cannot be vouched for."""
    declared = parameters.get("properties")
    for name, value in arguments.items():
        schema = declared.get(name) if isinstance(declared, Mapping) else None
        # The schema does not say what an undeclared argument does, so no sentence vouches for it.
        if schema is None:
            yield _Doubt()
        elif not _is_default(value, schema):
            yield from _leaves(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list) and value:
        for inner in value:  # lists in lists say something by their order: not vouched for
            yield _Doubt() if isinstance(inner, list | dict) else inner
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
    else:
        yield _Doubt()


def _is_default(value: Any, schema: Any) -> bool:
    if not isinstance(schema, Mapping) or "default" not in schema or isinstance(value, list | dict):
        return False
    # The types too: in Python `True == 1`, and they mean different things to a tool.
    return type(value) is type(schema["default"]) and bool(value == schema["default"])


def _asks(sentence: str, words: Sequence[str]) -> bool:
    asking = [word.casefold() for word in words]
    words_said = _heard(sentence)
    if any(map(is_negation, words_said)) or any(word in REFUSALS and word not in asking for word in words_said):
        return False
    folded = sentence.casefold()
    return any(_found(word, folded) for word in asking)


def _found(text: str, sentence: str) -> bool:
    at = sentence.find(text)
    while at >= 0:
        if _whole(sentence, at, at + len(text)):
            return True
        at = sentence.find(text, at + 1)
    return False


def _whole(sentence: str, start: int, end: int) -> bool:
    """Return whether a span is not a piece of a longer word; a period or a comma behind it is allowed."""
    # "pay bob@evil.example" must not vouch for `bob`, nor "10,000" for 10.
    if start and _joins(sentence[start - 1]) and _joins(sentence[start]):
        return False
    if end == len(sentence) or not (_joins(sentence[end - 1]) and _joins(sentence[end])):
        return True
    after = end + 1
    return sentence[end] in _TRAILING and (after == len(sentence) or not _joins(sentence[after]))


def _joins(character: str) -> bool:
    """Return whether a character joins what is on both sides into one word; marks and invisible characters do."""
    if character.isalnum() or character in _JOINING:
        return True
    return not character.isascii() and unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
