"""The values of a conversation: messages and their parts, tool calls, results, and a parsed response.

All are frozen dataclasses with slots. `arguments` and other containers in them must not be changed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, Self, get_args

from toolwire._surface import check_type, wrong_type
from toolwire.media_types import check_data, media_type

Role = Literal["system", "user", "assistant", "tool"]
_ROLES = frozenset(get_args(Role))


class FinishReason(StrEnum):
    """The reason why a response ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    ERROR = "error"


REPAIRS = (
    "missing_close", "single_quotes", "python_literal", "trailing_comma", "raw_control", "double_encoded",
    "inner_quote", "triple_quotes", "doubled_braces", "invalid_escape", "extra_close", "bare_ampersand",
    "bare_markup", "coerced", "flat_arguments", "argument_key", "positional", "bare_key", "source_text",
    "name_resolved", "fallback",
)  # fmt: skip
"""The names that `ToolCall.repairs` may contain."""


@lru_cache(maxsize=1024)  # most messages have the same seed, and a call to one of a few tools
def call_id(seed: str, index: int, name: str) -> str:
    """Return the id of a call that came without one: `call_` and 16 hex digits.

    It depends on the seed (an agent passes the turn), the index of the call in its message and the name. All of these
    are known when the call starts, so the id is the same on replay, and unique in a conversation.
    """
    digest = hashlib.sha256(f"{seed}\x1f{index}\x1f{name}".encode("utf-8", "surrogatepass")).hexdigest()
    return "call_" + digest[:16]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that a model requested.

    Attributes:
        name: the tool's name as the model wrote it, without the format's own prefix.
        arguments: JSON values by parameter name. An incomplete call has those that were read completely.
        id: the id from the provider or the model if there was one, else `call_id`.
        server: the server that it is addressed to (Forge's `server_name`), or "".
        raw: the text that it was parsed from, markup included.
        format: the name of the wire format or the provider API.
        repairs: names of the repairs that parsing needed, each once.
        confidence: 1.0 for a call between a format's own markers; less for one that was recognized by its text alone.
        free: its only argument, `input`, is plain text instead of JSON.
        extra: members that only one API has.
        of_provider: the provider defined the tool, and the client has to run it: to control a computer, for example.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    server: str = ""
    raw: str = field(default="", repr=False, compare=False)
    format: str = field(default="", compare=False)
    repairs: tuple[str, ...] = ()
    confidence: float = 1.0
    free: bool = field(default=False, repr=False, compare=False)
    extra: OpaquePart | None = field(default=None, repr=False, compare=False)
    of_provider: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check that the name is text, and the arguments are an object.

        Raises:
            TypeError: they are not.
        """
        if not isinstance(self.name, str):
            raise wrong_type("name", self.name, "text")
        arguments: object = self.arguments
        if not isinstance(arguments, dict):
            hint = " (json.loads makes one of text)" if isinstance(arguments, str) else ""
            raise wrong_type("arguments", arguments, f"a dict of JSON values{hint}")

    @property
    def fingerprint(self) -> str:
        """The SHA-256 hex digest of the name and the arguments as canonical JSON; equal calls share it."""
        return digest([self.name, self.arguments])


def digest(value: object) -> str:
    """Return the SHA-256 hex digest of a value as canonical JSON; values outside of JSON count as their `str`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _normalize(part: ImagePart | FilePart) -> None:
    """Refuse an empty part, split a data URL into media type and data, and spell the media type in one way."""
    check_type("data", part.data, str, "text in base64")
    check_type("url", part.url, str, "text")
    check_data(type(part).__name__, part.data, needed=not (part.url or part.extra))
    head, _, data = part.url.partition(",")
    if not part.data and data and head.startswith("data:") and head.endswith(";base64"):
        object.__setattr__(part, "data", data)
        object.__setattr__(part, "media_type", part.media_type or head[len("data:") : -len(";base64")])
        object.__setattr__(part, "url", "")
    object.__setattr__(part, "media_type", media_type(part.media_type, part.data))


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image: base64 `data` with its media type, or a `url`.

    A missing media type is derived from the first bytes, and a data URL is split into media type and data.

    Attributes:
        extra: members that only one API has.
    """

    data: str = ""
    media_type: str = ""
    url: str = ""
    extra: OpaquePart | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Bring different ways to write the same image into one form.

        Raises:
            TypeError: the data is not text, or the URL is not.
            ValueError: there is neither data nor a URL, or the data is a URL.
        """
        _normalize(self)

    @property
    def as_url(self) -> str:
        """The URL of the image, or a data URL with its data."""
        return self.url or f"data:{self.media_type or 'image/png'};base64,{self.data}"


FileKind = Literal["document", "audio", "video"]
"""The kinds of `FilePart`."""

_TEXT_TYPES = frozenset(("application/json", "application/xml", "application/yaml", "application/x-yaml"))


@dataclass(frozen=True, slots=True)
class FilePart:
    """A document, a recording or a video: base64 `data` with its media type, or a `url`.

    A missing media type is derived from the first bytes, and a data URL is split into media type and data. An image is
    an `ImagePart`; `toolwire.attach` reads either from a file.

    Attributes:
        name: the file's name, which the model may read; "" if it has none.
        extra: members that only one API has.
    """

    data: str = ""
    media_type: str = ""
    url: str = ""
    name: str = ""
    extra: OpaquePart | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Bring different ways to write the same file into one form.

        Raises:
            TypeError, ValueError: as for an `ImagePart`, and for a name that is not text.
        """
        check_type("name", self.name, str, "text")
        _normalize(self)

    @classmethod
    def of_text(cls, text: str, media_type: str = "text/plain", *, name: str = "") -> Self:
        """Return a document that consists of this text."""
        return cls(base64.b64encode(text.encode()).decode("ascii"), media_type, name=name)

    @property
    def kind(self) -> FileKind:
        """The kind of file, by its media type; "document" for any that is neither audio nor video."""
        beginning = self.media_type.partition("/")[0]
        return "audio" if beginning == "audio" else "video" if beginning == "video" else "document"

    @property
    def text(self) -> str | None:
        """The text of a document that is text in UTF-8; None for any other file."""
        if not self.data or not (self.media_type.startswith("text/") or self.media_type in _TEXT_TYPES):
            return None
        try:
            return base64.b64decode(self.data, validate=True).decode()
        except ValueError:
            return None

    @property
    def as_url(self) -> str:
        """The URL of the file, or a data URL with its data."""
        return self.url or f"data:{self.media_type or 'application/octet-stream'};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: a JSON value or text, or an error message; and images and files, if there are any.

    Attributes:
        extra: members that only one API has.
    """

    call_id: str
    tool_name: str
    result: Any = None
    error: str | None = None
    images: tuple[ImagePart, ...] = ()
    extra: OpaquePart | None = field(default=None, repr=False, compare=False)
    files: tuple[FilePart, ...] = ()

    def __post_init__(self) -> None:
        """Raise TypeError for an error that is not text."""
        check_type("error", self.error, (str, type(None)), "text or None (str() makes text of an exception)")

    @property
    def media(self) -> tuple[ImagePart | FilePart, ...]:
        """The images, followed by the files."""
        return (*self.images, *self.files) if self.files else self.images

    @property
    def only_media(self) -> bool:
        """True if the call succeeded, and its result consists of images and files alone."""
        return bool(self.images or self.files) and self.result is None and self.error is None

    @property
    def success(self) -> bool:
        """True if the tool ran without an error."""
        return self.error is None

    @property
    def marked_text(self) -> str:
        """The text, with `Error: ` before an error message: for places that cannot mark an error otherwise."""
        return self.text if self.success else f"Error: {self.text}"

    @property
    def text(self) -> str:
        """The error message; or the result, as it is if it is text, else as JSON."""
        if self.error is not None:
            return self.error
        return self.result if isinstance(self.result, str) else json.dumps(self.result, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class TextPart:
    """Plain text of a message.

    Attributes:
        extra: members that only one API has.
    """

    text: str
    extra: OpaquePart | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """Reasoning of a model, with what its provider needs back.

    Attributes:
        text: the reasoning, as far as it may be shown.
        signature: the provider's signature. A part without text belongs to the part that follows it (Gemini's thought
            signatures), or to none.
        provider: the API that issued the signature and `data`; other APIs cannot use them.
        data: the provider's own item, to be sent back unchanged, where text and signature are not all of it.
    """

    text: str
    signature: str = ""
    provider: str = ""
    data: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class OpaquePart:
    """A part that only its provider understands: a tool that the provider ran, a document, a cache mark.

    Attributes:
        data: the provider's own item, unchanged.
        provider: the API that it belongs to; other APIs drop it, with a note.
    """

    data: dict[str, Any]
    provider: str


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A source that a model cites: a page, a document or a search result.

    Attributes:
        url: its address; "" if it has none.
        title: its title, or the name of its file.
        quote: the text of the source that is cited.
    """

    url: str = ""
    title: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True)
class CitationPart:
    """A statement of an answer with its sources, after the text that contains it.

    Attributes:
        sources: the sources.
        start, end: the range of the statement in the text of the answer, in code points; None if it is unknown.
        extra: members that only one API has.
    """

    sources: tuple[CitedSource, ...] = ()
    start: int | None = None
    end: int | None = None
    extra: OpaquePart | None = field(default=None, repr=False, compare=False)


Part = TextPart | ReasoningPart | ImagePart | FilePart | ToolCall | ToolResult | CitationPart | OpaquePart
"""A part of a message."""

Content = str | Sequence[str | Part]
"""The content of a user's message: text, or text and other parts in order."""


_PARTS = frozenset((TextPart, ReasoningPart, ImagePart, FilePart, ToolCall, ToolResult, CitationPart, OpaquePart))
_EXPECTED_PARTS = "text, or an iterable of text and parts, such as ImagePart"


@dataclass(frozen=True, slots=True, init=False)
class Message:
    """One turn of a conversation.

    Attributes:
        role: who speaks.
        parts: the parts, in order.
    """

    role: Role
    parts: tuple[Part, ...] = ()

    def __init__(self, role: Role, parts: str | Iterable[str | Part] = ()) -> None:
        """Turn text into a part, also within an iterable, and the iterable into a tuple.

        Raises:
            TypeError: the role is not text, or the parts are neither text nor parts.
            ValueError: the role is unknown.
        """
        if not isinstance(role, str):
            raise wrong_type("role", role, "'system', 'user', 'assistant' or 'tool'")
        if role not in _ROLES:
            raise ValueError(f"unknown role {role!r:.80}; expected 'system', 'user', 'assistant' or 'tool'")
        if isinstance(parts, str):
            parts = (TextPart(parts),)
        elif not isinstance(parts, tuple):
            check_type("parts", parts, Iterable, _EXPECTED_PARTS)
            parts = tuple(parts)
        if not _PARTS.issuperset(map(type, parts)):  # fast first
            parts = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
            if not all(isinstance(part, Part) for part in parts):
                raise wrong_type("parts", parts, _EXPECTED_PARTS)
        object.__setattr__(self, "role", role)
        object.__setattr__(self, "parts", parts)

    @property
    def text(self) -> str:
        """The text of the message, with a line break between two parts; calls, results and media are not part of it."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the provider reported them; cached tokens are part of the input, reasoning of the output.

    Attributes:
        estimated: the provider reported none, and they were estimated from the text.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        """Return both counts together; estimated if one of them is."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.estimated or other.estimated,
        )


ProblemKind = Literal[
    "malformed", "truncated", "missing_name", "unknown_tool", "invalid_arguments", "no_call", "hidden_by_fence",
    "call_in_prose", "echoed_result", "unread_members", "provider_error",
]  # fmt: skip
"""The kind of a problem; see `Problem`."""

MESSAGE_LIMIT = 300
"""Maximum length of the model text that a problem's message quotes, in characters."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A piece of model text that could not be parsed, with a message that a model can act on.

    Attributes:
        kind: the kind of problem.
        position: the beginning of the raw text, in code points from the start of the text that was fed.
        raw: the whole text concerned.
        message: one or two sentences; quotes at most `MESSAGE_LIMIT` characters of `raw`.
        index: the index of the announced call that it belongs to, or None.
        status: the HTTP status that the error of a provider stands for; 0 if it names none.
        code: the provider's own word for its error, such as "context_length_exceeded"; "" if it has none.
    """

    kind: ProblemKind
    position: int
    raw: str
    message: str
    index: int | None = None
    status: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """A whole response, parsed.

    Attributes:
        content: text for the user, without markup.
        reasoning: the model's reasoning, without its tags.
        tool_calls: complete calls of the request's tools in document order. Only these and `provider_calls` may run.
        incomplete: calls that were announced and then truncated or broken.
        problems: pieces that could not be parsed, in document order.
        finish_reason: why it ended; "stop" or "tool_calls" unless the source gave another reason.
        raw: the source: the text, or the provider's response.
        parts: text, citations, reasoning, complete calls and opaque parts in order, with everything that must be sent
            back.
        usage: token counts, if the source had any.
    """

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    incomplete: tuple[ToolCall, ...] = ()
    problems: tuple[Problem, ...] = ()
    finish_reason: FinishReason = FinishReason.STOP
    raw: Any = field(default=None, repr=False, compare=False)
    parts: tuple[Part, ...] = field(default=(), repr=False, compare=False)
    usage: Usage | None = field(default=None, compare=False)

    @property
    def provider_calls(self) -> tuple[ToolCall, ...]:
        """Complete calls of tools that the provider defined and the client has to run, in document order.

        Their names and arguments are the provider's: `computer`, `shell`, `apply_patch`, `mcp_approval` and so on.
        """
        return tuple([part for part in self.parts if isinstance(part, ToolCall) and part.of_provider])

    @property
    def all_calls(self) -> tuple[ToolCall, ...]:
        """All complete calls that the client has to run, in document order."""
        if not self.provider_calls:
            return self.tool_calls
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])
