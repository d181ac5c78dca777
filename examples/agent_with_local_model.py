"""Ask a model on this machine, without a key. It reads the files of a directory to answer.

    pip install 'toolwire[local]'
    python examples/agent_with_local_model.py "When is the meeting? Read notes.txt." --root ~/notes

The first run downloads about 1 GB of weights. The model writes its tool calls as text, in a wire format, and Toolwire
parses them.
"""

import argparse
import asyncio

from toolwire import Agent, AgentConfig, Budget, RunFailed, Tier, reading_tools
from toolwire.models import TextBackend, local_source, open_model


async def main(question: str, root: str, model: str, wire_format: str) -> None:
    """Print the answer of a local model."""
    backend = TextBackend(local_source(open_model(model)), format=wire_format, model=model)
    config = AgentConfig(tier=Tier.WALK, budget=Budget(rounds=4), settings={"max_tokens": 200})
    try:
        print(await Agent(backend, reading_tools(root), config).ask(question))
    except RunFailed as error:  # small models give up now and then
        print("The model did not finish:", error)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ask a model on this machine.")
    parser.add_argument("question")
    parser.add_argument("--root", default=".", help="the directory whose files the model may read")
    parser.add_argument("--model", default="1.5b", help="0.5b, 1.5b or the path of a GGUF file")
    parser.add_argument("--format", default="forge_xml", help="the wire format that the model is asked for")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.question, arguments.root, arguments.model, arguments.format))
