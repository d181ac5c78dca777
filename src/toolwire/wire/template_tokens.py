"""Control tokens of chat templates: roles, ends of sequences, parts of a file to complete.

A tokenizer reads such text as one token with a meaning, wherever it appears in a prompt. Tokens of the shapes
`<|word|>`, `<|word>` and `<word|>` are recognized whatever the word is, since each family of models has its own.
"""

from __future__ import annotations

import re

_BRACKETED = (
    "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CONTENT|TOOL_CALLS|ARGS|CALL_ID|MODEL_SETTINGS|[gs]?MASK"
    "|THINK|BOS|EOS|CLS|SEP|PAD|UNK|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|unused\\d+"
)
_TAGS = (
    "s|bos|eos|sop|eop|unk|pad|BOS_TOKEN|EOS_TOKEN|SPECIAL_\\d+|unused\\d+|extra_id_\\d+|seed:bos|seed:eos"
    "|start_of_turn|end_of_turn|(?:begin|end)_of_utterance|(?:begin(?:ning)?|start|end)_of_(?:image|audio)|image_soft_token|audio_soft_token"
    "|fim[_-](?:prefix|middle|suffix|pad)|file_sep|PRE|SUF|MID|EOT|_user|_bot|_system|_start|_end|reserved_\\d+|role"
    "|用户|AI|eod|fake_token_around_image|\\[(?:BOS|EOS|PAD)_never_used_\\w+\\]"
)
TEMPLATE_TOKEN = re.compile(
    r"<[|｜][^\s<>|｜]{1,64}[|｜]?>"  # <|im_start|>, <|turn>, <｜User｜>
    r"|</?[\w:]{1,64}[|｜]>"  # <turn|>
    rf"|</?(?:{_TAGS})>"
    rf"|\[/?(?:{_BRACKETED})\]"
    r"|\[\|\w{1,64}\|\]"  # [|user|]
    r"|<</?SYS>>"
    r"|\]~!?b[\[\]]|\[e~\["  # the roles of MiniMax
)
"""A control token. Each begins with a bracket, at which it can be broken."""
