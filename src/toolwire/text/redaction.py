"""Secrets taken out of text and values that are going to be kept.

A secret is told by its shape, as keys and tokens of well-known services have one, or by the name that it stands under:
`password=x`, `"api_key": "x"`, `--token x`, `<parameter=secret>x`. What is neither stays, so this makes records less
dangerous, and not harmless. Work is linear in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

GONE = "[redacted]"
LEAST = 4
"""Characters of a secret that stands without quotes, or that is looked for elsewhere; shorter ones are words."""
_SHORTEST = 7
"""Characters that a text has at least if it names a secret: `pwd="x"`."""
DEEPEST = 50
"""Levels of a value that are looked at; what lies deeper goes as a whole."""

# -- by shape --------------------------------------------------------------------------------------------------------

_LONG = re.compile(r"[A-Za-z0-9_.-]{15,}+")
"""Every secret of the next kind is such a word, or part of one; few words are so long."""
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}+"  # OpenAI, Anthropic, OpenRouter, Stripe
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"  # AWS
    r"|(?:gh[opusr]|glpat|hf|npm|pypi|dop_v1|shpat|gsk|xai|pplx|tvly|nvapi|fw|r8)[-_][A-Za-z0-9_-]{16,}+"
    r"|github_pat_[A-Za-z0-9_]{20,}+"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}+"  # Slack
    r"|AIza[0-9A-Za-z_-]{30,}+|ya29\.[0-9A-Za-z_-]{20,}+|GOCSPX-[0-9A-Za-z_-]{16,}+"  # Google
    r"|SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"  # SendGrid
    r"|eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+"  # a signed token
    r")"
)
_PIN = re.compile(
    r"((?<![A-Za-z])(?i:pin|otp)\\{0,3}[\"'`]?\s{0,3}(?:[:=]\s{0,3}|>\s{0,20})"
    r"\\{0,3}[\"'`]?)\d{4,8}(?![\w.:/-])"
)
"""Short numbers that a name of their own makes secrets; pins of a chip have smaller ones."""
_OPTIONS = r"[^\n|;&]{0,200}?[\s\"']"
"""The rest of a command, up to an option."""
_NEXT = r"[\"'],\s{0,3}"
_QUOTE = r"\\{0,3}[\"']?"
_WORD = r"[^\s\"'`;&|<>\\]{1,200}+"
_GUARDED = (
    (
        "-----BEGIN",
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END)[\s\S])*+(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
        ),
        GONE,
    ),
    ("://", re.compile(r"://[^\s/:@'\"<>]{0,100}:[^\s/@'\"<>]{1,200}@"), f"://{GONE}@"),  # user and password
    ("earer ", re.compile(r"earer [\w.~+/=-]{8,}+"), f"earer {GONE}"),
    *((name, _PIN, rf"\1{GONE}") for name in ("pin", "PIN", "otp")),
    ("asic ", re.compile(r"asic [A-Za-z0-9+/]{8,}+={1,2}"), f"asic {GONE}"),
)
_ADDRESSES = (
    ("hooks.slack.com/", re.compile(r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/-]{8,}+"), rf"\1{GONE}"),
    ("/api/webhooks/", re.compile(r"(/api/webhooks/\d{5,25}/)[\w-]{16,}+"), rf"\1{GONE}"),
    ("api.telegram.org/bot", re.compile(r"(api\.telegram\.org/bot)\d{5,15}:[\w-]{16,}+"), rf"\1{GONE}"),
    ("sig=", re.compile(r"((?:[?&;]|%3[Ff]|%26|&amp;)sig=)[\w%+/=.-]{10,}+"), rf"\1{GONE}"),
    ("ignature=", re.compile(r"([?&;](?:X-Amz-|X-Goog-)?Signature=)[\w%+/=.~-]{16,}+"), rf"\1{GONE}"),
)
"""Addresses that are secrets themselves."""
_COMMANDS = (
    (
        "curl",
        re.compile(
            rf"((?<![\w-])curl{_OPTIONS}(?:-[a-zA-Z]{{0,6}}[uU]|--(?:proxy-)?user)(?:[ =]{{1,2}}|{_NEXT}|(?=[\w\"']))"
            rf"{_QUOTE}[^\s:\"'\\]{{1,100}}:){_WORD}"
        ),
        rf"\1{GONE}",
    ),
    (
        "-p",
        re.compile(
            r"((?<![\w-])(?:mysql|mysqldump|mysqladmin|mysqlimport|mysqlshow|mariadb|mariadb-dump)"
            rf"{_OPTIONS}-p{_QUOTE}){_WORD}"
        ),
        rf"\1{GONE}",
    ),
    (
        "sshpass",
        re.compile(
            rf"((?<![\w-])sshpass(?:\s{{1,3}}|{_NEXT}{_QUOTE})(?:-[ve]\s{{1,3}}){{0,2}}-p(?:{_NEXT}|\s{{0,3}})"
            rf"{_QUOTE}){_WORD}"
        ),
        rf"\1{GONE}",
    ),
    (
        "passwd ",
        re.compile(r"((?<![\w./-])passwd\s{1,3}(?!-))(?=[^\s]{0,60}\d)(?=[^\s]{0,60}[A-Za-z])[^\s\"'`,;&()<>|\\]{6,}+"),
        rf"\1{GONE}",
    ),
)
"""Command lines, and lists of their words."""
_SHORT = frozenset({"pin", "otp"})
_SHORT_VALUE = re.compile(r"\d{4,8}\Z")

# -- by name ---------------------------------------------------------------------------------------------------------

_NAME = re.compile(
    r"(?:(?i:passw(?:or)?d|passphrase|passcode|secret|credential|authorization|cookie"
    r"|(?:api|app|access|private|signing|encryption|account|service|subscription)[_ -]?key)s?"
    r"|(?<![A-Za-z])(?:[Pp]wd|(?i:auth|jwt|bearer))"
    r"|(?P<token>(?i:token)))"
    r"(?:[A-Z_-][\w-]{0,30}+|\d++)?(?![A-Za-z])"
)
"""The names of secrets, inside longer ones too: `DB_PASSWORD`, `accessToken`, `x-api-key`; no `author`, no `tokens`."""

_KEYS: tuple[str, ...] = ("passw", "passphrase", "passcode", "secret", "credential", "authorization", "cookie", "key")
_KEYS += ("pwd", "auth", "jwt", "bearer", "token")
"""Without one of these, in lower case, there is no such name; looking for them is fast."""
_BEFORE = 14
"""Characters that a name may have before its key, at most: `subscription_`."""

_ATTRIBUTES = r"[\"']?(?:\s{1,3}[\w:-]{1,30}=[\"'][^\"'<>\n]{0,60}[\"']){0,4}\s?/?"
_BETWEEN = tuple(
    re.compile(pattern)
    for pattern in (
        # password = x, "password": "x", \"password\": \"x\", Authorization: Bearer x
        r"\\*[\"'`]?\s{0,3}(?:=>|:=|[:=])\s{0,3}+(?:(?i:bearer|basic|token)\s{1,3}+)?+(?![<\[{(])",
        # password:<|"|>x<|"|>, password:<escape>x<escape>
        r":<(?:\|\"\||escape)>",
        # "--password", "x"
        r"\\*[\"']\s{0,3},\s{0,3}(?=\\*[\"'])",
        # <password>x, <parameter=password>x, <arg name="password" type="string">x, key="password"<|sep|>x,
        # <key>password</key><type>string</type><value>x
        rf"{_ATTRIBUTES}(?:<[^<>\s]{{1,40}})?>"
        r"(?:\s{0,20}<[^<>\s]{1,40}type>[^<>]{0,40}</[^<>\s]{1,40}type>)?"
        r"(?:\s{0,20}<(?![/!])[^<>\n]{1,60}>)?(?:\s{0,20}<!\[CDATA\[)?\s{0,20}",
    )
)
_LISTED = 2
_MARKUP = (1, 3)
"""Which of these stand in markup, where a value ends at the next marker."""
_OPTION = re.compile(r"(?:^|[\s\"'\[(,])--?[\w-]{0,40}\Z")
_CLOSING = re.compile(r"</[\w:.-]{0,40}\Z")
_AFTER_OPTION = re.compile(r"\s{1,3}(?!-)")

_QUOTED = re.compile(r"(?P<quote>\\*[\"'`])(?P<value>(?:(?!(?P=quote))(?:\\.|[^\\]))*+)", re.DOTALL)
_BARE = re.compile(r"(?P<value>[^\s\"'`,;&(){}\[\]<>|\\]++)")
_INSIDE = re.compile(r"(?P<value>[^<]++)")
_CDATA = re.compile(r"(?P<value>(?:(?!\]\]>)[\s\S])*+)")
_SAID = re.compile(
    r"(?:\s{1,3}(?:for|of)\s{1,3}[^\s:=]{1,40})?\s{1,3}(?:is|was)\s{0,3}(?:\s(?:now|set\s{1,3}to)\s{0,3})?:?"
    r"\s{0,3}(?<=[\s:])"
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{4,100})(?P=quote)|(?P<bare>[^\s\"'`,;()<>|\\]{4,200}))"
)
"""Prose: the password is hunter2."""
_LIKE_A_SECRET = re.compile(r"(?=.{0,200}[\d!@#$%^&*+=~])")
_NO_SECRET = re.compile(
    r"(?i:\d{1,3}[a-z]{0,8}|\d{1,4}(?:-[a-z\d]+)+"  # 30d, 12-digit
    r"|(?:base|sha|md|aes|utf|oauth|x|rfc|http|ed|rs|hs|es)-?\d+(?:[-/.][a-z\d]+)*|2fa"
    r"|[a-z]+s?://.*|[^@\s]+@[a-z\d-]+\.[a-z.]+|[a-z_]+\(.*|\$\{?\w+\}?|%\w+%|\d+(?:\.\d+)+|\*+)\Z"
)
"""Words with digits or signs that say what a secret is like, and not what it is."""
_SAYS_NOTHING = re.compile(r"(?i:true|false|null|none|yes|no|string)\Z")
_NUMBER = re.compile(r"-?\d++(?:\.\d++)?\Z")


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text with `GONE` in place of what looks like a secret.

    Args:
        text: of any kind: prose, JSON, markup, command lines.
        known: secrets that are known, say by `secrets_in`; they go wherever they stand.
    """
    if known:
        for secret in spellings(known):
            text = text.replace(secret, GONE)
    if len(text) < _SHORTEST:
        return text
    made: list[str] = []
    done = 0
    for start, end in _named(text):
        made += (text[done:start], GONE)
        done = end
    if made:
        text = "".join((*made, text[done:]))
    guarded = _GUARDED
    if "/" in text or "=" in text:
        guarded += _ADDRESSES
    if "-" in text or "passwd " in text:
        guarded += _COMMANDS
    for sign, pattern, instead in guarded:
        if sign in text:
            text = pattern.sub(instead, text)
    return _LONG.sub(_unshaped, text)


