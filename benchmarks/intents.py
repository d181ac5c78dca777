"""Which of AgentDojo's user tasks the intent detector takes for a wish to change something.

    pip download --no-deps -d /tmp/agentdojo agentdojo      # only the text of its tasks is read, nothing is installed
    unzip -qo -d /tmp/agentdojo /tmp/agentdojo/agentdojo-*.whl
    .venv/bin/python benchmarks/intents.py --data /tmp/agentdojo/agentdojo/default_suites/v1

The tasks are others' words, of banking, chats, journeys and an office. A task needs RUN if its ground truth calls a
tool that does more than look; tools that look are told by their names.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

from toolwire.policy.intent import IntentDetector
from toolwire.tools import Tier

LOOKS = re.compile(r"(?:get|search|read|list|check)_")


def tasks(folder: Path) -> Iterator[tuple[str, bool]]:
    """The words of each task, and whether it needs RUN."""
    for path in sorted(folder.glob("*/user_tasks.py")):
        for made in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(made, ast.ClassDef):
                continue
            words = next((text for one in made.body if (text := _prompt(one))), "")
            called = [
                keyword.value.value
                for node in ast.walk(made)
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "FunctionCall"
                for keyword in node.keywords
                if keyword.arg == "function" and isinstance(keyword.value, ast.Constant)
            ]
            if words:
                yield words, any(not LOOKS.match(str(name)) for name in called)


def _prompt(node: ast.stmt) -> str:
    """The text that is assigned to PROMPT; what is filled in from a suite's data is left out."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if getattr(targets[0], "id", "") != "PROMPT" or not isinstance(node, ast.Assign | ast.AnnAssign) or not node.value:
        return ""
    constants = (one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant))
    return "".join(text for text in constants if isinstance(text, str))


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the folder with the suites")
    detect = IntentDetector()
    judged = [(needs, detect(words).tier is Tier.RUN) for words, needs in tasks(options.parse_args().data)]
    right = sum(needs and says for needs, says in judged)
    said, needed = sum(says for _, says in judged), sum(needs for needs, _ in judged)
    print(f"{len(judged)} tasks")
    print(f"precision of RUN: {right} of {said}, {right / said:.0%}")
    print(f"recall of RUN: {right} of {needed}, {right / needed:.0%}")


if __name__ == "__main__":
    main()
