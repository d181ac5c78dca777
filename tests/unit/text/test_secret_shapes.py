"""Tokens of services are recognised by their shapes, and words, hashes and paths are not."""

import random
import string

import pytest

from toolwire.envelope.usage_log import redacted
from toolwire.text.redaction import REDACTED, environment_secrets, redact, redact_value
from toolwire.text.secret_shapes import is_random

_random = random.Random(7)
ALL, HEX, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_uppercase + string.digits


def some(count: int, letters: str = ALL) -> str:
    return (
        "".join(_random.choices(letters, k=count - 2)) + "a1"
        if letters is HEX
        else "aB1" + "".join(_random.choices(letters, k=count - 3))
    )


def upper(count: int) -> str:
    return "".join(_random.choices(UPPER, k=count))


UUID = "123e4567-e89b-12d3-a456-426614174abc"
TOKENS = [
    *(f"{name}-{some(20)}" for name in ("glpat", "gldt", "glrt", "glptt", "glft", "glsoat", "glcbt", "glagent")),
    *(f"{name}_{some(36)}" for name in ("ghp", "gho", "npm", "hf", "gsk", "lin_api", "ntn", "figd", "dckr_pat")),
    *(f"{name}_{some(43)}" for name in ("secret", "re", "rnd", "fw", "tskey", "jina", "nfp", "sbp", "pcsk", "r8")),
    *(f"{name}-{some(32, HEX)}" for name in ("key", "pul", "fc", "xkeysib", "PMAK", "BBDC")),
    f"xapp-1-A0123-{some(30)}",
    f"xoxe.xoxp-1-{some(40)}",
    f"whsec_{some(32)}",
    f"whsec_{some(20)}+/{some(10)}=",
    f"SK{some(32, HEX)}",
    f"{some(32, HEX)}-1a2b3c4d-5e6f7a8b",
    f"{some(32, HEX)}-us12",
    f"abC8Q~{some(34)}",
    f"123456789:AA{some(33)}",
    f"dapi{some(32, HEX)}-2",
    f"hvs.{some(90)}",
    f"AGE-SECRET-KEY-1{upper(58)}",
    f"dp.pt.{some(43)}",
    f"sk.eyJ1{some(40)}.{some(22)}",
    "CLOJARS_" + "0123456789abcdef" * 3 + "0123456789ab",
    f"pat{some(14)}.{some(64, HEX)}",
    f"sl.{some(130)}",
    f"M{some(25)}.{some(6)}.{some(38)}",
    f"{some(14)}.atlasv1.{some(67)}",
    f"dt0c01.{upper(24)}.{upper(64)}",
    f"ATATT3{some(60)}",
    f"EAAC{some(80)}",
    f"EZAK{some(54)}",
    f"AKCp{some(69)}",
    f"LTAI{some(20)}",
    f"AKID{some(32)}",
    f"1//0{some(40)}",
    f"sha256~{some(43)}",
    f"access-production-{UUID}",
    f"sdk-{UUID}",
    f"ops_eyJ{some(60)}",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    f"pa-{some(43)}",
    f"pat-na1-{UUID}",
    f"{some(32, HEX)}.{some(16)}",
    f"BSA1{some(26)}",
    f"ak-1{some(21)}",
    f"rpa_{some(36).upper()}",
    f"opk-{some(32, HEX)}",
    f"cio{some(32)}",
    f"ATTA{some(64, HEX)}",
    f"dG9rOj{some(48)}",
    f"bedrock-api-key-{some(60)}",
    f"{some(26)}7_{some(21)}",
    f"IQoJb3JpZ2lu{some(60)}/+{some(20)}==",
    f"ABSK{some(40)}+{some(20)}=",
    f"fm2_{some(40)}+/{some(20)}=",
    f"{some(40)}/+{some(44)}==",
    f"1/1234567890123456:{some(32, HEX)}",
    f"$2b$12${some(53)}",
    f"$apr1${some(8)}${some(22)}",
    f"$6${some(8)}${some(86)}",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----",
]


@pytest.mark.parametrize("token", TOKENS, ids=[token[:10] for token in TOKENS])
def test_a_token_is_redacted_wherever_it_is(token: str) -> None:
    assert redact(token) == REDACTED or token.startswith("xoxe.")
    for text in (f"got {token} here", f'{{"value": "{token}"}}', f"X={token}"):
        assert token[-12:] not in redact(text)
    if "\n" not in token:
        assert token[-12:] not in redacted(f"echo {token}", 1_000)


