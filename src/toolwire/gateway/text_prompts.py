"""Tools and outputs in the prompt of models that read and write text alone."""

from __future__ import annotations

from dataclasses import replace

from toolwire.errors import DefinitionError
from toolwire.messages import Message, TextPart
from toolwire.providers.output_request import json_instruction
from toolwire.providers.request import ChatRequest
from toolwire.text.suggest import closest, did_you_mean
from toolwire.wire.prompts import prompt

REQUIRED = "You must call one of these tools in this answer, even if none fits well."


def describe_request(request: ChatRequest, format: str) -> ChatRequest:
    """Return a request whose instructions describe the tools, in the words of a format, and the output.

    System messages at the beginning become one, because many templates take no more. The tool choice counts: with
    "none", the request has no tools, and with names, it has only these.

    Args:
        request: the request.
        format: the wire format that the model is asked to write.

    Raises:
        DefinitionError: a tool that has to be called is not among the tools; see `toolwire.prompt` too.
        UnknownFormat, RenderError: see `toolwire.prompt`.
    """
    choice = request.tool_choice
    tools = () if choice.mode == "none" else request.tools
    if choice.names:
        offered = [tool.name for tool in tools]
        tools = tuple(tool for tool in tools if tool.name in choice.names)
        if choice.mode == "required" and not tools:
            # Without this, the model would get no tools, and its answer would look as if it had refused to call one.
            hint = did_you_mean(closest(choice.names[0], offered)) or "; it is not among the tools of the request"
            raise DefinitionError(f"the tool choice names {choice.names[0]!r:.100}{hint}")
    count = 0
    while count < len(request.messages) and request.messages[count].role == "system":
        count += 1
    if not tools and request.output is None and count < 2:
        return replace(request, tools=())
    texts = ["".join(part.text for part in m.parts if isinstance(part, TextPart)) for m in request.messages[:count]]
    paragraphs = [prompt(tools, format=format, system="\n\n".join(filter(None, texts)))]
    if tools and choice.mode == "required":
        paragraphs.append(REQUIRED)
    if request.output is not None:
        paragraphs.append(json_instruction(request.output.schema))
    text = "\n\n".join(filter(None, paragraphs))
    return replace(request, tools=tools, messages=(Message("system", text), *request.messages[count:]))
