"""The detector of tool calls for SGLang."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import uuid4

from sglang.srt.environ import envs
from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, StructureInfo, ToolCallItem

import toolwire
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, ContentDelta, Event

logger = logging.getLogger(__name__)


class ToolwireDetector(BaseFormatDetector):  # type: ignore[misc]
    """Reads the tool calls of one message.

    Another parser has read the reasoning before. Calls of tools that are not known are dropped, as SGLang's own
    detectors do; SGLANG_FORWARD_UNKNOWN_TOOLS keeps them.

    Attributes:
        format: the wire format's name, or "auto".
    """

    format = "auto"

    def __init__(self) -> None:
        super().__init__()
        self._parser: toolwire.StreamParser | None = None
        self._spacing = toolwire.CallSpacing()
        self._places: dict[int, int] = {}  # of the calls that are passed on, by their number in the text
        self._argument_texts: list[list[str]] = []
        self._writes_grammar = self.format != "auto"

    # -- a whole message -------------------------------------------------------------------------------------------

    def has_tool_call(self, text: str) -> bool:
        """Return whether a call may begin in the text: one of the format's openers is in it."""
        return toolwire.may_contain_call(text, format=self.format)

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Return the calls of a whole message, each with the place of its tool, and the text without them."""
        parser = toolwire.StreamParser(**self._options(tools))
        events = toolwire.CallSpacing().filter([*parser.feed(text), *parser.finish()])
        places = {tool.function.name: place for place, tool in enumerate(tools)}
        arguments: dict[int, list[str]] = {}
        calls: list[ToolCallItem] = []
        content: list[str] = []
        for event in events:
            match event:
                case ContentDelta(piece):
                    content.append(piece)
                case CallStart(index):
                    arguments[index] = []
                case ArgumentsDelta(index, piece):
                    arguments[index].append(piece)
                case CallEnd(index, call, complete=True) if _is_passed_on(call.name, places):
                    place = places.get(call.name, -1)
                    parameters = "".join(arguments[index])
                    calls.append(ToolCallItem(tool_index=place, name=call.name, parameters=parameters))
                case _:
                    pass
        return StreamingParseResult(normal_text="".join(content), calls=calls)

    # -- a stream --------------------------------------------------------------------------------------------------

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Return what the new text makes certain, with the place of each call in the message."""
        if self._parser is None:
            self._parser = toolwire.StreamParser(**self._options(tools))
        events = self._parser.feed(new_text)
        if not events:
            return StreamingParseResult()
        # Most pieces are inside arguments, which no filter changes: a model writes thousands of them in a call.
        if len(events) == 1 and type(event := events[0]) is ArgumentsDelta:
            return StreamingParseResult(calls=self._continued(event.index, event.text))
        return self._result(self._spacing.filter(events), tools)

    def _continued(self, index: int, text: str) -> list[ToolCallItem]:
        """Return more arguments of a call, unless it is not passed on."""
        place = self._places.get(index)
        if place is None:
            return []
        self._argument_texts[place].append(text)
        return [ToolCallItem(tool_index=place, parameters=text)]

    def finish(self, tools: Sequence[Any]) -> StreamingParseResult:
        """Return the rest of the message at its end."""
        if self._parser is None:
            return StreamingParseResult()
        return self._result(self._spacing.filter(self._parser.finish()), tools)

    def _result(self, events: Sequence[Event], tools: Sequence[Any]) -> StreamingParseResult:
        known = {tool.function.name for tool in tools}
        content = ""
        items: list[ToolCallItem] = []
        for event in toolwire.closed_calls(events):
            match event:
                case ContentDelta(text):
                    content += text
                case CallStart(index, name) if _is_passed_on(name, known):
                    place = self._places[index] = len(self._places)
                    self.current_tool_id, self.current_tool_name_sent = place, True
                    # The server sends what the arguments here have beyond the streamed ones, also after an abort.
                    self.prev_tool_call_arr.append({"name": name, "arguments": ""})
                    self._argument_texts.append([])
                    items.append(ToolCallItem(tool_index=place, name=name, parameters=""))
                case ArgumentsDelta(index, text):
                    more = self._continued(index, text)
                    if more and items and items[-1].name is None:  # a call between would have added its name
                        items[-1].parameters += text
                    else:
                        items += more
                case CallEnd(index, call) if index in self._places:
                    self.prev_tool_call_arr[self._places[index]]["arguments"] = call.arguments
                case _:
                    pass
        return StreamingParseResult(normal_text=content, calls=items)

    @property
    def streamed_args_for_tool(self) -> list[str]:
        """The arguments that were sent, as text, by call; joined when they are asked for."""
        return ["".join(texts) for texts in self._argument_texts]

    @streamed_args_for_tool.setter
    def streamed_args_for_tool(self, texts: list[str]) -> None:
        self._argument_texts = [[text] for text in texts]

    # -- constraints -----------------------------------------------------------------------------------------------

    def supports_structural_tag(self) -> bool:
        """Return whether there is a grammar of the format's own."""
        return self._writes_grammar

    def parses_required_natively(self) -> bool:
        """Return whether required calls come in the format also without a grammar, not as JSON of SGLang's own.

        The answer is read by another detector, which does not know whether this one could write a grammar.
        """
        return self.format != "auto"

    def get_structural_tag(
        self,
        tools: Sequence[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> Any:
        """Return the grammar of calls as a structural tag, or None if the format or a tool cannot have one."""
        if not self._writes_grammar:
            return None
        from xgrammar import StructuralTag

        usable, errors = toolwire.usable_definitions(tools, strict=True)
        try:
            grammar = toolwire.grammar(
                usable.values(),
                format=self.format,
                tool_choice=tool_choice if isinstance(tool_choice, str) else tool_choice.function.name,
                parallel=parallel_tool_calls,
                reasoning="allowed" if thinking_mode else "none",
                syntax="structural_tag",
            )
        except toolwire.DefinitionError as error:
            logger.warning("calls are not constrained: %s", "; ".join(map(str, (error, *errors))))
            self._writes_grammar = False  # so that SGLang does not ask for a structure instead
            return None
        return StructuralTag.model_validate_json(grammar.text)

    def structure_info(self) -> Any:
        """Return no description of a call's beginning and end: not every format has one.

        Raises:
            NotImplementedError: when the result is called.
        """

        def describe(name: str) -> StructureInfo:
            raise NotImplementedError(f"calls of {name!r} are constrained by get_structural_tag")

        return describe

    def _options(self, tools: Sequence[Any]) -> Any:
        """Return the keywords of a parser of this message."""
        usable, _ = toolwire.usable_definitions(tools)
        return {
            "format": self.format,
            "tools": list(usable.values()),
            "only": "calls",
            # Ids are the server's own; the seed only keeps them from being equal.
            "id_seed": uuid4().hex,
        }


def _is_passed_on(name: str, known: Any) -> bool:
    return name in known or bool(envs.SGLANG_FORWARD_UNKNOWN_TOOLS.get())


@cache
def detector_class(format: str) -> type[ToolwireDetector]:
    """Return the detector's class of a format's name, or of "auto"."""
    return type(f"ToolwireDetector_{format}", (ToolwireDetector,), {"format": format, "__module__": __name__})
