"""A parser of whole answers in vLLM's newer interface: reasoning, content and calls at once.

vLLM has no registry for such parsers yet; it composes one of a parser of reasoning and one of tool calls. A server that
is built on vLLM can use this class itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import uuid4

from vllm.entrypoints.generate.base.protocol import DeltaMessage, FunctionCall
from vllm.parser.abstract_parser import Parser

import toolwire
from toolwire.events import ContentDelta, ReasoningDelta
from toolwire_vllm.deltas import delta_message, whole_calls
from toolwire_vllm.reasoning_parser import opens_reasoning
from toolwire_vllm.tool_parser import SHORT_IDS


class ToolwireParser(Parser):
    """Reads one answer.

    Attributes:
        format: the wire format's name, or "auto".
        starts_in_reasoning: reasoning is open if the prompt is not known.
    """

    format = "auto"
    starts_in_reasoning = False

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None, *args: Any, **keywords: Any) -> None:
        super().__init__(tokenizer, None, *args, **keywords)
        self._tools: Sequence[Any] = tools or ()
        self._is_open = self.starts_in_reasoning
        self._stream: toolwire.StreamParser | None = None
        self._spacing = toolwire.CallSpacing()

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Take the prompt, which may have opened the reasoning."""
        if prompt_token_ids:
            self._is_open = opens_reasoning(prompt_token_ids, self.model_tokenizer, self.format)

    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the text."""
        request.skip_special_tokens = False
        return request

    def parse(
        self,
        model_output: str,
        request: Any,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[FunctionCall] | None]:
        """Return the reasoning, the content and the calls of a whole answer."""
        parser = toolwire.StreamParser(**self._options(request))
        events = [*parser.feed(model_output), *parser.finish()]
        reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        if _shows_calls(request):
            events = toolwire.CallSpacing().filter(events)
        content = "".join(event.text for event in events if isinstance(event, ContentDelta))
        calls = [
            FunctionCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
            for call in whole_calls(events, short_ids=self.format in SHORT_IDS)
        ]
        return reasoning or None, content or None, calls if _shows_calls(request) else []

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: Sequence[int],
        request: Any,
        prompt_token_ids: Sequence[int] | None = None,
        *,
        finished: bool,
    ) -> DeltaMessage | None:
        """Return what the new text makes certain."""
        if self._stream is None:
            if prompt_token_ids:
                self.set_prompt_token_ids(prompt_token_ids)
            self._stream = toolwire.StreamParser(**self._options(request))
        events = list(self._stream.feed(delta_text))
        if finished:
            events += self._stream.finish()
        if _shows_calls(request):
            events = toolwire.closed_calls(self._spacing.filter(events))
            return delta_message(events, short_ids=self.format in SHORT_IDS)
        return delta_message([event for event in events if isinstance(event, ContentDelta | ReasoningDelta)])

    def _options(self, request: Any) -> Any:
        """Return the keywords of a parser of this request's answer."""
        usable, _ = toolwire.usable_definitions(request.tools or self._tools)
        return {
            "format": self.format,
            "tools": list(usable.values()),
            "reasoning_started": self._is_open,
            # Ids of calls differ between requests, even where the calls are equal.
            "id_seed": uuid4().hex,
        }


def _shows_calls(request: Any) -> bool:
    # A request without tools has this tool choice too, and its answer may still contain calls.
    return request.tool_choice != "none" or not request.tools


@cache
def parser_class(format: str) -> type[ToolwireParser]:
    """Return the parser's class of a format's name, or of "auto"."""
    return type(f"ToolwireParser_{format}", (ToolwireParser,), {"format": format, "__module__": __name__})
