"""Ask an agent in a program without asyncio: for the whole answer, and for its text as it arrives.

OPENAI_API_KEY=... python examples/ask_sync.py
"""

from toolwire import Agent, tool


@tool
def get_weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: rain"


agent = Agent("openai:gpt-5-mini", [get_weather])
print(agent.ask_sync("Is it raining in Paris?"))
for piece in agent.stream_text_sync("And in Rome?"):
    print(piece, end="", flush=True)
