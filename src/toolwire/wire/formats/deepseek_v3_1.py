"""DeepSeek V3.1: a section of calls, with a separator token between name and JSON arguments.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}
    <｜tool▁call▁end｜><｜tool▁calls▁end｜>

Source: https://huggingface.co/deepseek-ai/DeepSeek-V3.1 (chat template)
"""

from toolwire.wire.syntax import Args, Call, Lit, Many, Name, WireFormat

FORMAT = WireFormat(
    name="deepseek_v3_1",
    title="<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{..}<｜tool▁call▁end｜>",
    aliases=("deepseek_v31", "deepseekv31", "deepseek3"),
    models="DeepSeek V3.1",
    source="https://huggingface.co/deepseek-ai/DeepSeek-V3.1",
    blocks=(
        (
            Lit("<｜tool▁calls▁begin｜>", need="optional"),
            Many(
                (
                    Call((Lit("<｜tool▁call▁begin｜>"), Name(), Lit("<｜tool▁sep｜>"), Args())),
                    Lit("<｜tool▁call▁end｜>", need="forgiven"),
                )
            ),
            Lit("<｜tool▁calls▁end｜>", need="forgiven"),
        ),
    ),
    join="",
    result=("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
)
