"""What tool definitions cost, how well that is estimated, and how well `find_tools` finds them again.

    pip install --no-deps --target /tmp/bfcl bfcl-eval      # its data is all that is needed
    .venv/bin/python benchmarks/definitions.py --data /tmp/bfcl/bfcl_eval/data
    .venv/bin/python benchmarks/definitions.py --data ... --model 0.5b      # the error of the estimate

The definitions are those of the Berkeley Function Calling Leaderboard. `--model` names a local model, whose own
tokenizer counts them as well. A question of the leaderboard counts as found if the tool that it is about is among the
first results for the question's own words, searched among as many tools as `--tools` says.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bfcl_roundtrip import rows, schema

from toolwire.execution.disclosure import Disclosure, Index, count_definitions
from toolwire.execution.registry import ToolRegistry
from toolwire.providers.negotiation import DefinitionAdapter
from toolwire.text.tokens import count_tokens
from toolwire.tools import Tier, ToolDefinition, as_definition

FORMATS = ("openai_chat", "anthropic_messages", "gemini", "hermes", "forge_xml", "qwen3_coder", "pythonic")
FILES = ("live_multiple", "multiple", "live_simple", "simple_python")
ASKED = ("live_multiple", "multiple")
"""Files whose rows offer several tools for one question."""


def pool(data: Path) -> dict[str, ToolDefinition]:
    """All tools by name; of several with one name the first."""
    found: dict[str, ToolDefinition] = {}
    for name in FILES:
        for row in rows(data / f"BFCL_v4_{name}.json"):
            for one in row["function"]:
                definition = as_definition({**one, "parameters": schema(one["parameters"])})
                found.setdefault(definition.name, definition)
    return found


def questions(data: Path) -> list[tuple[str, str]]:
    """A question's words, and the tool that it is about."""
    found = []
    for name in ASKED:
        answers = {row["id"]: row for row in rows(data / "possible_answer" / f"BFCL_v4_{name}.json")}
        for row in rows(data / f"BFCL_v4_{name}.json"):
            asked = [turn["content"] for turn in row["question"][0] if turn["role"] == "user"]
            right = {called for one in answers[row["id"]]["ground_truth"] for called in one}
            found += [(asked[-1], called) for called in right] if asked and len(right) == 1 else []
    return found


@contextmanager
def tokenizer(model: str) -> Any:
    """The count of a local model's own tokenizer."""
    import xllamacpp

    from toolwire.models.local.model_files import locate

    params = xllamacpp.CommonParams()
    params.model.path = str(locate(model))
    params.n_ctx = 512
    params.warmup = False
    params.verbosity = 0
    server = xllamacpp.Server(params)

    def count(text: str) -> int:
        body = json.dumps({"content": text}).encode()
        request = urllib.request.Request(f"{server.listening_address}/tokenize", body)
        with urllib.request.urlopen(request) as answer:
            return len(json.load(answer)["tokens"])

    yield count


def errors(definitions: list[ToolDefinition], count: Callable[[str], int]) -> None:
    """How far the estimate is from the count, one definition at a time and all together."""
    print("\n| definitions as | tokens | estimated | error | of one definition, 95 in 100 |")
    print("| --- | --- | --- | --- | --- |")
    for format in FORMATS:
        whole, guess = (count_definitions(definitions, format=format, tokenizer=by) for by in (count, None))
        each = sorted(
            abs(count_tokens(text).tokens / count(text) - 1) for text in (rendered(one, format) for one in definitions)
        )
        off = guess.tokens / whole.tokens - 1
        print(f"| `{format}` | {whole.tokens} | {guess.tokens} | {off:+.1%} | {each[len(each) * 95 // 100]:.1%} |")


def rendered(definition: ToolDefinition, format: str) -> str:
    """One definition as text."""
    made = DefinitionAdapter(format).render([definition])
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def disclosed(definitions: list[ToolDefinition], count: Callable[[str], int] | None) -> None:
    """What a request costs with all definitions, and with those that a search discloses."""
    for budget in (10**9, 0):
        disclosure = Disclosure(ToolRegistry(definitions), format="openai_chat", budget_tokens=budget, tokenizer=count)
        print(f"{len(disclosure.request(Tier.RUN).definitions)} definitions: {disclosure.request(Tier.RUN).tokens}")
    disclosure.find("convert money from one currency to another", Tier.RUN)
    print(f"after one search, {len(disclosure.request(Tier.RUN).definitions)}: {disclosure.request(Tier.RUN).tokens}")


def finding(tools: list[ToolDefinition], asked: list[tuple[str, str]]) -> None:
    """How often the right tool is among those found."""
    index = Index(tools)
    known = {one.name for one in tools}
    asked = [(question, right) for question, right in asked if right in known]
    ranks = [
        next((at for at, one in enumerate(index.search(question, limit=20)) if one.name == right), 99)
        for question, right in asked
    ]
    shares = ", ".join(f"{sum(rank < top for rank in ranks) / len(ranks):.1%} in the first {top}" for top in (1, 5, 20))
    print(f"{len(asked)} questions, {len(tools)} tools: the right one is found: {shares}")


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the folder with the leaderboard's files")
    options.add_argument("--model", help="a local model whose tokenizer counts: 0.5b, 1.5b, or a GGUF file")
    options.add_argument("--tools", type=int, default=150, help="how many tools (default 150)")
    chosen = options.parse_args()
    everything = list(pool(chosen.data).values())
    some = everything[:: max(1, len(everything) // chosen.tools)][: chosen.tools]
    finding(some, questions(chosen.data))
    finding(everything, questions(chosen.data))
    if chosen.model is None:
        disclosed(some, None)
        return
    with tokenizer(chosen.model) as count:
        disclosed(some, count)
        errors(some, count)


if __name__ == "__main__":
    main()
