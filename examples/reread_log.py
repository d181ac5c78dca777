"""Parse recorded outputs of a model again, with several formats, to see which format the model really writes.

    python examples/reread_log.py                        # the sample beside this file
    python examples/reread_log.py my_outputs.jsonl --formats hermes pythonic auto

Each line of the log is a JSON object with `id` and `text`.
"""

import argparse
import json
from pathlib import Path

import toolwire
from toolwire import ParsedResponse, tool


@tool
def get_weather(city: str, days: int = 1) -> str:
    """Return the weather forecast for a city."""
    return f"{city}: rain for {days} days"


def describe(response: ParsedResponse) -> str:
    """Return the calls of a response, or its first problem, or "text"."""
    calls = [f"{call.name}({', '.join(map(str, call.arguments.values()))})" for call in response.tool_calls]
    problems = [problem.kind for problem in response.problems]
    return " ".join(calls or problems[:1] or ["text"])


def main(log: Path, formats: list[str]) -> None:
    """Print a table with a row for each output and a column for each format."""
    print("id", *(f"{name:24}" for name in formats), sep="  ")
    for line in log.read_text("utf-8").splitlines():
        record = json.loads(line)
        cells = [describe(toolwire.parse(record["text"], format=name, tools=[get_weather])) for name in formats]
        print(f"{record['id']:2}", *(f"{cell:24}" for cell in cells), sep="  ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Parse recorded outputs again.")
    parser.add_argument("log", nargs="?", type=Path, default=Path(__file__).with_name("outputs.jsonl"))
    parser.add_argument("--formats", nargs="+", default=["hermes", "pythonic", "auto"])
    arguments = parser.parse_args()
    main(arguments.log, arguments.formats)
