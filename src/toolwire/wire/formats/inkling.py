"""Inkling: messages of several kinds, one of which contains a call as JSON, with an optional header.

    <|message_model|>get_weather<|content_invoke_tool_json|>{"name":"get_weather","args":{"city":"Paris"}}<|end_message|>

The prompt ends with `<|message_model|>`. Source: the parsers of this name in vLLM and SGLang
"""

from toolwire.wire.syntax import Header, JsonCall, Lit, Node, Span, WireFormat

_ENDS = ("<|end_message|>", "<|content_model_end_sampling|>")
_CALL: tuple[Node, ...] = (
    Lit("<|content_invoke_tool_json|>"),
    JsonCall(args=("args", "arguments")),
    Lit(_ENDS[0], also=_ENDS[1:], need="forgiven"),
)

FORMAT = WireFormat(
    name="inkling",
    title='<|content_invoke_tool_json|>{"name":..,"args":{..}}<|end_message|>',
    models="Inkling",
    source="vLLM, SGLang",
    spans=(Span("<|content_thinking|>", "<|end_message|>"),),
    drop=(
        "<|message_model|>",
        "<|content_text|>",
        "<|content_invoke_tool_text|>",
        "<|content_tool_error|>",
        *_ENDS,
        "<|message_model|><|content_text|>",
        "<|message_model|><|content_tool_error|>",
    ),
    ends_reasoning=True,
    blocks=(
        (Lit("<|message_model|>", hint=True), Header(), *_CALL),
        _CALL,
        (Lit("<|message_model|><|content_invoke_tool_json|>"), *_CALL[1:]),
    ),
    primed="<|message_model|>",
    join="",
)
