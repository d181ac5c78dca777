"""Mistral v11 and later: a marker, the name, a marker and JSON arguments, without a closing marker.

    [TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}

The second marker may be missing, or come after `[CALL_ID]` and an id. The earlier form, a JSON list after the first
marker, is read too. Source: https://github.com/mistralai/mistral-common
"""

from toolwire.wire.syntax import Args, Call, Ident, JsonCall, Listing, Lit, Name, OneOf, Span, WireFormat

NAMED = Call(
    (
        Name(),
        OneOf(
            (
                (Lit("[ARGS]"), OneOf(((Args(),), (Lit("</s>"),)))),
                (Args(),),
                (Lit("[CALL_ID]"), Ident(), Lit("[ARGS]"), Args()),
            )
        ),
    )
)
LISTED = JsonCall(id=("id",), array="always")

FORMAT = WireFormat(
    name="mistral_args",
    title="[TOOL_CALLS]NAME[ARGS]{..}",
    aliases=("ministral", "mistral_v11", "mistral_v13"),
    models="Mistral Small 3.1+, Ministral 3, Devstral, Magistral",
    source="https://github.com/mistralai/mistral-common",
    spans=(Span("[THINK]", "[/THINK]"), Span("<think>", "</think>")),
    blocks=(
        (
            Lit("[TOOL_CALLS]", repeats=True),
            OneOf(((NAMED,), (LISTED,))),
            Lit("[/TOOL_CALLS]", need="optional", written=False),
        ),
    ),
    join="",
    definitions=Listing("[AVAILABLE_TOOLS][", "][/AVAILABLE_TOOLS]", between=", "),
    result=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
)
