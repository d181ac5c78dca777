"""DeepSeek V3 and R1: a section of calls, with the arguments of each in a code fence.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Paris"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Source: https://huggingface.co/deepseek-ai/DeepSeek-V3-0324 (chat template)
"""

from toolwire.wire.syntax import Args, Call, Lit, Many, Name, WireFormat

_HEADER = (Lit("<｜tool▁call▁begin｜>"), Lit("function<｜tool▁sep｜>"), Name())
_FENCE = Lit("```json", also=("```",), before="\n", after="\n")

FORMAT = WireFormat(
    name="deepseek_v3",
    title="<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\\n```json\\n{..}\\n```<｜tool▁call▁end｜>",
    aliases=("deepseekv3", "cogito"),
    models="DeepSeek V3, V3-0324, R1, R1-0528, Cogito",
    source="https://huggingface.co/deepseek-ai/DeepSeek-V3-0324",
    blocks=(
        (
            Lit("<｜tool▁calls▁begin｜>", need="optional"),
            Many(
                (
                    Call((*_HEADER, _FENCE, Args())),
                    Lit("```", need="forgiven", before="\n"),
                    Lit("<｜tool▁call▁end｜>", need="forgiven"),
                ),
                between="\n",
            ),
            Lit("<｜tool▁calls▁end｜>", need="forgiven"),
        ),
    ),
    join="",
    result=("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
)
