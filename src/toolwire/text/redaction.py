"""Redact secrets from text and values before they are stored.

A secret is recognised by its shape, as keys and tokens of well-known services have one, or by its name:
`password=x`, `"api_key": "x"`, `--token x`, `<parameter=secret>x`. Other secrets remain, so redaction makes
records less dangerous, but not harmless. The time it takes is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolwire.text.secret_shapes import is_random, redact_shapes
from toolwire.text.secret_spellings import MIN_ENVIRONMENT, MIN_LENGTH, redact_wrapped, secret_spellings

REDACTED = "[redacted]"
_SHORTEST = 7  # pragma: no mutate - a smaller number does too
"""Minimum length of a text that names a secret, in characters: `pwd="x"`."""
MAX_DEPTH = 50
"""Maximum levels of a value that are searched; anything deeper is redacted as a whole."""

# -- by shape --------------------------------------------------------------------------------------------------------

_PIN = re.compile(
    r"((?<![A-Za-z])(?i:pin|otp)\\{0,3}[\"'`]?\s{0,3}(?:[:=]\s{0,3}|>\s{0,20})"
    r"\\{0,3}[\"'`]?)\d{4,8}(?![\w.:/-])"
)
"""Short numbers that only their name makes secret; the pins of a chip have smaller numbers."""
_OPTIONS = r"[^\n|;&]{0,200}?[\s\"']"
"""The rest of a command, up to an option."""
_NEXT = r"[\"'],\s{0,3}"
_QUOTE = r"\\{0,3}[\"']?"
_WORD = r"[^\s\"'`;&|<>\\]{1,200}+"
_PRIVATE_KEY = (
    "-----BEGIN",
    re.compile(
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S])*+"
        r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
    ),
)
_GUARDED = (
    (
        "login ",  # pragma: no mutate - only to be faster
        re.compile(
            r"((?<![\w-])login\s{1,3}\S{1,100}\s{1,3}(?:account\s{1,3}\S{1,100}\s{1,3})?password\s{1,3})\S{1,200}"
        ),
        rf"\1{REDACTED}",
    ),
    (
        "login ",  # pragma: no mutate - only to be faster
        re.compile(
            rf"((?<![\w-])(?:docker|podman|helm|oras|skopeo|buildah|crane)\b{_OPTIONS}-p[ =]{{0,2}}{_QUOTE}){_WORD}"
        ),
        rf"\1{REDACTED}",
    ),
    ("://", re.compile(r"://[^\s/:@'\"<>]{0,100}:[^\s/@'\"<>]{1,200}@"), f"://{REDACTED}@"),  # user and password
    ("://", re.compile(r"://[^\s/:@'\"<>]{20,200}@"), f"://{REDACTED}@"),  # a token in place of both
    *(
        (
            sign,
            re.compile(rf"((?<![\w-]){sign}\s{{1,3}}(?P<quote>[\"']))(?:(?!(?P=quote))[^\n]){{1,200}}"),
            rf"\1{REDACTED}",
        )
        for sign in ("PASSWORD", "IDENTIFIED BY", "identified by")
    ),
    ("pass:", re.compile(r"((?<![\w-])-pass(?:in|out|word)?\s{1,3}pass:)[^\s\"']{1,200}"), rf"\1{REDACTED}"),
    ("earer ", re.compile(r"earer [\w.~+/=-]{8,}+"), f"earer {REDACTED}"),
    *((name, _PIN, rf"\1{REDACTED}") for name in ("pin", "PIN", "Pin", "otp", "OTP", "Otp")),
    ("asic ", re.compile(r"asic [A-Za-z0-9+/]{8,}+={1,2}"), f"asic {REDACTED}"),
)
_ADDRESSES = (
    (
        "hooks.slack.com/",  # pragma: no mutate - only to be faster
        re.compile(r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/-]{8,}+"),
        rf"\1{REDACTED}",
    ),
    ("/api/webhooks/", re.compile(r"(/api/webhooks/\d{5,25}/)[\w-]{16,}+"), rf"\1{REDACTED}"),
    ("api.telegram.org/bot", re.compile(r"(api\.telegram\.org/bot)\d{5,15}:[\w-]{16,}+"), rf"\1{REDACTED}"),
    (
        "sig=",  # pragma: no mutate - only to be faster
        re.compile(r"((?:[?&;]|%3[Ff]|%26|&amp;)sig=)[\w%+/=.-]{10,}+"),
        rf"\1{REDACTED}",
    ),
    ("ignature=", re.compile(r"([?&;](?:X-Amz-|X-Goog-)?Signature=)[\w%+/=.~-]{16,}+"), rf"\1{REDACTED}"),
)
"""URLs that are secrets themselves."""
_COMMANDS = (
    (
        "curl",  # pragma: no mutate - only to be faster
        re.compile(
            rf"((?<![\w-])curl{_OPTIONS}(?:-[a-zA-Z]{{0,6}}[uU]|--(?:proxy-)?user)(?:[ =]{{1,2}}|{_NEXT}|(?=[\w\"']))"
            rf"{_QUOTE}[^\s:\"'\\]{{1,100}}:){_WORD}"
        ),
        rf"\1{REDACTED}",
    ),
    *(
        (
            sign,  # pragma: no mutate - only to be faster
            re.compile(
                r"((?<![\w-])(?:mysql|mysqldump|mysqladmin|mysqlimport|mysqlshow|mariadb|mariadb-dump)"
                rf"{_OPTIONS}-p{_QUOTE}){_WORD}"
            ),
            rf"\1{REDACTED}",
        )
        for sign in ("mysql", "mariadb")  # pragma: no mutate - only to be faster
    ),
    (
        "sshpass",  # pragma: no mutate - only to be faster
        re.compile(
            rf"((?<![\w-])sshpass(?:\s{{1,3}}|{_NEXT}{_QUOTE})(?:-[ve]\s{{1,3}}){{0,2}}-p(?:{_NEXT}|\s{{0,3}})"
            rf"{_QUOTE}){_WORD}"
        ),
        rf"\1{REDACTED}",
    ),
    (
        "passwd ",  # pragma: no mutate - only to be faster
        re.compile(r"((?<![\w./-])passwd\s{1,3}(?!-))(?=[^\s]{0,60}\d)(?=[^\s]{0,60}[A-Za-z])[^\s\"'`,;&()<>|\\]{6,}+"),
        rf"\1{REDACTED}",
    ),
)
"""Passwords in command lines, and in lists of their words."""
_SHORT = frozenset({"pin", "otp"})
_SHORT_VALUE = re.compile(r"\d{4,8}\Z")

_KEYLIKE_NAME = r"(?i:key|pass|pw|creds?|salt|signature|sig|seed|pat|hmac|nonce|webhook|dsn|connection[_-]?string)"
_KEYLIKE = re.compile(
    rf"(?<![A-Za-z])(?:{_KEYLIKE_NAME}|[\w.-]{{0,40}}[_.-]{_KEYLIKE_NAME}|[\w.-]{{0,40}}?(?<=[a-z])(?:Key|Pass|Salt|Sig|Seed))"
    r"\\{0,3}[\"'`]?\s{0,3}\Z"
)
"""Names that secrets have, and other values too: only a random value behind one is a secret."""
_MAX_KEYLIKE = 70
"""Maximum length of such a name with what is between it and the sign before its value, in characters."""
_ASSIGNED = re.compile(
    r"(?:=>|:=|[:=])\s{0,3}\\{0,3}[\"'`]?(?P<value>[A-Za-z0-9+/_=.~-]{16,200}+)(?![A-Za-z0-9+/_=.~-])"
)
"""Values that may be random, from the sign before them: these are fewer, and found faster, than names."""

# -- by name ---------------------------------------------------------------------------------------------------------

_NAME = re.compile(
    r"(?:(?i:passw(?:or[dt])?d?|kennwort|contraseña|mot\sde\spasse|(?<![a-z])senha|wachtwoord|hasło|lösenord|şifre|пароль"
    r"|密码|密碼|口令|パスワード|비밀번호|passphrase|passcode|secret|credential|authorization|cookie"
    r"|(?:api|app|access|private|signing|encryption|account|service|subscription)[_ -]?key|key[_-]data)s?"
    r"|(?<![A-Za-z])(?:[Pp]wd|(?i:auth|jwt|bearer))"
    r"|(?P<weak>(?<![A-Za-z])(?i:pass|psk)(?![\w-]))"
    r"|(?P<token>(?i:token)))"
    r"(?:[A-Z_-][\w-]{0,30}+|\d++)?(?![A-Za-z])"
)
"""Names of secrets, inside longer names too: `DB_PASSWORD`, `accessToken`, `x-api-key`; not `author` or `tokens`."""

_NAME_PARTS = (
    *("pass", "psk", "kennwort", "contraseña", "mot de passe", "senha", "wachtwoord", "hasło", "lösenord", "şifre"),
    *("пароль", "密码", "密碼", "口令", "パスワード", "비밀번호"),
    *("secret", "credential", "authorization", "cookie", "key"),
    *("pwd", "auth", "jwt", "bearer", "token"),
)
"""Every such name contains one of these in lower case; searching for them is fast."""
_BEFORE = 14  # pragma: no mutate - a larger number finds the same names
"""Maximum length of the part of a name before its key, in characters: `subscription_`."""

_ATTRIBUTES = r"[\"']?(?:\s{1,3}[\w:-]{1,30}=[\"'][^\"'<>\n]{0,60}[\"']){0,4}\s?/?"
_ASSIGNS = (
    r"\\*(?:[\"'`]|\*\*)?\s{0,3}(?:=>|:=|[:=\uff1a])(?:\*\*)?\s{0,3}+"
    r"(?:[|>][+-]?\n\s{1,40}+)?+(?:(?P<first>[\"'])(?P=first)(?=(?P=first)))?+"
)
_BETWEEN = tuple(
    re.compile(pattern)
    for pattern in (
        # password = x, "password": "x", \"password\": \"x\", **password:** x, Authorization: Bearer x
        rf"{_ASSIGNS}(?:(?i:bearer|basic|token)\s{{1,3}}+)?+(?![<\[{{(])",
        # "name": "password", "value": "x"
        r"\\*[\"'`]?,?\s{1,40}\\*[\"'`]?(?i:value|val|content)\\*[\"'`]?\s{0,3}[:=]\s{0,3}+(?![<\[{(])",
        # password:<|"|>x<|"|>, password:<escape>x<escape>
        r":<(?:\|\"\||escape)>",
        # "--password", "x"; ("password", "x")
        r"\\*[\"']\s{0,3},\s{0,3}b?(?=\\*[\"'])",
        # <password>x, <parameter=password>x, <arg name="password" type="string">x, key="password"<|sep|>x,
        # <key>password</key><type>string</type><value>x
        rf"{_ATTRIBUTES}(?:<[^<>\s]{{1,40}})?>"
        r"(?:\s{0,20}<[^<>\s]{1,40}type>[^<>]{0,40}</[^<>\s]{1,40}type>)?"
        r"(?:\s{0,20}<(?![/!])[^<>\n]{1,60}>)?(?:\s{0,20}<!\[CDATA\[)?\s{0,20}",
    )
)
_LIST_ITEM = 3
_MARKUP = (2, 4)
"""Indices in `_BETWEEN` of those in markup, where a value ends at the next tag."""
_SCHEME = re.compile(r"[A-Za-z][\w-]{0,24}\s{1,3}+(?=[\w.~+/=-]{8}|\[redacted\])")
"""The scheme of an authorization before its credentials: any word."""
_OPTION = re.compile(r"(?:^|[\s\"'\[(,])--?[\w-]{0,40}\Z")
_PAIR_BEGINS = re.compile(r"[(\[]\s{0,3}b?\\*[\"'][\w-]{0,40}\Z")
_PAIR_ENDS = re.compile(r"\\*[\"']\s{0,3},?\s{0,3}[)\]]")
_CLOSING = re.compile(r"</[\w:.-]{0,40}\Z")
_AFTER_OPTION = re.compile(r"\s{1,3}(?!-)")

_QUOTED = re.compile(r"(?P<quote>\\*[\"'`])(?P<value>(?:(?!(?P=quote))(?:\\.|[^\\]))*+)", re.DOTALL)
_BARE = re.compile(r"(?P<value>[^\s\"'`,;&(){}\[\]<>|\\]++)")
_UNTIL_TAG = re.compile(r"(?P<value>[^<]++)")
_CDATA = re.compile(r"(?P<value>(?:(?!\]\]>)[\s\S])*+)")
_STATED = re.compile(
    r"(?:\s{1,3}(?:for|of)\s{1,3}[^\s:=]{1,40})?\s{1,3}(?:is|was)\s{0,3}(?:\s(?:now|set\s{1,3}to)\s{0,3})?:?"
    r"\s{0,3}(?<=[\s:])"
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{4,100})(?P=quote)|(?P<bare>[^\s\"'`,;()<>|\\]{4,200}))"
)
"""Secrets in prose: the password is hunter2."""
_SECRET_LOOKING = re.compile(r"(?=.{0,200}[\d!@#$%^&*+=~])")
_HARMLESS = re.compile(
    r"(?i:\d{1,3}[a-z]{0,8}|\d{1,4}(?:-[a-z\d]+)+"  # 30d, 12-digit
    r"|(?:base|sha|md|aes|utf|oauth|x|rfc|http|ed|rs|hs|es)-?\d+(?:[-/.][a-z\d]+)*|2fa"
    r"|[a-z]+s?://.*|[^@\s]+@[a-z\d-]+\.[a-z.]+|[a-z_]+\(.*|\$\{?\w+\}?|%\w+%|\d+(?:\.\d+)+|\*+)\Z"
)
"""Words with digits or signs that describe a secret, and are not the secret."""
_PASSWORD_LIKE = re.compile(r"(?=.{0,200}[A-Za-z])(?=.{0,200}\d).{6}")
_MEANINGLESS = re.compile(r"(?i:true|false|null|none|yes|no|string)\Z")
_PLAIN = re.compile(r"[\d.:,-]+\Z|(?:/[\w.@+-]+)+/?\Z|[a-z]+\Z")
"""Numbers, paths and words: they are not secrets, whatever the name of their variable."""
_NUMBER = re.compile(r"-?\d++(?:\.\d++)?\Z")


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Return a text with "[redacted]" in place of everything that looks like a secret.

    Args:
        text: text of any kind: prose, JSON, markup, command lines.
        known: known secrets, from `secrets_in` for example; they are redacted wherever they occur.
    """
    if known:
        secrets = tuple(known)
        for spelling in secret_spellings(secrets):
            text = text.replace(spelling, REDACTED)
        text = redact_wrapped(text, secrets, REDACTED)
    if len(text) < _SHORTEST:  # pragma: no mutate - only to be faster
        return text
    # A name would only hide the first word of a key of several lines.
    if _PRIVATE_KEY[0] in text:
        text = _PRIVATE_KEY[1].sub(REDACTED, text)
    pieces: list[str] = []
    copied = 0
    for start, end in _named_spans(text):
        pieces += (text[copied:start], REDACTED)
        copied = end
    if pieces:
        text = "".join((*pieces, text[copied:]))
    if "=" in text or ":" in text:
        text = _redact_random(text)
    # Each pattern has a plain string that its matches contain. Searching for that string is many times faster than
    # the pattern, and most text contains none of them.
    guarded = _GUARDED
    if "/" in text or "=" in text:
        guarded += _ADDRESSES
    if "-" in text or "passwd " in text:
        guarded += _COMMANDS
    for sign, pattern, instead in guarded:
        if sign in text:
            text = pattern.sub(instead, text)
    return redact_shapes(text, REDACTED)


