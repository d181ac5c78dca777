"""The parser of tool calls for vLLM."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import uuid4

from vllm.entrypoints.generate.base.protocol import DeltaMessage, ExtractedToolCallInformation
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser

import toolwire
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Event
from toolwire_vllm.deltas import delta_message, whole_calls

logger = logging.getLogger(__name__)

SHORT_IDS = frozenset({"mistral_args", "mistral_json"})
"""Formats whose chat templates accept only ids of nine letters and digits."""

_REQUIRED = "bare_json"
"""The format of required calls where the model's own is not known; "auto" reads it as any other."""


class ToolwireToolParser(ToolParser):
    """Reads the tool calls of one message.

    The server passes text in which reasoning is either read already, or is content. Texts and events go through
    `toolwire.StreamParser`, and nothing that a model can write raises.

    Attributes:
        format: the wire format's name, or "auto".
    """

    format = "auto"
    # The server then reports the end of the text, and does not join all text and ids for each delta.
    engine_based_streaming = True
    # Otherwise the server reads required calls itself, as JSON, from the joined text.
    supports_required_and_named = False

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        self._all_tools: Sequence[Any] = tools or ()
        self._short_ids = self.format in SHORT_IDS
        self._parser: toolwire.StreamParser | None = None
        self._has_previous_text = False

    # -- the request -----------------------------------------------------------------------------------------------

    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the text, and constrain calls that are required or strict."""
        if not request.tools or request.tool_choice == "none":
            return request
        self._constrain(request)
        request.skip_special_tokens = False
        return request

    def _constrain(self, request: Any) -> None:
        """Add the grammar of calls, unless another constraint is part of the request."""
        outputs = getattr(request, "structured_outputs", None)
        if outputs is not None and outputs.structural_tag is not None:
            return
        usable, errors = toolwire.usable_definitions(request.tools, strict=True)
        choice = _tool_choice(request.tool_choice)
        has_strict = any(tool.annotations.get("strict") for tool in usable.values())
        if choice == "auto" and (self.format == "auto" or not has_strict):
            return
        if choice == "auto" and (outputs is not None or getattr(request, "response_format", None) is not None):
            return
        try:
            grammar = toolwire.grammar(
                usable.values(),
                format=_REQUIRED if self.format == "auto" else self.format,
                tool_choice=choice,
                parallel=request.parallel_tool_calls is not False,
                syntax="structural_tag",
            )
        except toolwire.DefinitionError as error:
            logger.warning("calls are not constrained: %s", "; ".join(map(str, (error, *errors))))
            return
        request.structured_outputs = StructuredOutputsParams(structural_tag=grammar.text)
        if hasattr(request, "response_format"):
            request.response_format = None

    # -- a whole message -------------------------------------------------------------------------------------------

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Return the calls of a whole message, and its text without them."""
        parser = toolwire.StreamParser(**self._options(request))
        events = [*parser.feed(model_output), *parser.finish()]
        calls = whole_calls(events, short_ids=self._short_ids)
        content = "".join(
            event.text for event in toolwire.CallSpacing().filter(events) if isinstance(event, ContentDelta)
        )
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=content or None)

    # -- a stream --------------------------------------------------------------------------------------------------

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """Return what the new text makes certain; the other texts and ids are not needed."""
        if previous_text:
            self._has_previous_text = True
        if self._parser is None or (self._has_previous_text and not previous_text):
            self._begin(request)
        assert self._parser is not None
        events = self._parser.feed(delta_text)
        if not events:
            return None
        # Most deltas are a piece of arguments, which no filter changes: a model writes thousands of them in a call.
        if len(events) == 1 and type(event := events[0]) is ArgumentsDelta:
            self._argument_texts[event.index].append(event.text)
            return DeltaMessage(tool_calls=[{"index": event.index, "function": {"arguments": event.text}}])
        return self._delta(self._spacing.filter(events))

    def finish_streaming(self) -> DeltaMessage | None:
        """Return the rest of the message at its end."""
        if self._parser is None:
            return None
        return self._delta(self._spacing.filter(self._parser.finish()))

    def get_remaining_unstreamed_args(self) -> str:
        """Return no text: all arguments are in the deltas."""
        return ""

    def _begin(self, request: Any) -> None:
        self._parser = toolwire.StreamParser(**self._options(request))
        self._spacing = toolwire.CallSpacing()
        self._has_previous_text = False
        self.prev_tool_call_arr = []
        self._argument_texts: list[list[str]] = []

    def _delta(self, events: Sequence[Event]) -> DeltaMessage | None:
        events = toolwire.closed_calls(events)
        for event in events:
            match event:
                case CallStart(_, name):
                    self.prev_tool_call_arr.append({"name": name, "arguments": {}})
                    self._argument_texts.append([])
                case ArgumentsDelta(index, text):
                    self._argument_texts[index].append(text)
                case CallEnd(index, call):
                    self.prev_tool_call_arr[index]["arguments"] = call.arguments
                case _:
                    pass
        return delta_message(events, short_ids=self._short_ids)

    @property
    def streamed_args_for_tool(self) -> list[str]:
        """The arguments that were sent, as text, by call; joined when they are asked for."""
        return ["".join(texts) for texts in self._argument_texts]

    @streamed_args_for_tool.setter
    def streamed_args_for_tool(self, texts: list[str]) -> None:
        self._argument_texts = [[text] for text in texts]

    # -- options ---------------------------------------------------------------------------------------------------

    def _options(self, request: Any) -> Any:
        """Return the keywords of a parser of this request's answer."""
        tools = getattr(request, "tools", None) or self._all_tools
        usable, _ = toolwire.usable_definitions(tools)
        return {
            "format": self.format,
            "tools": list(usable.values()),
            "only": "calls",
            # Ids of calls differ between requests, even where the calls are equal.
            "id_seed": uuid4().hex,
        }


def _tool_choice(choice: Any) -> str:
    """Return a tool choice as "auto", "required", or the name of the only tool."""
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    function = getattr(choice, "function", choice)
    return str(function.name)


@cache
def parser_class(format: str) -> type[ToolwireToolParser]:
    """Return the parser's class of a format's name, or of "auto"."""
    members = {"format": format, "__module__": __name__}
    return type(f"ToolwireToolParser_{format}", (ToolwireToolParser,), members)


def __getattr__(name: str) -> type[ToolwireToolParser]:
    """Return the class of a format; vLLM imports it by the format's name."""
    if name == "auto" or name in toolwire.formats():
        return parser_class(name)
    raise AttributeError(f"no wire format is called {name!r}")
