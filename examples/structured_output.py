"""Ask an agent for a value of a type instead of text.

Run it with `OPENAI_API_KEY=... python examples/structured_output.py`, or with `TOOLWIRE_EXAMPLE_URL` set to the address
of any server that speaks Chat Completions.
"""

import os

from pydantic import BaseModel

from toolwire import Agent, Client


class City(BaseModel):
    """A city."""

    name: str
    country: str


with Client("openai", "gpt-5-mini", base_url=os.environ.get("TOOLWIRE_EXAMPLE_URL", "")) as client:
    agent = Agent(client, output_type=City)
    print(agent.ask_sync("Where were the Olympic Games in 2012?"))
