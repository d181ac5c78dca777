"""Secrets are redacted in every kind of text, and other text is unchanged."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

import toolwire
from toolwire.errors import RenderError
from toolwire.text.redaction import MAX_DEPTH, REDACTED, is_secret_name, redact, redact_value, secrets_in

KEY = "sk-" + "a1B2" * 6
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("password=hunter2", "password=[redacted]"),
        ("PASSWORD = 'hunter 2' next", "PASSWORD = '[redacted]' next"),
        ('{"api_key": "a\\"b c", "n": 1}', '{"api_key": "[redacted]", "n": 1}'),
        (r'{"a": "{\"password\": \"hunt er\"}"}', r'{"a": "{\"password\": \"[redacted]\"}"}'),
        ("export DB_PASSWORD=hunter2; ls", "export DB_PASSWORD=[redacted]; ls"),
        ("x-api-key: abcdef", "x-api-key: [redacted]"),
        ("apiKey: abcdef, accessToken: 'ghij'", "apiKey: [redacted], accessToken: '[redacted]'"),
        ("Authorization: Bearer abcdefgh", "Authorization: Bearer [redacted]"),
        ("Cookie: session=abcdef; path=/", "Cookie: [redacted]; path=/"),
        ("Pwd=hunter2;Server=db", "Pwd=[redacted];Server=db"),
        ("login --password hunter2 --verbose", "login --password [redacted] --verbose"),
        ("login --api-key=hunter2", "login --api-key=[redacted]"),
        ("['login', '--token', 'hunter2']", "['login', '--token', '[redacted]']"),
        ("password: 12345678", "password: [redacted]"),
        ("password: abcd", "password: [redacted]"),
        ("password: abc", "password: abc"),
        ("password='x'", "password='[redacted]'"),
        ("<password>ab</password> is <b>it</b>", "<password>[redacted]</password> is <b>it</b>"),
        ("<password><![CDATA[a<b]]></password>", "<password><![CDATA[[redacted]]]></password>"),
        ('<arg name="password">hunter2</arg>', '<arg name="password">[redacted]</arg>'),
        ("<parameter=secret>\nhunter2\n</parameter>", "<parameter=secret>\n[redacted]\n</parameter>"),
        ("postgres://me:hunter2@db/x", "postgres://[redacted]@db/x"),
        (f"the key is {KEY}.", "the key is [redacted]."),
        (f"a_{KEY}", "a_[redacted]"),
        ("AKIAABCDEFGHIJKLMNOP", REDACTED),
        ("ghp_" + "x" * 30, REDACTED),
        ("xoxb-1234567890-abc", REDACTED),
        ("AIza" + "x" * 35, REDACTED),
        (f"got {JWT} back", "got [redacted] back"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- end", "[redacted] end"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", REDACTED),
        ("curl -u bob:hunter2 https://x", "curl -u bob:[redacted] https://x"),
        ("curl -sSu 'bob:hunter2' x", "curl -sSu 'bob:[redacted]' x"),
        ("curl -L --user=bob:hunter2 x; ls", "curl -L --user=bob:[redacted] x; ls"),
        ("['curl', '-u', 'bob:hunter2']", "['curl', '-u', 'bob:[redacted]']"),
        ("['sshpass', '-p', 'hunter2']", "['sshpass', '-p', '[redacted]']"),
        ("mysql -uroot -phunter2 db", "mysql -uroot -p[redacted] db"),
        ("mariadb -uroot -phunter2 db", "mariadb -uroot -p[redacted] db"),
        ("mysqldump -h db -p'hunter2' shop", "mysqldump -h db -p'[redacted]' shop"),
        ("sshpass -p hunter2 ssh x", "sshpass -p [redacted] ssh x"),
        ("sshpass -phunter2 ssh x", "sshpass -p[redacted] ssh x"),
        ("passwd hunter2", "passwd [redacted]"),
        ("the password is hunter2secret.", "the password is [redacted]."),
        ("My password for bob is: hunter2", "My password for bob is: [redacted]"),
        ("the passphrase is 'correct horse'", "the passphrase is '[redacted]'"),
        ("The API key was set to ab12cd34, then", "The API key was set to [redacted], then"),
        ("GOCSPX-abcdefghijklmnop1234567", REDACTED),
        ("at https://hooks.slack.com/services/T0/B0/abcdefgh", "at https://hooks.slack.com/services/[redacted]"),
        ("https://x.org/a?se=1&sig=abcDEF123456%3D&sp=r", "https://x.org/a?se=1&sig=[redacted]&sp=r"),
        ("https://x.org/a?X-Amz-Signature=0123456789abcdef01", "https://x.org/a?X-Amz-Signature=[redacted]"),
        ("https://x.org/a?X-Goog-Signature=0123456789abcdef01", "https://x.org/a?X-Goog-Signature=[redacted]"),
        ("at https://api.telegram.org/bot123456:abcdefghijklmnop/x", "at https://api.telegram.org/bot[redacted]/x"),
        ("x.com/api/webhooks/123456/abcdefghijklmnop-1", "x.com/api/webhooks/123456/[redacted]"),
        ("Basic dXNlcjpwYXNzd29yZA==", "Basic [redacted]"),
        *((f"{name}: 123456", f"{name}: [redacted]") for name in ("pin", "PIN", "Pin", "otp", "OTP", "Otp")),
        ('{"pin": "1234", "n": 1}', '{"pin": "[redacted]", "n": 1}'),
        (r'{"a": "{\"pin\": 123456}"}', r'{"a": "{\"pin\": [redacted]}"}'),
        ("<parameter=pin>\n1234\n</parameter>", "<parameter=pin>\n[redacted]\n</parameter>"),
        *(
            (f"{name}: hunter2", f"{name}: [redacted]")
            for name in (
                *("Passwort", "Kennwort", "contraseña", "mot de passe", "senha", "wachtwoord", "hasło", "lösenord"),
                *(
                    "şifre",
                    "Пароль",
                    "密码",
                    "密碼",
                    "口令",
                    "パスワード",
                    "비밀번호",
                    "DB_PASS",
                    "ansible_ssh_pass",
                    "psk",
                    "pass",
                ),
            )
        ),
        ("密码：hunter2", "密码：[redacted]"),
        ("**Password:** `hunter2`, **secret**: hunter2", "**Password:** `[redacted]`, **secret**: [redacted]"),
        ("password: |\n  hunter2\n", "password: |\n  [redacted]\n"),
        ("password: >-\n  hunter2\n", "password: >-\n  [redacted]\n"),
        ('password = """hunter2"""', 'password = """[redacted]"""'),
        ('{"name": "password", "value": "hunter2"}', '{"name": "password", "value": "[redacted]"}'),
        ("- name: DB_PASSWORD\n  value: hunter2", "- name: DB_PASSWORD\n  value: [redacted]"),
        ('<add key="password" value="hunter2"/>', '<add key="password" value="[redacted]"/>'),
        ("Authorization: ApiKey abcdefgh1", "Authorization: ApiKey [redacted]"),
        ("authorization: SSWS abcdefgh1; next", "authorization: SSWS [redacted]; next"),
        (
            "[['x-api-key', 'hunter2'], ('password', 'a b')]",
            "[['x-api-key', '[redacted]'], ('password', '[redacted]')]",
        ),
        ("[(b'authorization', b'hunter2')]", "[(b'authorization', b'[redacted]')]"),
        ("git clone https://abcdefghij1234567890@x.org/r", "git clone https://[redacted]@x.org/r"),
        ("CREATE USER u IDENTIFIED BY 'hunter2'", "CREATE USER u IDENTIFIED BY '[redacted]'"),
        ("ALTER USER u WITH PASSWORD 'hunter2'; x", "ALTER USER u WITH PASSWORD '[redacted]'; x"),
        ('#define PASSWORD "hunter2"', '#define PASSWORD "[redacted]"'),
        ("openssl rsa -passin pass:hunter2 -in k", "openssl rsa -passin pass:[redacted] -in k"),
    ],
)
def test_secrets_are_redacted(text: str, clean: str) -> None:
    assert redact(text) == clean
    assert redact(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The password must be long.",
        "max_tokens: 100, total_tokens=7",
        "token: 12",
        "author: Bob Smith; secretary: Alice",
        "tokenizer: bert-base",
        "password: true, secret: null",
        '{"type": "string", "description": "The password of the user."}',
        "PWD=/home/me",
        "<label>Password</label><input>",
        "task-list-with-a-long-name and sk-short",
        "keyboard: qwerty; monkey=banana",
        "key: value",
        "see https://example.org/a:b?c=d@e",
        "İstanbul password",
        "The password is required. The token is read-only, the secret is base64 and the key is 32 bytes long.",
        "The password is 8 characters long; a passcode is 4-digit, a secret is 16-byte, the token is utf-8.",
        "The password is 12-16 characters, and the cookie is set. The token is at https://example.org/t1.",
        "the access key is in ~/.aws/config2; the password is hashed with sha256",
        "the password is sent to bob@example.org, the secret is ${SECRET1}",
        "docker run -u 1000:1000 alpine; chown -R me:me x",
        "curl -o a:b https://example.org:8080/x -H 'Accept: text/html'",
        "curl https://example.org | sudo -u bob:x",
        "mysql -p shop; mysql -P 3306 --port=3306; mysql --protocol=tcp; mkdir -pv a",
        "passwd root; cat /etc/passwd file1; passwd --lock user1",
        "sig=1; a?signature=yes&sigma=abcdefghijklmnop",
        '{"pin": 13, "spin": 1234, "pins": [1234], "pin": "A0"}',
        "pinned: 1234; opinion=12345; pin 1234",
        "pass: 1234, fail: 2; first_pass = quick; pass=12-16; bypass: hunter2; pass: 30seconds; desenha: abc123",
        "https://docs@example.org and the name of the value: 5",
        "('user', 'password', 'email'), ['secret', 'email', 1], ['password', email]",
        "see https://hooks.slack.com/docs",
    ],
)
def test_text_without_secrets_is_unchanged(text: str) -> None:
    assert redact(text) == text


def test_names_of_secrets_are_recognised_by_their_words() -> None:
    secret = ("password", "userPassword", "API_KEY", "x-api-key", "auth", "client_secret", "refresh_token", "Cookie")
    assert [name for name in secret if not is_secret_name(name)] == []
    plain = ("pass", "author", "tokens", "max_tokens", "key", "monkey", "path", "secretary")
    assert [name for name in plain if is_secret_name(name)] == []


@toolwire.tool
def login(user: str, password: str, options: dict[str, str]) -> str:
    """Logs in."""
    return "ok"


@pytest.mark.parametrize("format", toolwire.formats())
def test_secret_arguments_are_redacted_in_every_wire_format(format: str) -> None:
    call = toolwire.ToolCall("login", {"user": "ubert", "password": "hunter2xx", "options": {"api_key": "zzz999qq"}})
    try:
        text = toolwire.render_calls([call], format=format, tools=[login])
    except RenderError:
        return  # it has no calls
    clean = redact(text)
    assert ("hunter2xx" in text, "hunter2xx" in clean) == (True, False)
    assert ("zzz999qq" in text, "zzz999qq" in clean) == (True, False)
    assert "ubert" in clean
    assert clean.count(REDACTED) == 2


def test_known_secrets_are_redacted_everywhere() -> None:
    known = secrets_in({"password": "correct horse", "list": [{"token": "staple!"}], "user": "me", "secret": "ab"})
    assert known == ("correct horse", "staple!")
    assert redact("I typed correct horse, then staple!, ab.", known) == "I typed [redacted], then [redacted], ab."


@pytest.mark.parametrize("secret", ['qu"ote\\d', "schlüssel", "schlüs sel", "line\nbreak", "plain99"])
def test_known_secrets_are_redacted_as_json_writes_them(secret: str) -> None:
    for text in (secret, json.dumps(f"<{secret}>"), json.dumps(f"<{secret}>", ensure_ascii=False)):
        assert redact(text, (secret,)).strip('"') in ("[redacted]", "<[redacted]>")


@pytest.mark.parametrize(
    "written",
    [
        "zq-L<ve+b\\/7'd2=m&Xw(8)",  # json_encode of PHP
        "zq-L\\u003cve+b/7'd2=m\\u0026Xw(8)",  # json.Marshal of Go
        "zq-L\\u003Cve\\u002Bb/7\\u0027d2=m\\u0026Xw(8)",  # System.Text.Json
        "zq-L%3Cve%2Bb/7%27d2%3Dm%26Xw%288%29",  # urllib
        "zq-L%3cve%2bb/7%27d2%3dm%26Xw%288%29",
        "zq-L%3Cve%2Bb%2F7'd2%3Dm%26Xw(8)",  # encodeURIComponent
        "zq-L%3Cve+b/7'd2=m&Xw(8)",  # encodeURI
        "zq-L&lt;ve+b/7'd2=m&amp;Xw(8)",  # HTML, in text and in an attribute
        "zq-L&lt;ve+b/7&#x27;d2=m&amp;Xw(8)",
    ],
)
def test_known_secrets_are_found_in_the_escapes_of_common_encoders(written: str) -> None:
    assert redact(f"it was {written}.", ["zq-L<ve+b/7'd2=m&Xw(8)"]) == "it was [redacted]."


@pytest.mark.parametrize("before", ["", "a", "us", "usr", "user:"])
@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(lambda data: base64.b64encode(data).decode(), id="base64"),
        pytest.param(lambda data: base64.urlsafe_b64encode(data).decode(), id="base64 of URLs"),
        pytest.param(lambda data: data.hex(), id="hexadecimal"),
        pytest.param(lambda data: data.hex().upper(), id="hexadecimal in capitals"),
        pytest.param(lambda data: quote(data, safe=""), id="percent"),
        pytest.param(
            lambda data: quote(data, safe="").replace("%3F", "%3f").replace("%3E", "%3e"), id="percent, small"
        ),
    ],
)
def test_known_secrets_are_redacted_as_they_are_encoded(encode: Callable[[bytes], str], before: str) -> None:
    secret = "Zq8>1Lk?mP0xY7u"
    written = encode(f"{before}{secret}".encode())
    clean = redact(f"it is {written}!", (secret,))
    assert REDACTED in clean
    assert not any(written[at : at + 6] in clean for at in range(len(encode(before.encode())), len(written) - 5))


def wrapped(digits: bytes) -> bytes:
    return b"\n".join(digits[at : at + 40] for at in range(0, len(digits), 40))


@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(base64.b32encode, id="base32"),
        pytest.param(lambda data: base64.b32encode(data).lower(), id="small base32"),
        pytest.param(base64.encodebytes, id="base64"),
        pytest.param(lambda data: base64.encodebytes(data).replace(b"\n", b"\\n"), id="base64 in JSON"),
        pytest.param(lambda data: base64.encodebytes(data).replace(b"\n", b"\\\\r\\\\n  "), id="base64 in JSON twice"),
        pytest.param(
            lambda data: b"\n".join(base64.b32encode(data)[at : at + 40] for at in range(0, 400, 40)), id="wrapped"
        ),
        pytest.param(lambda data: b"\n".join(data.hex().encode()[at : at + 60] for at in range(0, 900, 60)), id="hex"),
    ],
)
def test_known_secrets_are_redacted_across_lines_of_digits(encode: Callable[[bytes], bytes], before: int) -> None:
    secret = "Zq8>1Lk?mP0xY7u"
    written = encode(f"{'.' * (before + 40)}{secret}{'.' * 40}".encode()).decode()
    clean = redact(f"it is\n{written}\n!", (secret,))
    assert clean.count(REDACTED) == 1
    assert len(clean) <= len(f"it is\n{written}\n!") - 18 + len(REDACTED)  # the digits that depend on it alone
    assert clean.endswith("\n!")


@pytest.mark.parametrize(
    "each",
    [
        *("\\x{:02x}", "\\x{:02X}", "\\u{:04x}", "%{:02X}", "\\{:03o}", "{:02x} "),
        *("{:02X}:", "0x{:02x}, ", "{}, ", "&#{};", "&#x{:x};"),
    ],
)
def test_known_secrets_are_redacted_byte_by_byte(each: str) -> None:
    secret = "Zq8>1Lk?mP0xY7u"
    clean = redact(f"it is {''.join(each.format(byte) for byte in secret.encode())}", (secret,))
    assert clean.startswith("it is [redacted]")
    assert len(clean) < 20


def test_short_secrets_are_not_searched_for_in_encodings() -> None:
    assert redact("it is \\x70\\x69\\x6e", ("pin",)) == "it is \\x70\\x69\\x6e"
    assert redact("70696e3031", ("pin01",)) == "70696e3031"


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_values_are_searched_down_to_the_last_level(wrap: Callable[[object], object]) -> None:
    def nested(inner: object, levels: int) -> object:
        for _ in range(levels):
            inner = wrap(inner)
        return inner

    assert redact_value(nested("text", MAX_DEPTH)) == nested("text", MAX_DEPTH)
    assert redact_value(nested("text", MAX_DEPTH + 1)) == nested(REDACTED, MAX_DEPTH)


def test_short_numbers_without_a_name_are_kept() -> None:
    assert redact_value({"": "1234", "otp": "1234"}) == {"": "1234", "otp": REDACTED}


def test_secrets_in_nested_values_are_redacted() -> None:
    value = {
        "password": "x",
        "pin_token": 1234,
        "nested": [{"api_key": "y", "flag": True}, "password=hunter2"],
        "secret": {"value": "kept, since its own name says nothing"},
        "passcode": 1234,
        "pin": "1234",
        "PIN": 123456,
        "Pin": 13,
    }
    assert redact_value(value) == {
        "password": REDACTED,
        "pin_token": 1234,
        "nested": [{"api_key": REDACTED, "flag": True}, "password=[redacted]"],
        "secret": {"value": "kept, since its own name says nothing"},
        "passcode": REDACTED,
        "pin": REDACTED,
        "PIN": REDACTED,
        "Pin": 13,
    }
    deep: object = "password=hunter2"
    for _ in range(MAX_DEPTH * 3):
        deep = [deep]
    assert "hunter2" not in json.dumps(redact_value(deep))


@pytest.mark.parametrize(
    "piece",
    [
        "password", "password=", 'password: "', "--token ", "<", "-----BEGIN PRIVATE KEY-----", "sk-", "://a:", "\\",
        'password a="b"', "password<", "tokenA_", "secret </a><b>", "eyJaaaaaaaaaa.", "key key_", "bearer ",
        "curl ", "curl -u ", "curl -u a", "mysql -", "mysql -p'", "sshpass -v ", "passwd ",
        "password is ", "password for a ",
        "pin\": ", "pin: ", "&sig=", "hooks.slack.com/services/", "password is 1", "=", "=a",
    ],
)  # fmt: skip
def test_redaction_of_long_hostile_text_takes_linear_time(piece: str) -> None:
    redact(piece * (200_000 // len(piece)))


def test_a_value_under_a_weak_name_is_a_secret_only_if_it_looks_like_a_password() -> None:
    values = {"db_pass": "hunter2", "first_pass": "quick", "pass": 12345678, "second_pass": "30seconds"}
    assert redact_value(values) == {**values, "db_pass": REDACTED}
