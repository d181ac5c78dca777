"""transformers: answers of a checkpoint, read by the format that its tokenizer declares.

Nothing here imports transformers: a tokenizer is all that is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, SupportsIndex

from toolwire._surface import wrong_type
from toolwire.errors import DefinitionError
from toolwire.messages import ParsedResponse
from toolwire.providers.parsing import parse
from toolwire.wire.format_registry import get_format
from toolwire.wire.profiles import detect_from_template
from toolwire.wire.prompt_state import prompt_opens_reasoning
from toolwire.wire.response_template_reader import format_of_response_template
from toolwire.wire.result_text import markers_of
from toolwire.wire.syntax import WireFormat

__all__ = ["parse_response", "tokenizer_format"]


def tokenizer_format(tokenizer: Any) -> WireFormat:
    """Return the format in which a checkpoint writes calls.

    The chat template names it if it has the markers of a known format, because the parser then knows the damage and the
    other spellings that models of this family write too. Else the tokenizer's `response_template` describes it.

    Args:
        tokenizer: the tokenizer, or anything with `chat_template` or `response_template`.

    Raises:
        DefinitionError: neither of them says which, or no description can express the response template.
    """
    templates = [getattr(tokenizer, "chat_template", None)]
    if isinstance(named := templates[0], Mapping):
        # Of several templates, transformers uses the one of this name where tools are offered.
        templates = [named.get("tool_use"), *named.values()]
    for template in templates:
        if isinstance(template, str) and (name := detect_from_template(template).format) != "auto":
            return get_format(name)
    declared = getattr(tokenizer, "response_template", None)
    if isinstance(declared, Mapping):
        return format_of_response_template(declared)
    raise DefinitionError("the tokenizer has no response_template, and no known format's markers in its chat_template")


def parse_response(
    tokenizer: Any,
    response: str | Sequence[int],
    *,
    tools: Iterable[Any] = (),
    prompt: str | Sequence[int] = "",
    format: str | WireFormat | None = None,
) -> ParsedResponse:
    """Read the answer of a model: its calls, reasoning and content.

    Args:
        tokenizer: the tokenizer of the model.
        response: the tokens that the model wrote, without those of the prompt, or their text with special tokens. Those
            that end it, such as the end of the turn and padding, are not content.
        tools: the tools that the model was offered; their schemas type the arguments.
        prompt: the tokens or the text before the answer; its end shows whether reasoning was open.
        format: the format of the calls; None for `tokenizer_format(tokenizer)`.

    Raises:
        DefinitionError: the tokenizer declares no format, see `tokenizer_format`; or a tool has an unknown shape.
        UnknownFormat: there is no format of that name.
        TypeError: the answer or the prompt is neither text nor the token ids of one answer.
    """
    wire = tokenizer_format(tokenizer) if format is None else get_format(format)
    started = prompt_opens_reasoning(_text(tokenizer, prompt, "prompt"), format=wire)
    text = _without_end(tokenizer, _text(tokenizer, response, "response"), wire)
    return parse(text, format=wire, tools=tools, reasoning_started=started)


def _without_end(tokenizer: Any, text: str, wire: WireFormat) -> str:
    """Return text without the special tokens at its end, from the first one on that is not a marker of the format."""
    specials = [token for token in map(str, getattr(tokenizer, "all_special_tokens", ())) if token]
    foreign = {token for token in specials if not any(token in marker for marker in markers_of(wire))}
    end = content_end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        token = next((token for token in specials if text.endswith(token, 0, end)), None)
        if token is None:
            return text[:content_end]
        end -= len(token)
        content_end = end if token in foreign else content_end


def _text(tokenizer: Any, tokens: Any, argument: str) -> str:
    """Return the text of tokens, with special tokens, which are markers of calls in many formats."""
    if isinstance(tokens, str):
        return tokens
    tokens = tokens.tolist() if hasattr(tokens, "tolist") else tokens  # of an array or a tensor
    # Numbers of arrays are not of the class `int`.
    if not isinstance(tokens, Sequence) or not all(isinstance(token, SupportsIndex) for token in tokens):
        raise wrong_type(argument, tokens, "text, or the token ids of one answer")
    return str(tokenizer.decode(list(map(index, tokens)), skip_special_tokens=False))
