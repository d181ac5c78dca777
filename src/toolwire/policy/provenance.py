"""Whose words a call is made of: does it say no more than the user said?

Text of strangers never vouches for anything, so it does not matter what it holds. What the user said is cut into
sentences, and one sentence has to hold the whole call: a word that asks for it, and every value as it stands, not a
piece of a longer word, path, address or number. What says little (a letter, a digit, a flag) vouches for nothing, and
neither does what stands with a "not" or a question between two blank lines. The words are English: in other languages
nothing tells a "not". Whatever is in doubt is not vouched for: then somebody is asked.

Work is linear in what was said, for values up to `MAX_VALUE`; nothing backtracks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from toolwire.policy.intent_words import QUESTIONS, REFUSALS, is_negation

MAX_VALUE = 2_000
"""Characters of a value that is looked for; longer ones are not vouched for."""
MIN_CHARACTERS = 3
"""Letters and digits that text needs to vouch for something."""
MIN_DIGITS = 2
"""Digits that a number needs."""

_END = re.compile(r"[.!?;](?=\s|$)|[\u3002\uff01\uff1f\uff1b\n\r\x0b\x0c\x85\u2028\u2029]")
_JOINING = frozenset("_-./\\@:#%+&=~,^$|*")
"""Besides letters and digits, what holds a word together when it stands inside one."""
_TRAILING = frozenset(".,:")
"""What may follow a word without being of it, where the word ends there."""
_NUMBER = re.compile(r"\$?([0-9]+(?:\.[0-9]+)?)")
_APOSTROPHES = str.maketrans(dict.fromkeys("`\u2019\u2018\u00b4\u02bc\u2032\uff07\u02b9", "'"))
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ASKED = re.compile("[?\uff1f\u037e\u061f]")


def vouching_sentences(text: str) -> tuple[str, ...]:
    """The sentences and lines of what somebody said that may vouch for something.

    Where a negation or a question stands, nothing does from one blank line to the next: a line end or the stop of an
    abbreviation may stand between "not" and what is not wanted.
    """
    kept: list[str] = []
    doubtful, ended = False, True
    for paragraph in _paragraphs(text):
        parts = [one for part in _END.split(paragraph) if (one := part.strip())]
        goes_on = doubtful and not ended
        doubtful = goes_on or bool(_ASKED.search(paragraph)) or any(map(_is_doubtful, parts))
        ended = paragraph.rstrip().endswith((".", "!", "?"))
        if not doubtful:
            kept += parts
    return tuple(kept)


def _paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in (*text.splitlines(), ""):
        if line.strip():
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []


def _heard(sentence: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", sentence.translate(_APOSTROPHES)).casefold()
    return _WORD.findall("".join(c for c in plain if c.isascii() or unicodedata.category(c) != "Cf"))


def _is_doubtful(sentence: str) -> bool:
    """Whether a sentence may say that something is not wanted, or ask."""
    first, *rest = [word for word in _heard(sentence) if word != "please"] or [""]
    return first in QUESTIONS or any(map(is_negation, (first, *rest))) or not REFUSALS.isdisjoint(rest)


def vouched(
    arguments: Mapping[str, Any], parameters: Mapping[str, Any], said: Iterable[str], asking: Sequence[str]
) -> bool:
    """Whether one sentence asks for a call and holds all of its values.

    Args:
        arguments: of the call; at least one has to stand in the sentence.
        parameters: the tool's schema; what equals its default may as well be left out.
        said: the user's sentences.
        asking: words or phrases of which the sentence has to hold one; case is ignored.
    """
    values = list(_values(arguments, parameters))
    if not values or any(isinstance(value, _Doubt) for value in values):
        return False
    return any(_asks(one, asking) and all(stands_in(value, one) for value in values) for one in said)


def stands_in(value: Any, sentence: str) -> bool:
    """Whether text or a number stands in a sentence as a whole; other values do not, and neither do short ones."""
    if isinstance(value, str):
        if len(value) > MAX_VALUE or sum(map(str.isalnum, value)) < MIN_CHARACTERS:
            return False
        return _found(value, sentence)
    if isinstance(value, int | float) and not isinstance(value, bool):
        wanted = Decimal(repr(value))
        return any(
            sum(map(str.isdigit, match[1])) >= MIN_DIGITS
            and Decimal(match[1]) == wanted
            and _whole(sentence, match.start(), match.end())
            for match in _NUMBER.finditer(sentence)
        )
    return False


class _Doubt:
    """Something that no sentence vouches for."""


def _values(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> Iterator[Any]:
    """What has to stand in the sentence; a doubt where that cannot be said."""
    declared = parameters.get("properties")
    for name, value in arguments.items():
        schema = declared.get(name) if isinstance(declared, Mapping) else None
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
    return type(value) is type(schema["default"]) and bool(value == schema["default"])


def _asks(sentence: str, words: Sequence[str]) -> bool:
    asking = [word.casefold() for word in words]
    heard = _heard(sentence)
    if any(map(is_negation, heard)) or any(word in REFUSALS and word not in asking for word in heard):
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
    """Whether nothing before or after belongs to the same word; a stop or a comma behind it does not."""
    if start and _joins(sentence[start - 1]) and _joins(sentence[start]):
        return False
    if end == len(sentence) or not (_joins(sentence[end - 1]) and _joins(sentence[end])):
        return True
    after = end + 1
    return sentence[end] in _TRAILING and (after == len(sentence) or not _joins(sentence[after]))


def _joins(character: str) -> bool:
    """Whether a character makes one word of what stands on both sides; marks and invisible ones do."""
    if character.isalnum() or character in _JOINING:
        return True
    return not character.isascii() and unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
