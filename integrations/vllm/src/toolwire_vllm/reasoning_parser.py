"""The parser of reasoning for vLLM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.reasoning import ReasoningParser

import toolwire
from toolwire.events import ContentDelta, Event
from toolwire.wire import FORMATS, Span
from toolwire_vllm.deltas import delta_message

_TAIL = 4096
"""Maximum number of tokens at the end of a prompt that are decoded."""


class ToolwireReasoningParser(ReasoningParser):
    """Reads the reasoning of one message; everything else stays as it was written, for the parser of tool calls.

    Reasoning ends at its closing marker, or at a call where the format says so.

    Attributes:
        format: the wire format's name, or "auto" for the markers of all formats.
    """

    format = "auto"
    # The server then reports the end of the text, and does not join all text and ids for each delta.
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **keywords: Any) -> None:
        super().__init__(tokenizer, *args, **keywords)
        self._is_open = False
        self._parser: toolwire.StreamParser | None = None
        self._has_ended = False
        self._openers = [ids for span in _spans(self.format) if (ids := self._encode(span.open))]
        self._closers = [ids for span in _spans(self.format) if (ids := self._encode(span.close))]

    # -- the prompt ------------------------------------------------------------------------------------------------

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Take the prompt, which may have opened the reasoning."""
        self._is_open = opens_reasoning(prompt_token_ids, self.model_tokenizer, self.format)

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Return whether the last marker of reasoning closes it, and belongs to the last turn."""
        end = max((_end_of_last(closer, input_ids) for closer in self._closers), default=0)
        if not end:
            return False
        rest = list(input_ids[end:])
        eos = getattr(self.model_tokenizer, "eos_token_id", None)
        if eos is not None and eos in rest[:-1]:  # the closing marker belongs to an earlier turn
            return False
        return not opens_reasoning(rest, self.model_tokenizer, self.format)

    # -- tokens ----------------------------------------------------------------------------------------------------

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Return whether the new tokens close the reasoning."""
        count = len(list(delta_ids))
        longest = max(map(len, self._closers), default=0)
        tail = list(input_ids[-(count + longest) :])
        return any(_end_of_last(closer, tail) > len(tail) - count for closer in self._closers)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Return the ids behind the reasoning; none if it has not ended."""
        end = max((_end_of_last(closer, input_ids) for closer in self._closers), default=0)
        return input_ids[end:] if end else []

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Return the number of tokens inside reasoning, without those of its markers.

        Reasoning that is not closed counts up to the end. If a closing marker is the first one, the prompt has opened
        the reasoning.
        """
        ids = list(token_ids)
        is_open = self._is_open or _first(self._closers, ids, 0) < _first(self._openers, ids, 0)
        count = at = 0
        while at < len(ids):
            start, end = _first(self._closers if is_open else self._openers, ids, at)
            count += start - at if is_open else 0
            at, is_open = end, not is_open
        return count

    # -- text ------------------------------------------------------------------------------------------------------

    def adjust_request(self, request: Any) -> Any:
        """Keep the markers of reasoning in the text, in case they are special tokens."""
        request.skip_special_tokens = False
        return request

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Return the reasoning of a whole message and everything else."""
        response = toolwire.parse(model_output, **self._options(request))
        return response.reasoning or None, response.content or None

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """Return what the new text makes certain; the other texts and ids are not needed."""
        if self._parser is None:
            self._parser = toolwire.StreamParser(**self._options(None))
        return self._delta(self._parser.feed(delta_text))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Return whether text that is not reasoning was read: the parser of tool calls reads it and the rest."""
        return self._has_ended

    def finish_streaming(self) -> DeltaMessage | None:
        """Return the rest of the text that was fed."""
        return self._delta(self._parser.finish()) if self._parser is not None else None

    def _delta(self, events: Sequence[Event]) -> DeltaMessage | None:
        self._has_ended = self._has_ended or any(
            isinstance(event, ContentDelta) and not event.text.isspace() for event in events
        )
        return delta_message(events)

    # -- options ---------------------------------------------------------------------------------------------------

    @property
    def reasoning_start_str(self) -> str | None:
        """The marker that opens reasoning."""
        return next((span.open for span in _spans(self.format)), None)

    @property
    def reasoning_end_str(self) -> str | None:
        """The marker that closes reasoning."""
        return next((span.close for span in _spans(self.format)), None)

    def _options(self, request: Any) -> Any:
        usable, _ = toolwire.usable_definitions(getattr(request, "tools", None))
        return {
            "format": self.format,
            "tools": list(usable.values()),
            "only": "reasoning",
            "reasoning_started": self._is_open,
        }

    def _encode(self, text: str) -> list[int]:
        return list(self.model_tokenizer.encode(text, add_special_tokens=False))


def opens_reasoning(prompt_token_ids: Sequence[int], tokenizer: Any, format: str) -> bool:
    """Return whether a prompt ends inside reasoning."""
    text = tokenizer.decode(list(prompt_token_ids[-_TAIL:]), skip_special_tokens=False)
    return toolwire.prompt_opens_reasoning(text, format=format)


@cache
def _spans(format: str) -> tuple[Span, ...]:
    """Return the markers of reasoning of a format; of all formats, except ordinary words, for "auto"."""
    if format != "auto":
        return toolwire.get_format(format).spans
    spans = {span.open: span for wire in FORMATS for span in wire.spans if not span.prose}
    return tuple(spans.values())


def _end_of_last(marker: Sequence[int], ids: Sequence[int]) -> int:
    """Return the position behind the last occurrence of a marker, or 0."""
    size = len(marker)
    for end in range(len(ids), size - 1, -1):
        if ids[end - 1] == marker[-1] and list(ids[end - size : end]) == list(marker):
            return end
    return 0


def _first(markers: Sequence[list[int]], ids: list[int], at: int) -> tuple[int, int]:
    """Return the bounds of the first marker from a position on; the end of the ids, twice, if there is none."""
    beginnings = {marker[0] for marker in markers}
    for start in range(at, len(ids)):
        if ids[start] in beginnings:
            for marker in markers:
                if ids[start : start + len(marker)] == marker:
                    return start, start + len(marker)
    return len(ids), len(ids)


@cache
def parser_class(format: str) -> type[ToolwireReasoningParser]:
    """Return the parser's class of a format's name, or of "auto"."""
    members = {"format": format, "__module__": __name__}
    return type(f"ToolwireReasoningParser_{format}", (ToolwireReasoningParser,), members)


def __getattr__(name: str) -> type[ToolwireReasoningParser]:
    """Return the class of a format; vLLM imports it by the format's name."""
    if name == "auto" or name in toolwire.formats():
        return parser_class(name)
    raise AttributeError(f"no wire format is called {name!r}")
