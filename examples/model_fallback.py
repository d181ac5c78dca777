"""Ask another model where the first one fails, is overloaded or refuses.

Run it with `OPENAI_API_KEY=... ANTHROPIC_API_KEY=... python examples/model_fallback.py`, or with `TOOLWIRE_EXAMPLE_URL`
set to the address of any server that speaks both APIs.
"""

import os

from toolwire import Agent, Client
from toolwire.models import Fallback, Retry

URL = os.environ.get("TOOLWIRE_EXAMPLE_URL", "")

with (
    Client("openai", "gpt-5-mini", base_url=URL, retry=Retry(attempts=2, wait=0.1)) as first,
    Client("anthropic", "claude-haiku-4-5", base_url=URL) as second,
):
    agent = Agent(Fallback([first, second]))
    print(agent.ask_sync("What is the capital of France?"))