@pytest.mark.parametrize(
    "text",
    [
        "KEY=-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAA\n-----END OPENSSH PRIVATE KEY-----",
        "FLY_API_TOKEN=FlyV1 fm2_b3BlbnNzaC1rZXktdjEAAAAb3BlbnNzaC1rZXktdjEAAAA==,fm2_x",
        "machine example.com login me password b3BlbnNzaC1rZXktdjEAAAA",
        "docker login -u me -p b3BlbnNzaC1rZXktdjEAAAA example.com",
        "client-key-data: b3BlbnNzaC1rZXktdjEAAAA",
    ],
)
def test_a_secret_behind_other_words_is_redacted_whole(text: str) -> None:
    assert "b3BlbnNzaC1rZXktdjEAAAA" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "re-authentication-of-the-account is needed, secret-management-of-the-team too",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "src/toolwire/providers/chat_completions/Decoder2Stream3/a1/",
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ1234",  # as long as a key of AWS, and as random, but in runs
        f"request {UUID} took 3.2 s",
        "primary_key=customer_identifier_1, cache-key: user-profile-2024-01-31-page-2",
        "key = lambda item: item.position_in_file",
        "sort_key=CamelCaseNameOfSomething",
        "keyboard: QwertzLayoutForGermany2024Edition",
        "https://example.com/a/very/long/path/with/Words/And1234567/numbers.html",
        "chrome --disable-background-networking, -utf8decodingof_long_text",
        "_private_helper_function_name and -a1b2c3d4e5f6_of_other_things",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    ['"sig": "{}"', "LICENSE_KEY={}", "hash_salt: '{}'", "db_pw={}", "signingSalt={}", "webhook: {}", "dsn={}"],
)
def test_a_random_value_behind_a_name_of_keys_is_redacted(text: str) -> None:
    value = "q8Zr2LkVb0Xy5TnW3eUa"
    assert value not in redact(text.format(value))
    assert value not in str(redact_value({"signature": value, "primary_key": value}))
    assert redact_value({"primary_key": "customer"}) == {"primary_key": "customer"}


def test_random_values_are_told_from_words() -> None:
    assert is_random("q8Zr2LkVb0Xy5TnW3eUa")
    assert is_random("0f3a9c71d2b84e65a0c9e8d7f6b51423")
    assert not any(map(is_random, ("customer_identifier_1", "q8Zr2", "A1a" * 8, "00000000000000000000000000000001")))
    # 15 characters, half of a hexadecimal key, and each kind of character that keys do not have
    others = ("aB1cD2eF3gH4iJ5", "0f3a9c71d2b84e65a0c9e8d7f6b5142", "q8Zr2LkVb0 y5TnW3eUa", "q8Zr2LkVb0üy5TnW3eUa")
    assert not any(map(is_random, (*others, "q8Zr2LkVb0\ty5TnW3eUa")))
    assert is_random("aB1cD2eF3gH4iJ5k")
    # without digits, capital letters or small letters
    assert not any(map(is_random, ("qwZrxLkVbdXyzTnWreUa", "q8zr2lkvb0xy5tnw3eua", "Q8ZR2LKVB0XY5TNW3EUA")))


def test_secrets_of_the_environment() -> None:
    environment = {
        "OPENAI_API_KEY": "not-of-any-shape-99",
        "DB_PASSWORD": "correct horse 7",
        "DATABASE_URL": "postgres://me:hunter2@db/x",
        "THING": "ghp_" + "x9" * 18,
        "LICENSE_KEY": "q8Zr2LkVb0Xy5TnW3eUa",
        "PATH": "/usr/bin:/bin",
        "SSH_AUTH_SOCK": "/tmp/ssh/agent.1",
        "HOME": "/root",
        "API_KEY_FILE": "/run/secrets/key",
        "PASSWORD": "short",
        "TOKENIZERS_PARALLELISM": "disabled",
        "EDITOR": "code --wait",
        "OLDPWD": "7 letters",
        "DB_PWD": "correct horse 8",
        "GITHUB_TOKENS": "one, two 9",
    }
    assert environment_secrets({"PASSWORD": "horse 7"}) == ()
    assert environment_secrets({"PASSWORD": "horses 7"}) == ("horses 7",)
    names = {"DB_PWD", "GITHUB_TOKENS", "OPENAI_API_KEY", "DB_PASSWORD", "DATABASE_URL", "THING", "LICENSE_KEY"}
    assert set(environment_secrets(environment)) == {environment[name] for name in names}
