"""The wire formats: one file each, and the tuple that lists them."""

from toolwire.wire.formats import (
    anthropic_xml,
    autobyteus_xml,
    bare_json,
    deepseek_v3_1,
    forge_json,
    forge_xml,
    hermes,
    kimi_k2,
    mistral_args,
    mistral_json,
    plain,
    pythonic,
    qwen3_coder,
    utp_xml,
)
from toolwire.wire.syntax import WireFormat

FORMATS: tuple[WireFormat, ...] = (
    plain.FORMAT,
    hermes.FORMAT,
    qwen3_coder.FORMAT,
    forge_xml.FORMAT,
    forge_json.FORMAT,
    autobyteus_xml.FORMAT,
    anthropic_xml.FORMAT,
    utp_xml.FORMAT,
    mistral_args.FORMAT,
    mistral_json.FORMAT,
    deepseek_v3_1.FORMAT,
    kimi_k2.FORMAT,
    pythonic.FORMAT,
    bare_json.FORMAT,
)