def spellings(known: Iterable[str]) -> list[str]:
    """Secrets as they may stand in text and inside JSON, the longest first; none that is too short to look for."""
    made: set[str] = set()
    for secret in known:
        if len(secret) >= LEAST:
            made.add(secret)
            if not secret.isalnum():
                made.update(json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (False, True))
            elif not secret.isascii():
                made.add(json.dumps(secret)[1:-1])
    return sorted(made, key=len, reverse=True)


def redact_value(value: Any) -> Any:
    """A JSON value in which what stands under the name of a secret, or looks like one, is `GONE`."""
    return _redacted(value, DEEPEST)


def secrets_in(value: Any) -> tuple[str, ...]:
    """The texts in a JSON value that stand under the name of a secret."""
    return tuple(_found(value, False, DEEPEST))


def secret_name(name: str) -> bool:
    """Whether what stands under this name is taken for a secret."""
    return _NAME.search(name) is not None


def _unshaped(word: re.Match[str]) -> str:
    return _SHAPES.sub(GONE, word[0])


def _named(text: str) -> Iterator[tuple[int, int]]:
    """Where values stand behind the names of secrets, in order."""
    done = 0
    for at in _places(text):
        name = _NAME.search(text, max(done, at - _BEFORE), at + 60) if at >= done else None
        if name is None:
            continue
        span = _value(text, name)
        if span is not None:
            yield span
        done = name.end() if span is None else span[1]