def redact_value(value: Any) -> Any:
    """Return a JSON value in which everything that has the name of a secret, or looks like one, is `REDACTED`."""
    return _redact_below(value, MAX_DEPTH)


def secrets_in(value: Any) -> tuple[str, ...]:
    """Return the texts in a JSON value that have the name of a secret."""
    return tuple(_secrets_below(value, False, MAX_DEPTH))


def is_secret_name(name: str) -> bool:
    """Return whether a value of this name counts as a secret."""
    match = _NAME.search(name)
    return match is not None and not match["weak"]


def _redact_random(text: str) -> str:
    """Return a text without the random values behind names that secrets have, and other values too."""
    pieces: list[str] = []
    copied = at = 0
    while (match := _ASSIGNED.search(text, at)) is not None:
        start, end = match.span("value")
        sign = match.start()
        if is_random(match["value"]) and _KEYLIKE.search(text, max(copied, sign - _MAX_KEYLIKE), sign):
            pieces += (text[copied:start], REDACTED)
            copied = at = end
        else:
            at = sign + 1
    return "".join((*pieces, text[copied:])) if pieces else text


def environment_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of environment variables that look like secrets, by their names or their shapes."""
    return tuple(value for name, value in environment.items() if _is_environment_secret(name, value))


def _is_environment_secret(name: str, value: str) -> bool:
    if len(value) < MIN_ENVIRONMENT or _MEANINGLESS.match(value) or _PLAIN.match(value):
        return False
    if is_secret_name(name.replace("_", "-").lower()) or is_secret_name(name):
        return True
    return redact_shapes(value, "") != value or REDACTED in redact(f"{name}={value}")


def _named_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the values that follow names of secrets, in order."""
    scanned = 0
    for at in _name_positions(text):
        name = _NAME.search(text, max(scanned, at - _BEFORE), at + 60) if at >= scanned else None
        if name is None:
            continue
        span = _value_span(text, name)
        if span is not None:
            yield span
        scanned = name.end() if span is None else span[1]


