"""Calls to known tools whose markup has a mistake, so that nothing reads them; they are reported.

    {"name": "get_wetaher", "arguments": {"city": "Paris"}}
    get_weather(city='Paris, days=3)
    <|chanel|>commentary to=get_weather<|message|>{"city": "Paris"}

Such a call shows in two things that one mistake rarely changes both: the name of a tool, and one of its parameters with
a value. Nothing but markup is between them, so that prose about a tool does not count. The name may have one character
too many or too few, a wrong one, or two in the wrong order.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from itertools import chain, islice

from toolwire.wire.dialects import ARGUMENT_KEYS, IDENTITY_KEYS, NAME_KEYS, folded_key
from toolwire.wire.prepared_tools import KnownTools

_NEAR = 120
"""Maximum number of characters from the beginning of the name to the parameter."""
_MOST_PARAMETERS = 500
"""Number of parameters in a text before which a name is looked for, so that the search stays linear."""
_MOST_TOOLS = 20
"""Number of tools with the same parameter whose names are compared with a misspelled one."""
_SHORTEST = 5
"""Length of the shortest name that is recognized in spite of a mistake, in characters."""
_LONGEST = 400
"""Number of characters that are reported behind the parameter; fewer if the line ends."""
_PARAMETER = re.compile(
    r"""
    (?<!\w)(?P<key>[^\W\d]\w{0,255})(?=["'`:=])
    (?!["']?\s{0,2}:\s{0,9}\{\s{0,9}["']?(?:type|description|enum|anyOf|\$ref)\b)(?:
      ["'`]{0,2}\s{0,2}[:=]{1,2}>?\s{0,9}(?P<certain>
          ["'\[]{1,3}(?=[^\s"'\]]) | (?=-?\d|(?:true|false|null|True|False|None)\b) | \{)
    | \W{0,5}["']\W{0,3}(?=\w)
    )""",
    re.VERBOSE,
)
"""A parameter with the beginning of its value, unless this is its schema; or with a quote behind it, where something
is wrong."""
_TAGGED = re.compile(r"""(?<=[<>="'|])(?P<key>[^\W\d]\w{0,255})["']?\|?(?P<certain>>(?=[^<>]{1,400}<)|</|<\|)""")
"""A parameter in a tag or between tags."""
_NAME = re.compile(r"(?<![\w$/])[^\W\d][\w.-]{0,255}")
_BEFORE_NAME = re.compile(r"(?:\A|\n|[^\w\s.!?])[ \t]{0,9}\Z")
"""The beginning of a line or a sign before a name, which is not a word of a sentence there."""
_KEY_BEFORE = re.compile(r"""["']([\w ]{1,40})["']\s{0,3}[:=]\s{0,3}\[?["']\Z""")
"""The key of an object whose value the name is."""
_BRACKET = re.compile(r"[(\[{<]")
_TAG = re.compile(r"<[^<>]{0,80}(?:>|\Z)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_WORDS = frozenset({"tool", "use", "json", "xml", "python", "analysis", "commentary", "with", "functions"})
_MARKUP = frozenset().union(NAME_KEYS, ARGUMENT_KEYS, IDENTITY_KEYS, _WORDS, ("calls", "arg", "key", "value"))
"""Words that formats have between the name of a tool and its arguments."""
_GOES_ON = re.compile(r"[^\w\s]*\w*\s[^\W\d]")
"""Words of a sentence behind a bracket."""
_ABOUT = re.compile(r"""["']description["']\s{0,3}:""")
"""A member of objects that are about a tool, and do not call it."""
_NEAR_BEHIND = 200
"""Number of characters behind a parameter in which such a member is looked for."""
_SHORTENED = ("...", "…")
"""Signs that a text shows only a part of a call."""


def damaged_calls(text: str, tools: KnownTools, called: Container[str] = ()) -> Iterator[tuple[int, int]]:
    """Yield the places of such calls in a text.

    Args:
        text: the text.
        tools: the known tools.
        called: tools whose calls do not count, because the model has called them as it should.
    """
    tagged = _TAGGED.finditer(text) if "<" in text else iter(())  # pragma: no mutate - only to be faster
    parameters = (match for match in chain(_PARAMETER.finditer(text), tagged) if match["key"] in tools.parameters)
    for parameter in islice(parameters, _MOST_PARAMETERS):
        begin = max(0, parameter.start("key") - _NEAR)
        before = text[begin : parameter.start("key")]
        tool, start, end = _name(before, parameter["key"], tools, misspelled=parameter["certain"] is not None)
        if not tool or tool in called or not _is_markup(before[end:]):
            continue
        start += begin
        stop = text.find("\n", parameter.end(), parameter.end() + _LONGEST)
        stop = stop if stop >= 0 else min(len(text), parameter.end() + _LONGEST)
        is_whole = not any(sign in text[start:stop] for sign in _SHORTENED)
        is_about = "description" not in tools.parameters and _ABOUT.search(text, start, parameter.end() + _NEAR_BEHIND)
        if is_whole and not is_about and _may_be_called(text, start):
            yield start, stop


def _name(before: str, key: str, tools: KnownTools, *, misspelled: bool) -> tuple[str, int, int]:
    """Return the last tool with this parameter that the text before it names, and where; or ""."""
    for match in reversed(list(_NAME.finditer(before))):
        name = tools.exactly(match[0].rstrip(".-"))
        if name:
            return (name, *match.span()) if key in tools.properties(name) else ("", 0, 0)
    names = tools.with_parameter(key) if misspelled else ()
    for name in names[:_MOST_TOOLS]:
        if len(name) >= _SHORTEST and (place := misspelled_in(before, name)) is not None:
            return name, *place
    return "", 0, 0


def misspelled_in(text: str, name: str) -> tuple[int, int] | None:
    """Return a place in a text where a name is written with one mistake, or None."""
    # A mistake is in one half of the name, or between them; so at least one end of the name is right.
    half = (len(name) - 1) // 2
    sizes = (len(name) - 1, len(name), len(name) + 1)
    heads = ((start, start + size) for start in _places(text, name[:half]) for size in sizes)
    tails = ((at + half - size, at + half) for at in _places(text, name[-half:]) for size in sizes)
    for start, end in chain(heads, tails):
        if _is_word(text, start, end) and _differ_once(text[start:end], name):
            return start, end
    return None


def _places(text: str, part: str) -> Sequence[int]:
    """Return the places of a part of a name in a text, the last one first."""
    return [match.start() for match in re.finditer(re.escape(part), text)][::-1] if part in text else ()


def _is_word(text: str, start: int, end: int) -> bool:
    """Return whether no word and no path continues at either end of this place."""
    if not 0 <= start < end <= len(text):
        return False
    beside = text[max(0, start - 1) : start] + text[end : end + 1]
    return "/" not in (text[start], beside[:1]) and not any(character.isalnum() for character in beside)


def _differ_once(written: str, name: str) -> bool:
    """Return whether a character is missing, too many or wrong, or two are in the wrong order."""
    differing = (at for at, characters in enumerate(zip(written, name, strict=False)) if characters[0] != characters[1])
    at = next(differing, min(len(written), len(name)))
    rest, expected = written[at:], name[at:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    return rest[1:] == expected[1:] or rest == expected[1:] or rest[1:] == expected or swapped == expected


def _may_be_called(text: str, start: int) -> bool:
    """Return whether a name at this place is neither a word of a sentence nor another member of an object."""
    begin = max(0, start - _NEAR)
    key = _KEY_BEFORE.search(text, begin, start)
    is_another = key is not None and not _is_known(folded_key(key[1]))
    return not is_another and _BEFORE_NAME.search(text, begin, start) is not None


def _is_markup(between: str) -> bool:
    """Return whether there is nothing but markup between the name of a tool and one of its parameters."""
    has_tags = "<" in between
    between = _TAG.sub(" ", between)
    bracket = next((match.end() for match in reversed(list(_BRACKET.finditer(between)))), 0)
    if not bracket and not has_tags:
        return False
    words = (word.lower() for word in _WORD.findall(between[:bracket] if bracket else between))
    return all(_is_known(word) for word in words) and not (bracket and _GOES_ON.match(between, bracket))


def _is_known(word: str) -> bool:
    """Return whether a word of lower-case letters is one of markup, also with a mistake."""
    return word in _MARKUP or any(abs(len(word) - len(each)) < 2 and _differ_once(word, each) for each in _MARKUP)
