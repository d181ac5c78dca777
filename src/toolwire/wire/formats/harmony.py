"""Harmony: messages with a channel; a message whose header names a function is a call.

    <|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>

The recipient may also be part of the role, on any channel, and models name the channel twice. A server that strips
special tokens leaves `assistantcommentary to=functions.get_weather json{..}`.
The prompt ends with `<|start|>assistant`.
Source: https://github.com/openai/harmony
"""

from dataclasses import replace

from toolwire.wire.syntax import Args, Call, Listing, Lit, Name, Node, Span, WireFormat

_CHANNELS = ("commentary", "analysis", "final")
_TYPE = Lit("json", also=("code",), need="optional")
_BODY = (Lit("<|constrain|>", need="optional", before=" "), _TYPE, Lit("<|message|>"), Args())
_END = Lit("<|call|>", need="optional")

_TO = ("to=functions.", "to=")
_AT_START = tuple(f"<|start|>assistant{space}{to}" for space in (" ", "") for to in _TO)
_CHANNEL = (Lit("<|channel|>", hint=True), Lit(_CHANNELS[0], also=_CHANNELS[1:], hint=True, after=" "))
_AGAIN = tuple(replace(marker, need="optional", written=False) for marker in _CHANNEL)
_IN_CHANNEL: tuple[Node, ...] = (Call((*_CHANNEL, Lit(_TO[0], also=_TO[1:]), Name(), *_AGAIN, *_BODY)), _END)
_IN_ROLE: tuple[Node, ...] = (Call((Lit(_AT_START[0], also=_AT_START[1:]), Name(), *_CHANNEL, *_BODY)), _END)

_STRIPPED = Lit("assistantcommentary to=functions.", also=("commentary to=functions.",), prose=True)
_PLAIN: tuple[Node, ...] = (Call((_STRIPPED, Name(), _TYPE, Args())),)

FORMAT = WireFormat(
    name="harmony",
    title="<|channel|>commentary to=functions.F <|constrain|>json<|message|>{..}<|call|>",
    aliases=("openai", "gpt-oss", "gpt_oss"),
    models="gpt-oss 20b, 120b",
    source="https://github.com/openai/harmony",
    spans=(Span("<|channel|>analysis<|message|>", "<|end|>"),),
    drop=(
        "<|start|>",
        "<|start|>assistant",
        "<|channel|>final<|message|>",
        "<|channel|>commentary<|message|>",
        "<|end|>",
        "<|call|>",
    ),
    answers=("<|channel|>final<|message|>",),
    blocks=(_IN_CHANNEL, _IN_ROLE, _PLAIN),
    primed="<|start|>assistant",
    join="<|start|>assistant",
    definitions=Listing(
        "# Tools\n\n## functions\n\nnamespace functions {\n\n",
        "\n\n} // namespace functions",
        between="\n\n",
        shape="typescript",
    ),
    result=("<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>", "<|end|>"),
)