def _name_positions(text: str) -> list[int]:
    """Return the positions where the name of a secret may be, in order."""
    low = text.lower()
    if len(low) != len(text):  # some letters become two in lower case, which would shift positions
        low = "".join(c.lower() if c.isascii() else c for c in text)
    positions: list[int] = []
    for key in _NAME_PARTS:
        at = low.find(key)
        while at >= 0:
            positions.append(at)
            at = low.find(key, at + len(key))
    return sorted(positions)


def _value_span(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    at = name.end()
    # The name in a closing tag is followed by other text, not by its value.
    if _CLOSING.search(text, max(0, name.start() - 45), name.start()):
        return None
    for kind, between in enumerate(_BETWEEN):
        match = between.match(text, at)
        if match is not None and (kind != _LIST_ITEM or _is_listed(text, name.start(), match.end())):
            scheme = _SCHEME.match(text, match.end()) if name[0].lower() == "authorization" else None
            return _span(text, (scheme or match).end(), name, marked=kind in _MARKUP)
    match = _AFTER_OPTION.match(text, at)
    if match is not None and _is_option(text, name.start()):
        return _span(text, match.end(), name, marked=False)
    return _stated_span(text, at)


def _stated_span(text: str, at: int) -> tuple[int, int] | None:
    """Return the span of a secret that prose states, or None."""
    match = _STATED.match(text, at)
    if match is None:
        return None
    if match["quoted"] is not None:
        return None if _MEANINGLESS.match(match["quoted"]) else match.span("quoted")
    value = match["bare"].rstrip(".!?:")
    if len(value) < MIN_LENGTH or not _SECRET_LOOKING.match(value) or _HARMLESS.match(value):
        return None
    return match.start("bare"), match.start("bare") + len(value)


def _is_listed(text: str, at: int, behind: int) -> bool:
    """Return whether the item of a list at a place is an option, or has the item behind it as the other of a pair."""
    if _is_option(text, at):
        return True
    value = _QUOTED.match(text, behind) if _PAIR_BEGINS.search(text, max(0, at - 50), at) else None
    return value is not None and _PAIR_ENDS.match(text, value.end()) is not None


def _is_option(text: str, at: int) -> bool:
    return _OPTION.search(text, max(0, at - 45), at) is not None


def _span(text: str, at: int, name: re.Match[str], *, marked: bool) -> tuple[int, int] | None:
    least = 1
    if marked:
        match = (_CDATA if text.endswith("[CDATA[", 0, at) else _UNTIL_TAG).match(text, at)
    else:
        match = _QUOTED.match(text, at)
        if match is None:
            match, least = _BARE.match(text, at), MIN_LENGTH
    if match is None:
        return None
    value = match["value"].rstrip()
    if len(value) < least or _MEANINGLESS.match(value) or (name["token"] and _NUMBER.match(value)):
        return None
    if name["weak"] and (not _PASSWORD_LIKE.match(value) or _HARMLESS.match(value)):
        return None
    start = match.start("value")
    return start, start + len(value)


def _redact_below(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return redact(value)
    if not isinstance(value, dict | list | tuple):
        return value
    # Too deep to be searched, so it may contain secrets.
    if not levels:
        return REDACTED
    if isinstance(value, dict):
        return {
            key: REDACTED if _is_secret(key, item) else _redact_below(item, levels - 1) for key, item in value.items()
        }
    return [_redact_below(item, levels - 1) for item in value]


def _is_secret(key: Any, value: Any) -> bool:
    if isinstance(key, str) and key.lower() in _SHORT and isinstance(value, str | int) and not isinstance(value, bool):
        return _SHORT_VALUE.match(str(value)) is not None
    # Numbers named "token" are counts: `{"token": 7}`.
    name = _NAME.search(key) if isinstance(key, str) else None
    if name is not None and name["weak"]:
        return isinstance(value, str) and _PASSWORD_LIKE.match(value) is not None and not _HARMLESS.match(value)
    if name is None and isinstance(value, str) and isinstance(key, str):
        return is_random(value) and _ASSIGNED.fullmatch(f"={value}") is not None and _KEYLIKE.fullmatch(key) is not None
    if name is None or isinstance(value, bool | dict | list | tuple) or value is None or value == "":
        return False
    return isinstance(value, str) or not name["token"]


def _secrets_below(value: Any, named: bool, levels: int) -> Iterator[str]:
    if isinstance(value, str):
        if named and len(value) >= MIN_LENGTH:
            yield value
    elif levels and isinstance(value, dict):
        for key, item in value.items():
            yield from _secrets_below(item, _is_secret(key, item), levels - 1)
    elif levels and isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_below(item, named, levels - 1)
