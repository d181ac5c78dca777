# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.integrations.model_argument import AnyModel as AnyModel
from toolwire.integrations.openai_transport import ToolwireTransport as ToolwireTransport
from toolwire.integrations.transformers import parse_response as parse_response
from toolwire.integrations.transformers import tokenizer_format as tokenizer_format

__all__ = [
    "AnyModel",
    "ToolwireTransport",
    "parse_response",
    "tokenizer_format",
]
