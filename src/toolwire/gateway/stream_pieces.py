"""Events of a stream that only continue a text, recognised in their bytes without decoding them.

Most events of a stream contain a few characters of one text: content, reasoning, or the arguments of a call. A gateway
that passes a stream on looks at it only for figures and faults. For these, many such events are as good as a single one
with their joined text, and one event costs a tenth of what many cost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING = rb'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_INSIDE = re.compile(_STRING)
_TEXT = rb'"' + _STRING + rb'"'
_NUMBER = rb"-?[0-9.eE+-]++"
_COUNTS = (
    rb'\[?\{(?:[^"{}\[\]]|'
    + _TEXT
    + rb'|\[(?:[^"{}\[\]]|'
    + _TEXT
    + rb'|\{[^"{}\[\]]*+(?:'
    + _TEXT
    + rb'[^"{}\[\]]*+)*+\})*+\])*+\}\]?'
)
"""An object of numbers and texts, with lists of such objects: token counts."""


def inside_string(data: bytes, start: int) -> int:
    """Return the position at which the characters of a JSON string end, of which `start` is the first."""
    match = _INSIDE.match(data, start)
    return start if match is None else match.end()


def _object(*members: bytes) -> bytes:
    """Return the pattern of an object with some of these members, in any order, and any others that are null."""
    # Not possessive: in such a repetition Python does not take back a group that began in an alternative that fails,
    # and raises SystemError. Going back is cheap, because a member can be read in one way only.
    return rb"\{(?: ?(?:" + b"|".join((*members, _TEXT + rb": ?null")) + rb")(?:,|(?= ?\})))* ?\}"


def _member(name: bytes, value: bytes) -> bytes:
    return rb'"' + name + rb'": ?' + value


def _list(item: bytes) -> bytes:
    return rb"\[ ?" + item + rb" ?\]"


def _open(group: bytes) -> bytes:
    """Return the pattern of a text whose characters are a group."""
    return rb'"(?P<' + group + rb">" + _STRING + rb')"'


@dataclass(frozen=True, slots=True)
class PieceShape:
    """The events of one API that only continue a text.

    Attributes:
        event: the pattern of a whole event. Each of its groups whose name begins with `text` is the inside of the JSON
            string with the text; exactly one of them matches. The other groups say which text is continued.
        end: the bytes that end an event.
    """

    event: re.Pattern[bytes]
    end: bytes = b"\n\n"

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the groups with text."""
        return tuple(name for name in self.event.groupindex if name.startswith("text"))

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the groups that say which text is continued."""
        return tuple(name for name in self.event.groupindex if not name.startswith("text"))


def _shape(event: bytes, end: bytes = b"\n\n") -> PieceShape:
    return PieceShape(re.compile(event + re.escape(end)), end)


_CHAT_CALL = _object(
    _member(b"index", rb"(?P<call>[0-9]++)"),
    _member(b"type", rb'"function"'),
    _member(b"function", _object(_member(b"arguments", _open(b"text_arguments")))),
)
_CHAT_CHOICE = _object(
    _member(b"index", b"0"),
    _member(
        b"delta",
        _object(
            _member(b"role", rb'"assistant"'),
            _member(b"content", _open(b"text")),
            _member(b"reasoning", _open(b"text_reasoning")),
            _member(b"reasoning_content", _open(b"text_reasoning_content")),
            _member(b"tool_calls", _list(_CHAT_CALL)),
        ),
    ),
)
CHAT_PIECES = _shape(
    rb"data: ?"
    + _object(
        _member(rb"(?:id|object|model|service_tier|system_fingerprint|obfuscation|provider)", _TEXT),
        _member(b"created", _NUMBER),
        _member(b"choices", _list(_CHAT_CHOICE)),
    )
)
RESPONSES_PIECES = _shape(
    rb"event: (?P<kind>response\."
    rb"(?:output_text|reasoning_text|reasoning_summary_text|function_call_arguments)\.delta)\ndata: ?"
    + _object(
        _member(b"type", rb'"(?P<type>response\.[a-z_]++\.delta)"'),
        _member(b"item_id", rb'"(?P<item>' + _STRING + rb')"'),
        _member(b"output_index", rb"(?P<output>[0-9]++)"),
        _member(rb"(?:content|summary)_index", rb"(?P<part>[0-9]++)"),
        _member(b"sequence_number", _NUMBER),
        _member(b"delta", _open(b"text")),
        _member(b"obfuscation", _TEXT),
        _member(b"logprobs", rb"\[\]"),
    )
)
MESSAGES_PIECES = _shape(
    rb"event: content_block_delta\ndata: ?"
    + _object(
        _member(b"type", rb'"content_block_delta"'),
        _member(b"index", rb"(?P<block>[0-9]++)"),
        _member(
            b"delta",
            _object(
                _member(b"type", rb'"(?P<kind>text_delta|thinking_delta|input_json_delta)"'),
                _member(b"text", _open(b"text")),
                _member(b"thinking", _open(b"text_thinking")),
                _member(b"partial_json", _open(b"text_json")),
            ),
        ),
    )
)
GEMINI_PIECES = _shape(
    rb"data: ?"
    + _object(
        _member(
            b"candidates",
            _list(
                _object(
                    _member(b"index", b"0"),
                    _member(
                        b"content",
                        _object(
                            _member(b"role", rb'"model"'),
                            _member(b"parts", _list(_object(_member(b"text", _open(b"text"))))),
                        ),
                    ),
                )
            ),
        ),
        _member(b"usageMetadata", _COUNTS),
        _member(rb"(?:modelVersion|responseId|createTime)", _TEXT),
    )
)
OLLAMA_PIECES = _shape(
    _object(
        _member(rb"(?:model|created_at)", _TEXT),
        _member(b"done", b"false"),
        _member(
            b"message",
            _object(
                _member(b"role", rb'"assistant"'),
                _member(b"content", _open(b"text")),
                _member(b"thinking", _open(b"text_thinking")),
            ),
        ),
    ),
    b"\n",
)
