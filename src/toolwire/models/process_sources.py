"""Sources of models in this process: objects that write while their caller waits, and functions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing, suppress
from inspect import Parameter, Signature, isasyncgenfunction, signature
from types import SimpleNamespace
from typing import Any, Protocol

from toolwire._surface import is_async, wrong_type
from toolwire.errors import DefinitionError, ProviderError, ToolwireError, capture_errors
from toolwire.events import ContentDelta, Event, Finish
from toolwire.messages import FilePart, ImagePart, Message
from toolwire.models.backends import Source, keyword_names, text_of
from toolwire.providers.file_parts import in_words
from toolwire.providers.model_settings import ModelSettings, RequestAdditions
from toolwire.providers.request import Notes

_ANSWER = "text, or pieces of text"
TextFunction = Callable[..., str | Iterable[str] | Awaitable[str] | AsyncIterable[str]]
"""A text model as a function: from messages, each a dict with `role` and `content`, to text, whole or in pieces.

It may be async. Its keyword parameters are the settings that it takes, by their names in `ModelSettings`.
"""


class Writer(Protocol):
    """A text model in this process that writes while its caller waits, such as `toolwire.models.LocalModel`."""

    def stream(
        self, messages: Sequence[Mapping[str, str]], /, *, max_tokens: int = ..., temperature: float = ...
    ) -> Generator[str | Finish]:
        """Yield the answer's text as it is written, then a `Finish`; options that are left out are the model's own."""
        ...


def local_source(model: Writer, settings: ModelSettings | None = None) -> Source:
    """Return the source of a model in this process; it writes in a thread of its own.

    Args:
        model: the model; its `stream` has a parameter for each setting that it takes.
        settings: settings of each answer, unless a request has others.

    Raises:
        DefinitionError: the model does not take a setting, or it has an invalid value.
        TypeError: `model` is not a model, or a setting is unknown.
    """
    if not callable(getattr(model, "stream", None)):
        raise wrong_type("model", model, "a model in this process, such as open_model() returns")
    return _LocalSource(model, settings)


def _with_notes(of_model: Signature) -> Signature:
    """Return the signature of a model in this process with the keyword `notes`, which its source takes."""
    rest = [parameter for parameter in of_model.parameters.values() if parameter.name != "notes"]
    at = next((at for at, parameter in enumerate(rest) if parameter.kind is Parameter.VAR_KEYWORD), len(rest))
    rest.insert(at, Parameter("notes", Parameter.KEYWORD_ONLY, default=None))
    return of_model.replace(parameters=rest)


class _LocalSource:
    """A model in this process as a source."""

    __signature__: Signature

    def __init__(self, model: Writer, settings: ModelSettings | None) -> None:
        self._model = model
        with suppress(ValueError):  # a function without Python code: it gets the settings of each request
            self.__signature__ = _with_notes(signature(model.stream))
        additions = RequestAdditions.of(settings)
        self._settings = {name: value for name, value in additions.settings.items() if value is not None}
        for name in (*self._settings, *additions.extra_body):
            if name not in keyword_names(self):
                raise DefinitionError(f"the model in this process has no setting {name!r}")

    async def __call__(
        self, messages: list[Message], *, notes: Notes | None = None, **options: Any
    ) -> AsyncGenerator[Event]:
        options = {**self._settings, **options}
        model, dicts = self._model, _as_dicts(messages, notes)
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | Finish | BaseException | None] = asyncio.Queue()
        abandoned = threading.Event()

        def write() -> None:
            with capture_errors() as caught, closing(model.stream(dicts, **options)) as written:
                for piece in written:
                    loop.call_soon_threadsafe(pieces.put_nowait, piece)
                    if abandoned.is_set():
                        break
            with suppress(RuntimeError):  # the loop is closed: nothing reads the queue any more
                loop.call_soon_threadsafe(pieces.put_nowait, caught.error)

        threading.Thread(target=write, name="toolwire-local", daemon=True).start()
        try:
            while (piece := await pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise _as_provider_error(piece)
                yield piece if isinstance(piece, Finish) else ContentDelta(piece)
        finally:
            abandoned.set()


def _as_provider_error(error: BaseException) -> BaseException:
    """Return the `ProviderError` for an error of the model; an interrupt or an own error stays as it is."""
    if isinstance(error, ToolwireError) or not isinstance(error, Exception):
        return error
    failed = ProviderError(f"the model in this process failed: {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed


def _in_words(message: Message, notes: Notes) -> Message:
    """Return a message with text in place of images and files."""
    parts = (
        in_words(part, "a model of text", notes) if isinstance(part, ImagePart | FilePart) else part
        for part in message.parts
    )
    return Message(message.role, parts)


def function_source(function: TextFunction) -> Source:
    """Return the source of a model that a function asks; one that is not async runs in a thread of its own.

    Args:
        function: takes the messages as dicts with `role` and `content`, and returns the text of the answer, whole or in
            pieces. It also takes those settings of `ModelSettings` that it has a parameter for, such as `temperature`.

    Raises:
        TypeError: `function` cannot be called.
    """
    if not callable(function):
        raise wrong_type("function", function, "a function from messages to text")
    try:
        of_function = signature(function)
    except ValueError:  # a function without Python code
        of_function = Signature([Parameter("messages", Parameter.POSITIONAL_ONLY)])
    if is_async(function) or isasyncgenfunction(function) or isasyncgenfunction(type(function).__call__):
        return _AsyncSource(function, _with_notes(of_function))

    def stream(messages: Sequence[Mapping[str, str]], /, **options: Any) -> Iterator[str]:
        answer = function(messages, **options)
        if isinstance(answer, Awaitable | AsyncIterable):
            raise TypeError("a function that returns something to await must be declared with async def")
        if not isinstance(answer, Iterable) or isinstance(answer, Mapping | bytes):
            raise wrong_type("the answer", answer, _ANSWER)
        for piece in (answer,) if isinstance(answer, str) else answer:
            yield _checked(piece)

    stream.__signature__ = of_function  # type: ignore[attr-defined]
    return local_source(SimpleNamespace(stream=stream))


class _AsyncSource:
    """An async function as a source.

    Args:
        function: the function.
        with_notes: its signature, with the keyword `notes`.
    """

    def __init__(self, function: TextFunction, with_notes: Signature) -> None:
        self._function = function
        self.__signature__ = with_notes

    async def __call__(
        self, messages: list[Message], *, notes: Notes | None = None, **options: Any
    ) -> AsyncGenerator[Event]:
        with capture_errors() as captured:
            answer: Any = self._function(_as_dicts(messages, notes), **options)
            if isinstance(answer, Awaitable):
                answer = await answer
            if not isinstance(answer, AsyncIterable):
                yield ContentDelta(_checked(answer))
            else:
                pieces = aiter(answer)
                try:
                    async for piece in pieces:
                        yield ContentDelta(_checked(piece))
                finally:
                    if isinstance(pieces, AsyncGenerator):
                        await pieces.aclose()
        if captured.error is not None:
            raise _as_provider_error(captured.error)


def _checked(piece: object) -> str:
    if not isinstance(piece, str):
        raise wrong_type("the answer", piece, _ANSWER)
    return piece


def _as_dicts(messages: Iterable[Message], notes: Notes | None) -> list[dict[str, str]]:
    """Return messages as dicts of text; images and files are named in words."""
    notes = Notes() if notes is None else notes
    return [{"role": message.role, "content": text_of(_in_words(message, notes))} for message in messages]
