"""Agreement of our verdicts on conversations with the checker of the Berkeley Function Calling Leaderboard.

    pip install --no-deps --target /tmp/bfcl bfcl-eval; pip install --target /tmp/bfcl mpmath
    .venv/bin/python benchmarks/conversation_agreement.py --packages /tmp/bfcl

Each of the 800 conversations is judged with the right calls, and with calls that were changed at random: one left out,
repeated, moved or added, another value, a turn without calls, an unknown tool. Every difference is printed. Exit status
1 if fewer than `--at-least` percent of the verdicts agree.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from toolwire.evaluation.bfcl_services import BfclServices
from toolwire.evaluation.bfcl_suite import load_bfcl
from toolwire.evaluation.conversations import ScriptedConversation, conversation_fault

Turns = list[list[list[tuple[str, dict[str, Any]]]]]


def changed(turns: Turns, conversation: ScriptedConversation, draw: random.Random) -> tuple[str, Turns]:
    """Return the kind of a random change, and the calls with it."""
    turns = copy.deepcopy(turns)
    turn = draw.choice([steps for steps in turns if steps] or [turns[0]])
    calls = turn[0] if turn else []
    kind = draw.choice(["left out", "repeated", "moved", "added", "value", "empty turn", "unknown tool", "early end"])
    match kind:
        case "left out" if calls:
            calls.pop(draw.randrange(len(calls)))
        case "repeated" if calls:
            calls.append(draw.choice(calls))
        case "moved" if calls:
            calls.insert(0, calls.pop())
        case "added":
            other = [call for each in conversation.turns for call in each.right_calls]
            draw.choice(turns).append([draw.choice(other)])
        case "value" if calls:
            _, arguments = draw.choice(calls)
            if arguments:
                key = draw.choice(list(arguments))
                value = arguments[key]
                arguments[key] = value + 1 if type(value) in (int, float) else "other" if type(value) is str else value
        case "empty turn":
            turn.clear()
        case "unknown tool":
            turn.append([("no_such_tool", {"x": 1})])
        case "early end":
            turns.pop()
        case _:
            kind = "none"
    return kind, turns


def as_python(name: str, arguments: dict[str, Any]) -> str:
    """Return a call as the leaderboard writes it."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def main() -> int:
    """Compare, and print the agreement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, required=True, help="folder with the leaderboard's package")
    parser.add_argument("--changes", type=int, default=3, help="changed answers of each conversation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-least", type=float, default=100.0, help="percent that have to agree")
    options = parser.parse_args()
    sys.path.insert(0, str(options.packages))
    checker = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker").multi_turn_checker
    folder = options.packages / "bfcl_eval" / "data"
    rows: dict[str, Any] = {}
    truths: dict[str, Any] = {}
    for path in folder.glob("BFCL_v4_multi_turn_*.json"):
        rows |= {row["id"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())}
        answers = (folder / "possible_answer" / path.name).read_text("utf-8").splitlines()
        truths |= {row["id"]: row["ground_truth"] for row in map(json.loads, answers)}
    draw, counts = random.Random(options.seed), Counter[str]()
    for question in load_bfcl(["multi_turn"]).questions:
        conversation = question.conversation
        assert conversation is not None
        right: Turns = [
            [[(name, dict(arguments)) for name, arguments in turn.right_calls]] if turn.right_calls else []
            for turn in conversation.turns
        ]
        for number in range(options.changes + 1):
            kind, turns = changed(right, conversation, draw) if number else ("right", right)
            fault = conversation_fault(conversation, turns, BfclServices(conversation), BfclServices(conversation))
            row, truth = copy.deepcopy(rows[question.id]), truths[question.id]
            if len(turns) != len(truth):  # the leaderboard decides this before its checker
                theirs = False
            else:
                texts = [[[as_python(*call) for call in step] for step in steps] for steps in turns]
                theirs = checker(texts, truth, row, question.group, f"answer_{number}")["valid"]
            agrees = (fault is None) == theirs
            counts[f"{kind}: {'agree' if agrees else 'differ'}, {'right' if theirs else 'wrong'}"] += 1
            if not agrees:
                print(f"{question.id}, {kind}: theirs {theirs}, ours {fault}")
    for kind, count in sorted(counts.items()):
        print(f"{kind:40} {count:,}")
    agreed = sum(count for kind, count in counts.items() if ": agree" in kind)
    share = 100 * agreed / counts.total()
    print(f"{agreed:,} of {counts.total():,} agree ({share:.2f} %)")
    return 0 if share >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
