"""Expressions of the numbers between two bounds, as JSON writes them."""

from __future__ import annotations

from toolwire.grammars.algebra import EMPTY, Expression, char_range, chars, choice, literal, optional, repeat, sequence

MAX_LENGTH = 60
"""Maximum number of digits of a number without an exponent; engines count them, and no real argument has more."""
_LARGEST_INTEGER = 10**MAX_LENGTH - 1
_DIGIT = char_range("0", "9")
_POSITIVE = sequence(char_range("1", "9"), repeat(_DIGIT, 0, MAX_LENGTH - 1))


def integers(low: float | None, high: float | None) -> tuple[bool, Expression]:
    """Return integers between two bounds, which are included, and whether these are all bounds say."""
    # A bound with more digits than numbers have excludes none of them, or all: then it has no effect.
    exact = (low is None or low <= _LARGEST_INTEGER) and (high is None or high >= -_LARGEST_INTEGER)
    low = low if low is not None and abs(low) <= _LARGEST_INTEGER else None
    high = high if high is not None and abs(high) <= _LARGEST_INTEGER else None
    # Negative numbers are the positive ones between the bounds with their signs changed.
    options: list[Expression] = []
    if low is None or low < 0:
        below = _from(max(1, -int(high)) if high is not None and high < 0 else 1, None if low is None else -int(low))
        options.append(sequence(literal("-"), below))
    if (low is None or low <= 0) and (high is None or high >= 0):
        options.append(literal("0"))
    if high is None or high > 0:
        options.append(_from(max(1, int(low)) if low is not None else 1, None if high is None else int(high)))
    return exact, choice(options)


def _from(low: int, high: int | None) -> Expression:
    """Return the positive integers between two bounds; no upper bound for None."""
    text = str(low)
    if high is None:
        if low == 1:
            return _POSITIVE
        equal_length = _between(text, "9" * len(text))
        if len(text) == MAX_LENGTH:
            return equal_length
        # Numbers with more digits than the bound are larger, whatever their digits are.
        longer = sequence(char_range("1", "9"), repeat(_DIGIT, len(text), MAX_LENGTH - 1))
        return choice([equal_length, longer])
    options: list[Expression] = []
    for length in range(len(text), len(str(high)) + 1):
        first = text if length == len(text) else "1" + "0" * (length - 1)
        last = str(high) if length == len(str(high)) else "9" * length
        options.append(_between(first, last))
    return choice(options)


def _between(low: str, high: str) -> Expression:
    """Return the numbers of as many digits between two numbers of equal length."""
    if not low:
        return EMPTY
    rest = len(low) - 1
    if low == "0" * len(low) and high == "9" * len(high):
        return repeat(_DIGIT, len(low), len(low))
    if low[0] == high[0]:
        return sequence(literal(low[0]), _between(low[1:], high[1:]))
    first, last = int(low[0]), int(high[0])
    options: list[Expression] = [sequence(literal(low[0]), _between(low[1:], "9" * rest))]
    if first + 1 < last:
        middle = char_range(str(first + 1), str(last - 1))
        options.append(sequence(middle, repeat(_DIGIT, rest, rest)))
    options.append(sequence(literal(high[0]), _between("0" * rest, high[1:])))
    return choice(options)


_WHOLE = choice([literal("0"), _POSITIVE])
_FRACTION = sequence(literal("."), repeat(_DIGIT, 1, MAX_LENGTH))
_SHORT = choice([literal("0"), sequence(char_range("1", "9"), repeat(_DIGIT, 0, 8))])
# Larger exponents would make infinity, which is not JSON.
_EXPONENT = sequence(
    chars("eE"),
    choice(
        [
            sequence(literal("-"), repeat(_DIGIT, 1, 3)),
            sequence(optional(literal("+")), choice([repeat(_DIGIT, 1, 2), sequence(chars("012"), _DIGIT, _DIGIT)])),
        ]
    ),
)
_LARGEST = sequence(
    *(_DIGIT, optional(_FRACTION), chars("eE"), optional(literal("+")), literal("30")),
    char_range("0", "7"),
)
_UNSIGNED = choice([sequence(_WHOLE, optional(_FRACTION)), sequence(_SHORT, optional(_FRACTION), _EXPONENT), _LARGEST])


def numbers(low: float | None, high: float | None) -> tuple[bool, Expression]:
    """Return numbers, with a bound of zero or more as their sign; and whether these are all the bounds say."""
    positive = low is not None and low >= 0
    negative = high is not None and high < 0
    exact = (low is None or low == 0) and high is None
    sign = literal("-") if negative else EMPTY if positive else optional(literal("-"))
    return exact, sequence(sign, _UNSIGNED)
