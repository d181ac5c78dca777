"""The wire formats: one file each, and the tuple that lists them."""

from toolwire.wire.formats import hermes, plain, qwen3_coder
from toolwire.wire.syntax import WireFormat

FORMATS: tuple[WireFormat, ...] = (plain.FORMAT, hermes.FORMAT, qwen3_coder.FORMAT)
