"""The chat template and the special tokens of a GGUF file, read from the metadata before the weights.

Source: github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

TEMPLATE: Final = b"tokenizer.chat_template"
TOKENS: Final = b"tokenizer.ggml.tokens"
TOKEN_TYPES: Final = b"tokenizer.ggml.token_type"
MAX_TEXT: Final = 1_000_000
"""Maximum length of a key, a token or a chat template, in bytes."""
MAX_ITEMS: Final = 10_000_000
"""Maximum number of items of an array; vocabularies have some hundred thousand."""
_STRING: Final = 8
_ARRAY: Final = 9
_CONTROL_TOKEN: Final = 3
_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
"""The form of numbers for `struct`, by the number of their type."""


class GgufMetadata(NamedTuple):
    """The parts of a model's metadata that Toolwire reads.

    Attributes:
        chat_template: its chat template; "" if the file has none, or it cannot be read.
        control_tokens: the texts of its control tokens, such as "<|im_end|>"; empty if they cannot be read. By
            default, llama.cpp leaves these tokens out of an answer.
    """

    chat_template: str
    control_tokens: frozenset[str]


def read_metadata(path: Path) -> GgufMetadata:
    """Return the metadata of a model; of a damaged file, those before the damage."""
    values = _values(path, (TEMPLATE, TOKENS, TOKEN_TYPES))
    template = values.get(TEMPLATE)
    text = template.decode("utf-8", "replace") if isinstance(template, bytes) else ""
    return GgufMetadata(text, _control_tokens(values.get(TOKENS), values.get(TOKEN_TYPES)))


def _control_tokens(tokens: Any, types: Any) -> frozenset[str]:
    if not isinstance(tokens, list) or not isinstance(types, list):
        return frozenset()
    return frozenset(
        token.decode("utf-8", "replace")
        for token, kind in zip(tokens, types, strict=False)
        if kind == _CONTROL_TOKEN and isinstance(token, bytes)
    )


def _values(path: Path, keys: tuple[bytes, ...]) -> dict[bytes, Any]:
    """Return the values of these keys, of those that the file has before its metadata end or are damaged."""
    values: dict[bytes, Any] = {}
    try:
        with path.open("rb") as file:
            magic, version = file.read(4), _number(file, "I")
            if magic != b"GGUF" or version < 2:  # version 1 had shorter lengths, and no templates
                return values
            _number(file, "Q")  # of tensors
            for _ in range(_number(file, "Q")):
                key = _read(file, _length(file))
                kind = _number(file, "I")
                if key in keys:
                    values[key] = _value(file, kind)
                    if len(values) == len(keys):
                        break
                else:
                    _skip(file, kind)
    except (OSError, ValueError):
        pass  # metadata are hints only; loading the model reports what is wrong with the file
    return values


def _value(file: BinaryIO, kind: int) -> Any:
    """Return a text as bytes, a number, or a list of them.

    Raises:
        ValueError: the type is unknown, or the file ends.
    """
    if kind == _STRING:
        return _read(file, _length(file))
    if kind == _ARRAY:
        inner, count = _array(file)
        if inner == _STRING:
            return [_read(file, _length(file)) for _ in range(count)]
        form = f"<{count}{_form(inner)}"
        return list(struct.unpack(form, _read(file, struct.calcsize(form))))
    return _number(file, _form(kind))


def _skip(file: BinaryIO, kind: int) -> None:
    """Skip a value.

    Raises:
        ValueError: the type is unknown, or the file ends.
    """
    if kind == _STRING:
        _seek(file, _number(file, "Q"))  # some files have a tokenizer of many megabytes as one text
    elif kind == _ARRAY:
        inner, count = _array(file)
        if inner == _STRING:
            for _ in range(count):
                _skip(file, inner)
        else:
            _seek(file, count * struct.calcsize(f"<{_form(inner)}"))
    else:
        _seek(file, struct.calcsize(f"<{_form(kind)}"))


def _array(file: BinaryIO) -> tuple[int, int]:
    """Return the type of an array's items, and their number."""
    inner, count = _number(file, "I"), _number(file, "Q")
    if count > MAX_ITEMS or inner == _ARRAY:
        raise ValueError("an array is too long, or contains arrays")
    return inner, count


def _form(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"the type {kind} is unknown")
    return _NUMBERS[kind]


def _seek(file: BinaryIO, size: int) -> None:
    # A short distance is read: that stays in the buffer, and a vocabulary has very many short texts.
    if size < 4096:
        _read(file, size)
    elif size < 2**62:
        file.seek(size, 1)
    else:
        raise ValueError("a value is longer than a file can be")


def _length(file: BinaryIO) -> int:
    length = _number(file, "Q")
    if length > MAX_TEXT:
        raise ValueError("a text is too long")
    return length


def _number(file: BinaryIO, form: str) -> int:
    number: int
    (number,) = struct.unpack(f"<{form}", _read(file, struct.calcsize(f"<{form}")))
    return number


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise ValueError("the file ends in its metadata")
    return data
