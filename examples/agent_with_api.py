"""Ask a model behind an API, and let it call a Python function.

Run it with a key:

    OPENAI_API_KEY=... python examples/agent_with_api.py
    ANTHROPIC_API_KEY=... python examples/agent_with_api.py --provider anthropic --model claude-sonnet-4-5

or with any server that speaks one of the APIs, such as vLLM or llama.cpp:

    python examples/agent_with_api.py --base-url http://127.0.0.1:8000/v1 --model my-model
"""

import argparse
import asyncio

from toolwire import Agent, Client, tool


@tool
def get_weather(city: str, days: int = 1) -> str:
    """Return the weather forecast for a city."""
    return f"{city}: rain for {days} days"


async def main(provider: str, model: str, base_url: str, question: str) -> None:
    """Print the answer to a question."""
    async with Client(provider, model, base_url=base_url) as client:
        print(await Agent(client, [get_weather]).ask(question))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ask a model behind an API.")
    parser.add_argument("question", nargs="?", default="Do I need an umbrella in Paris this week?")
    parser.add_argument("--provider", default="openai", help="openai, anthropic, gemini, ollama, ...")
    parser.add_argument("--model", default="gpt-5-mini")
    parser.add_argument("--base-url", default="", help="address of a server, if it is not the provider's own")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.provider, arguments.model, arguments.base_url, arguments.question))
