"""DeepSeek V4.1: like V4, with a blank inside every tag.

    <｜DSML｜ calls>
    <｜DSML｜ invoke name="get_weather">
    <｜DSML｜ parameter name="city" string="true">Paris</｜DSML｜ parameter>
    </｜DSML｜ invoke>
    </｜DSML｜ calls>

Source: https://huggingface.co/deepseek-ai (encoding of V4.1)
"""

from dataclasses import replace

from toolwire.wire.formats.deepseek_dsml import FORMAT as DSML
from toolwire.wire.formats.deepseek_dsml import block

FORMAT = replace(
    DSML,
    name="deepseek_v4_1",
    title='<｜DSML｜ calls><｜DSML｜ invoke name="F"><｜DSML｜ parameter name="k" string="true|false">v',
    aliases=("deepseek_v41", "deepseekv41"),
    models="DeepSeek V4.1",
    source="https://huggingface.co/deepseek-ai",
    blocks=(block("｜DSML｜ ", "calls"),),
)