def _places(text: str) -> list[int]:
    """Where the name of a secret may stand, in order."""
    low = text.lower()
    if len(low) != len(text):  # some letters have no single one in lower case
        low = "".join(c.lower() if c.isascii() else c for c in text)
    found: list[int] = []
    for key in _KEYS:
        at = low.find(key)
        while at >= 0:
            found.append(at)
            at = low.find(key, at + len(key))
    return sorted(found)


def _value(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    at = name.end()
    if _CLOSING.search(text, max(0, name.start() - 45), name.start()):
        return None
    for kind, between in enumerate(_BETWEEN):
        found = between.match(text, at)
        if found is not None and (kind != _LISTED or _option(text, name.start())):
            return _span(text, found.end(), name, marked=kind in _MARKUP)
    found = _AFTER_OPTION.match(text, at)
    if found is not None and _option(text, name.start()):
        return _span(text, found.end(), name, marked=False)
    return _said(text, at)


def _said(text: str, at: int) -> tuple[int, int] | None:
    """Where prose says what the secret is."""
    found = _SAID.match(text, at)
    if found is None:
        return None
    if found["quoted"] is not None:
        return None if _SAYS_NOTHING.match(found["quoted"]) else found.span("quoted")
    value = found["bare"].rstrip(".!?:")
    if len(value) < LEAST or not _LIKE_A_SECRET.match(value) or _NO_SECRET.match(value):
        return None
    return found.start("bare"), found.start("bare") + len(value)


def _option(text: str, at: int) -> bool:
    return _OPTION.search(text, max(0, at - 45), at) is not None


def _span(text: str, at: int, name: re.Match[str], *, marked: bool) -> tuple[int, int] | None:
    least = 1
    if marked:
        found = (_CDATA if text.endswith("[CDATA[", 0, at) else _INSIDE).match(text, at)
    else:
        found = _QUOTED.match(text, at)
        if found is None:
            found, least = _BARE.match(text, at), LEAST
    if found is None:
        return None
    value = found["value"].rstrip()
    if len(value) < least or _SAYS_NOTHING.match(value) or (name["token"] and _NUMBER.match(value)):
        return None
    start = found.start("value")
    return start, start + len(value)


def _redacted(value: Any, deeper: int) -> Any:
    if isinstance(value, str):
        return redact(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if not deeper:
        return GONE
    if isinstance(value, dict):
        return {key: GONE if _secret(key, inner) else _redacted(inner, deeper - 1) for key, inner in value.items()}
    return [_redacted(inner, deeper - 1) for inner in value]


def _secret(key: Any, value: Any) -> bool:
    if isinstance(key, str) and key.lower() in _SHORT and isinstance(value, str | int) and not isinstance(value, bool):
        return _SHORT_VALUE.match(str(value)) is not None
    name = _NAME.search(key) if isinstance(key, str) else None
    if name is None or isinstance(value, bool | dict | list | tuple) or value is None or value == "":
        return False
    return isinstance(value, str) or not name["token"]


def _found(value: Any, named: bool, deeper: int) -> Iterator[str]:
    if isinstance(value, str):
        if named and len(value) >= LEAST:
            yield value
    elif deeper and isinstance(value, dict):
        for key, inner in value.items():
            yield from _found(inner, _secret(key, inner), deeper - 1)
    elif deeper and isinstance(value, list | tuple):
        for inner in value:
            yield from _found(inner, named, deeper - 1)
