"""Let a small model summarise the older part of a long conversation.

Run it with `OPENAI_API_KEY=... python examples/compaction.py`, or with `TOOLWIRE_EXAMPLE_URL` set to the address of any
server that speaks Chat Completions.
"""

import os

from toolwire import Agent, Client, Message, TextPart
from toolwire.agent import AgentConfig, Summarize
from toolwire.models import ApiBackend

URL = os.environ.get("TOOLWIRE_EXAMPLE_URL", "")

history = [Message("user", (TextPart(f"Note {number}: " + "tea and bread. " * 20),)) for number in range(20)]
with Client("openai", "gpt-5-mini", base_url=URL) as model, Client("openai", "gpt-5-nano", base_url=URL) as small:
    config = AgentConfig(context=1_000, compaction=Summarize(ApiBackend(small), keep=4))
    print(Agent(model, config=config).ask_sync("What did I note?", history=history))
