# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.integrations.model_argument import AnyModel as AnyModel
from toolwire.integrations.openai_transport import ToolwireTransport as ToolwireTransport

__all__ = [
    "AnyModel",
    "ToolwireTransport",
]
