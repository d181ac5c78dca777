"""What a content is, by name and by text."""

import json

import pytest

from toolwire.envelope.content_type import content_type

LOG = "2026-11-21 10:00:00 starting\n  more of it\n2026-11-21 10:00:01 done\n"


@pytest.mark.mission("G17")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a/b.py", "python"), ("b.PYI", "python"), ("x.tsx", "typescript"), ("main.rs", "rust"), ("a.h", "c"),
        ("x.jsonl", "jsonl"), ("Makefile", "makefile"), ("deep/Dockerfile", "dockerfile"), ("a.tar.gz", "binary"),
        ("notes.txt", "text"), ("server.log", "log"), ("README.md", "markdown"), ("a.unknown", "text"), ("", "text"),
        (".py", "text"), ("noending", "text"),
    ],
)  # fmt: skip
def test_content_types_are_guessed_from_names(name: str, kind: str) -> None:
    assert content_type("x = 1\n", name) == kind


@pytest.mark.mission("G17")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "text"),
        ("plain words\n", "text"),
        (LOG, "log"),
        ("[INFO] a\n[ERROR] b\n", "log"),
        ("Nov 21 10:00:00 host sshd[1]: x\nNov 21 10:00:02 host sshd[1]: y\n", "log"),
        ("10:00:00 a\nb\nc\nd\n10:00:01 e\n", "log"),
        ("10:00:00 a\nb\nc\nd\ne\n10:00:01 f\n", "text"),  # the sixth line is not looked at
        ("2026-11-21 10:00:00 only one\nb\n", "text"),
        ("INFORMATION is power\nERRORS are human\n", "text"),
        ('{"a": [1, 2]}', "json"),
        ("  [1, 2]\n", "json"),
        ("[INFO]", "text"),
        ("{not json}", "text"),
        ("[" * 5_000 + "]" * 5_000, "text"),  # deeper than can be read
        (json.dumps(["x" * 100] * 1_000), "json"),
        ("{" + "x" * 100_000 + "}", "text"),
    ],
)
def test_content_types_are_guessed_from_text(text: str, kind: str) -> None:
    assert content_type(text) == kind


def test_the_text_counts_if_the_name_is_unknown() -> None:
    assert content_type(LOG, "output") == "log"
