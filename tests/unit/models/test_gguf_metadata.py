"""Chat templates and special tokens are read from GGUF files, wherever they are and however a file is damaged."""

import struct
from pathlib import Path

import pytest

from toolwire.models.local.gguf_metadata import MAX_TEXT, read_metadata

TEMPLATE = "{% for message in messages %}<tool_call>Grüße{% endfor %}"


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, *items: bytes) -> bytes:
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def gguf(*entries: bytes, version: int = 3, magic: bytes = b"GGUF") -> bytes:
    return magic + struct.pack("<IQQ", version, 7, len(entries)) + b"".join(entries)


NAME = entry("general.name", 8, text("own"))
COUNT = entry("llama.block_count", 4, struct.pack("<I", 32))
RATE = entry("rope.freq_base", 12, struct.pack("<d", 1e6))
VOCABULARY = entry("tokenizer.ggml.tokens", 9, array(8, text("<s>"), text("x" * 10_000), text("")))
SCORES = entry("tokenizer.ggml.scores", 9, array(6, *[struct.pack("<f", 0.5)] * 5_000))
FLAG = entry("tokenizer.ggml.add_bos_token", 7, b"\1")
CHAT = entry("tokenizer.chat_template", 8, text(TEMPLATE))
WHOLE = gguf(NAME, COUNT, RATE, VOCABULARY, SCORES, FLAG, CHAT)


def template_of(folder: Path, data: bytes) -> str:
    path = folder / "own.gguf"
    path.write_bytes(data)
    return read_metadata(path).chat_template


@pytest.mark.parametrize("entries", [(CHAT,), (NAME, COUNT, RATE, VOCABULARY, SCORES, FLAG, CHAT), (CHAT, NAME)])
def test_template_is_found_among_values_of_all_kinds(tmp_path: Path, entries: tuple[bytes, ...]) -> None:
    assert template_of(tmp_path, gguf(*entries) + b"weights") == TEMPLATE


@pytest.mark.parametrize(
    "data",
    [
        b"",
        gguf(NAME, COUNT),
        gguf(CHAT, version=1),
        gguf(CHAT, magic=b"GGML"),
        gguf(entry("odd", 99, b""), CHAT),
        gguf(entry("nested", 9, array(9, array(4))), CHAT),
        gguf(entry("long", 9, struct.pack("<IQ", 4, 2**60)), CHAT),
        gguf(entry("endless", 8, struct.pack("<Q", 2**63)), CHAT),
        gguf(entry("tokenizer.chat_template", 8, struct.pack("<Q", 2**40))),
        gguf(entry("tokenizer.chat_template", 4, struct.pack("<I", 1))),
    ],
    ids=str,
)
def test_file_without_a_readable_template_has_none(tmp_path: Path, data: bytes) -> None:
    assert template_of(tmp_path, data) == ""


def test_file_that_ends_anywhere_in_its_metadata_has_none(tmp_path: Path) -> None:
    small = gguf(NAME, COUNT, FLAG, CHAT)
    assert {template_of(tmp_path, small[:end]) for end in range(len(small))} == {""}
    assert read_metadata(tmp_path / "missing.gguf") == ("", frozenset())


def tokens_of(folder: Path, *entries: bytes) -> frozenset[str]:
    path = folder / "own.gguf"
    path.write_bytes(gguf(*entries))
    return read_metadata(path).control_tokens


def test_template_behind_a_longer_text_is_read(tmp_path: Path) -> None:
    tokenizer = entry("tokenizer.huggingface.json", 8, text(b"x" * (MAX_TEXT + 1)))
    assert template_of(tmp_path, gguf(NAME, tokenizer, CHAT)) == TEMPLATE


TOKENS = entry("tokenizer.ggml.tokens", 9, array(8, *map(text, ("Hello", "<｜call｜>", "<tool_call>", "</s>"))))
TYPES = entry("tokenizer.ggml.token_type", 9, array(5, *(struct.pack("<i", kind) for kind in (1, 3, 4, 3))))


@pytest.mark.parametrize("entries", [(TOKENS, SCORES, TYPES), (TYPES, NAME, TOKENS, CHAT)])
def test_control_tokens_are_those_of_their_type(tmp_path: Path, entries: tuple[bytes, ...]) -> None:
    assert tokens_of(tmp_path, *entries) == {"<｜call｜>", "</s>"}


@pytest.mark.parametrize(
    "entries",
    [
        (TOKENS,),
        (TYPES, CHAT),
        (TOKENS, entry("tokenizer.ggml.token_type", 9, struct.pack("<IQ", 5, 4))),
        (TOKENS, entry("tokenizer.ggml.token_type", 4, struct.pack("<I", 3))),
        (entry("tokenizer.ggml.tokens", 8, text("</s>")), TYPES),
        (TOKENS, entry("tokenizer.ggml.token_type", 9, array(8, text("control")))),
    ],
    ids=["no types", "no tokens", "cut", "one number", "one text", "types as text"],
)
def test_vocabulary_that_cannot_be_read_has_no_control_tokens(tmp_path: Path, entries: tuple[bytes, ...]) -> None:
    assert tokens_of(tmp_path, *entries) == frozenset()


def test_damage_behind_a_value_does_not_lose_it(tmp_path: Path) -> None:
    path = tmp_path / "own.gguf"
    damaged = entry("odd", 99, b"")
    path.write_bytes(gguf(CHAT, damaged, TOKENS, TYPES))
    assert read_metadata(path) == (TEMPLATE, frozenset())
    path.write_bytes(gguf(TYPES, TOKENS, damaged, CHAT))
    assert read_metadata(path) == ("", {"<｜call｜>", "</s>"})
