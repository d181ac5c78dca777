# Written by scripts/write_stubs.py from the table in __init__.py.

from toolwire.providers.bedrock_converse import for_boto3 as for_boto3
from toolwire.providers.openai_chat import GEMINI_CHAT as GEMINI_CHAT

__all__ = [
    "GEMINI_CHAT",
    "for_boto3",
]
