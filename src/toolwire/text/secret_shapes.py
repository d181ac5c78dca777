"""Shapes of keys and tokens, by the services that issue them, and values that are too random to be words.

The table is data: a service that begins its tokens in a new way is one more row.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

_HEX32 = "[0-9a-f]{32}"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

PREFIXES: dict[str, tuple[str, ...]] = {
    "[-_][A-Za-z0-9_-]{16,}+": (
        *("sk", "pk", "rk"),  # OpenAI, Anthropic, OpenRouter, DeepSeek, Stripe, Clerk
        *("ghp", "gho", "ghu", "ghs", "ghr", "npm", "pypi", "rubygems", "hf", "api_org", "r8", "gsk", "xai", "pplx"),
        *("tvly", "nvapi", "csk", "pcsk", "jina", "e2b", "tgp_v1", "esecret", "napi"),
        *("glpat", "gldt", "glrt", "glcbt", "glptt", "glft", "glagent", "gloas", "glsoat", "glimt", "glffct"),
        *("dop_v1", "doo_v1", "dor_v1", "shpat", "shpca", "shppa", "shpss", "sq0atp", "sq0csp", "sq0idp"),
        *("lin_api", "lin_oauth", "ntn", "figd", "figo", "glc", "glsa", "sntrys", "sntryu", "sbp"),
        *("sb_secret", "pscale_tkn", "pscale_pw", "pscale_oauth", "dckr_pat", "dckr_oat", "nfp"),
        *("lsv2_pt", "lsv2_sk", "phx", "tskey", "sgp", "bkua", "CCIPAT", "CCIPRJ", "CFPAT", "PMAK", "HRKU", "BBDC"),
        *("duffel_test", "duffel_live", "shippo_live", "shippo_test", "rzp_live", "rzp_test", "FLWSECK"),
        *("xkeysib", "xsmtpsib", "NRAK", "NRJS", "NRII", "NRSP", "tfp", "rdme", "sm_pat", "tk-us"),
        *("squ", "sqp", "sqa", "fo1", "fm1", "fm2", "vcp", "vci", "vca", "ATTA", "aio", "fio-u"),
    ),
    r"[-_](?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{8}[A-Za-z0-9_]{8,}+": (
        *("fw", "fc", "rnd", "re", "secret", "pul", "pnu", "ico", "live_api"),  # words begin with these too
    ),
}
"""Beginnings of tokens, by the pattern of the rest."""

SHAPES: tuple[str, ...] = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Za-z])",  # AWS
    r"LTAI[A-Za-z0-9]{12,24}(?![0-9A-Za-z])",  # Alibaba
    r"AKID[A-Za-z0-9]{32}(?![0-9A-Za-z])",  # Tencent
    r"github_pat_[A-Za-z0-9_]{20,}+",  # GitHub
    r"GR1348941[A-Za-z0-9_-]{16,}+",  # GitLab
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}+|xapp-[0-9]-[A-Za-z0-9-]{10,}+|xwfp-[A-Za-z0-9-]{10,}+",  # Slack
    r"whsec_[A-Za-z0-9+/=]{16,}+",  # Stripe
    r"(?:SK|AC)[0-9a-f]{32}(?![0-9A-Za-z])",  # Twilio
    rf"key-{_HEX32}(?![0-9a-f])|{_HEX32}-[0-9a-f]{{8}}-[0-9a-f]{{8}}(?![0-9a-f])",  # Mailgun
    rf"{_HEX32}-us[0-9]{{1,2}}(?![0-9])",  # Mailchimp
    rf"dapi{_HEX32}(?:-[0-9])?",  # Databricks
    r"hv[bsr]\.[A-Za-z0-9_-]{20,}+|s\.[A-Za-z0-9]{24}(?![A-Za-z0-9])",  # Vault
    r"AGE-SECRET-KEY-1[0-9A-Z]{20,}+",  # age
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{20,}+",  # Doppler
    r"AIza[0-9A-Za-z_-]{30,}+|ya29\.[0-9A-Za-z_-]{20,}+|GOCSPX-[0-9A-Za-z_-]{16,}+",  # Google
    r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+",  # SendGrid
    r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+",  # JSON Web Token
    r"sk\.eyJ[A-Za-z0-9_-]{20,}+\.[A-Za-z0-9_-]{16,}+",  # Mapbox
    r"CLOJARS_[0-9a-f]{60}",  # Clojars
    r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",  # Airtable
    r"sl\.[A-Za-z0-9_-]{60,}+",  # Dropbox
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+",  # Discord
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}+",  # Terraform
    r"dt0[cs]01\.[A-Z0-9]{24}\.[A-Z0-9]{64}",  # Dynatrace
    r"AT(?:ATT3|CTT3|BB)[A-Za-z0-9_-]{24,}+",  # Atlassian
    r"EAA[AC][A-Za-z0-9_-]{56,}+",  # Meta, Square
    r"EZ[AT]K[A-Za-z0-9]{40,}+",  # EasyPost
    r"oy2[a-z0-9]{43}(?![A-Za-z0-9])",  # NuGet
    r"AKCp[A-Za-z0-9]{60,}+|cmVmd[A-Za-z0-9]{50,}+",  # Artifactory
    r"ops_eyJ[A-Za-z0-9_-]{40,}+",  # 1Password
    r"API-[A-Z0-9]{25,36}(?![A-Za-z0-9])",  # Octopus
    rf"access-(?:sandbox|development|production)-{_UUID}",  # Plaid
    rf"(?:api|sdk)-{_UUID}",  # LaunchDarkly
    r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}+",  # Cloudflare
    rf"11{_HEX32}(?![0-9A-Za-z])",  # Jenkins
    r"pa-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",  # Voyage
    rf"pat-(?:na|eu|ap)[0-9]-{_UUID}",  # HubSpot
    rf"{_HEX32}\.[A-Za-z0-9]{{16}}(?![A-Za-z0-9.])",  # Z.ai
    r"BSA(?=[A-Za-z_-]{0,20}[0-9])[A-Za-z0-9_-]{27}(?![A-Za-z0-9_-])",  # Brave
    r"a[ks]-(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{22}(?![A-Za-z0-9-])",  # Modal
    r"rpa_[A-Z0-9]{30,}+|opk-[0-9a-f]{32,}+|cio[A-Za-z0-9]{32}(?![A-Za-z0-9])",  # RunPod, OpenPipe, crates.io
    r"ATTA[0-9a-f]{64}|dG9rOj[A-Za-z0-9]{40,}+",  # Trello, Intercom
    r"bedrock-api-key-[A-Za-z0-9_-]{40,}+",  # AWS
    r"(?=[a-z0-9]{0,26}[A-Z])(?=[A-Za-z]{0,26}[0-9])[0-9A-Za-z]{27}_[0-9A-Za-z]{21}(?![0-9A-Za-z_])",  # ngrok
)
"""Other shapes, each as the pattern of a whole token."""

GUARDED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("whsec_", re.compile(r"whsec_[A-Za-z0-9+/=]{16,}+")),
    (
        "Q~",
        re.compile(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])"),
    ),  # Entra
    (":AA", re.compile(r"(?<![0-9])[0-9]{6,12}:AA[A-Za-z0-9_-]{30,40}(?![A-Za-z0-9_-])")),  # Telegram
    ("1//0", re.compile(r"(?<![A-Za-z0-9/])1//0[A-Za-z0-9_-]{30,}+")),  # Google refresh tokens
    *(
        (sign, re.compile(rf"{sign}[A-Za-z0-9+/]{{40,}}+={{0,2}}")) for sign in ("IQoJb3JpZ2lu", "FwoGZXIvYXdz", "ABSK")
    ),  # AWS
    *((sign, re.compile(rf"{sign}[A-Za-z0-9+/=_,-]{{40,}}+")) for sign in ("fm1r_", "fm2_")),  # Fly
    ("==", re.compile(r"(?<![A-Za-z0-9/+-])[A-Za-z0-9/+]{86}==(?![A-Za-z0-9/+=])")),  # Azure
    ("1/", re.compile(rf"(?<![\w/])1/[0-9]{{13,17}}:{_HEX32}(?![0-9a-f])")),  # Asana
    ("$2", re.compile(r"\$2[abxy]\$[0-9]{2}\$[A-Za-z0-9./]{53}")),  # hashes of passwords
    *(
        (sign, re.compile(rf"{re.escape(sign)}[A-Za-z0-9./=,$+-]{{24,}}+"))
        for sign in ("$apr1$", "$1$", "$5$", "$6$", "$y$", "$argon2")
    ),
    ("sha256~", re.compile(r"(?<![A-Za-z0-9])sha256~[A-Za-z0-9_-]{40,}+")),  # OpenShift
    ("$production$", re.compile(r"access_token\$production\$[0-9a-z]{10,20}\$[0-9a-f]{32}")),  # Braintree
    (".webhook.office.com/", re.compile(r"(?<=\.webhook\.office\.com/)[\w@/-]{30,}+")),
    ("Lines: ", re.compile(r"(?<=Private-Lines: )[0-9]{1,3}\s(?:[A-Za-z0-9+/=]{1,80}\s?){1,60}")),  # PuTTY
)
"""Shapes with other characters than words have, behind a text that each of their matches contains."""

_REST_OF_PREFIXES = "|".join(
    f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))}){rest}" for rest, names in PREFIXES.items()
)
_TOKEN = re.compile(rf"(?<![A-Za-z0-9])(?:{_REST_OF_PREFIXES}|{'|'.join(SHAPES)})")
_LONG = re.compile(r"[A-Za-z0-9_.-]{15,}+")
"""Every token is such a word, or part of one; few words are so long, so most text costs one search."""

_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+_.~-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")
_AWS_ENTROPY = 4.3
"""Entropy of a secret key of AWS, in bits a character; a path, or a hash in hexadecimal digits, has less."""
_AWS_CHANGES = 14
"""Changes between small letters, capital letters, digits and signs in such a key, at least."""
_ENTROPY = 3.6
"""Entropy of a random value, in bits a character."""
_HEX = re.compile(r"[0-9a-fA-F]+(?:-[0-9a-fA-F]+)*\Z")
_HEX_ENTROPY = 3.0
MIN_RANDOM = 16
"""Minimum length of a value that can be told from a word by its characters."""


def redact_shapes(text: str, instead: str) -> str:
    """Return a text with `instead` in place of everything that has the shape of a token."""
    for sign, pattern in GUARDED:
        if sign in text:
            text = pattern.sub(instead, text)
    text = _LONG.sub(lambda word: _TOKEN.sub(instead, word[0]), text)
    return _AWS_SECRET.sub(lambda word: instead if _is_aws_secret(word[0]) else word[0], text)


def _is_aws_secret(word: str) -> bool:
    # Words of a path have long runs of small letters; a key changes between the kinds of characters all the time.
    kinds = [(c.isupper(), c.islower(), c.isdigit()) for c in word]
    changes = sum(before != after for before, after in pairwise(kinds))
    return changes >= _AWS_CHANGES and any(map(str.isdigit, word)) and entropy(word) > _AWS_ENTROPY


def is_random(value: str) -> bool:
    """Return whether a value has characters as a random key has them, and not as words or dates."""
    if len(value) < MIN_RANDOM or not value.isascii() or not value.isprintable() or " " in value:
        return False
    if _HEX.match(value):
        return len(value) >= 2 * MIN_RANDOM and entropy(value) > _HEX_ENTROPY
    has_kinds = any(map(str.isdigit, value)) and any(map(str.isupper, value)) and any(map(str.islower, value))
    return has_kinds and entropy(value) > _ENTROPY


def entropy(text: str) -> float:
    """Return the entropy of a text by the counts of its characters, in bits a character."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
