"""A package in the shape of the leaderboard's, with one service and a few conversations."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SERVICE = """
class TicketAPI:
    def __init__(self):
        self.tickets = {}
        self._secret = object()

    def _load_scenario(self, scenario, long_context=False):
        self.tickets = dict(scenario["tickets"])

    def open_ticket(self, title, priority=1):
        number = len(self.tickets) + 1
        self.tickets[str(number)] = {"title": title, "priority": priority}
        return {"id": number}

    def list_tickets(self):
        return {"tickets": sorted(self.tickets)}

    def close_ticket(self, id):
        self.tickets.pop(str(id))
        return True
"""


def described(name: str, **properties: str) -> dict[str, Any]:
    parameters = {name: {"type": kind} for name, kind in properties.items()}
    return {
        "name": name,
        "description": name,
        "parameters": {"type": "dict", "properties": parameters, "required": [*parameters][:1]},
    }


TOOLS = [described("open_ticket", title="string", priority="integer"), described("list_tickets"),
         described("close_ticket", id="integer")]  # fmt: skip
ROW: dict[str, Any] = {
    "id": "multi_turn_base_0",
    "question": [[{"role": "user", "content": "Open a ticket 'lamp'."}], [{"role": "user", "content": "List them."}]],
    "initial_config": {"TicketAPI": {"tickets": {"1": {"title": "door", "priority": 1}}}},
    "involved_classes": ["TicketAPI"],
    "excluded_function": ["close_ticket"],
}
LATER = {
    **ROW,
    "id": "multi_turn_miss_func_0",
    "question": [ROW["question"][0], []],
    "excluded_function": [],
    "missed_function": {"1": ["open_ticket"]},
}
RIGHT = [["open_ticket('lamp')"], ["list_tickets()"]]


@pytest.fixture
def leaderboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put the package on the path; return the directory of its data."""
    root = tmp_path / "leaderboard"
    module = root / "bfcl_eval" / "eval_checker" / "multi_turn_eval" / "func_source_code"
    module.mkdir(parents=True)
    (module / "ticket_api.py").write_text(SERVICE, "utf-8")
    data = root / "bfcl_eval" / "data"
    (data / "multi_turn_func_doc").mkdir(parents=True)
    (data / "possible_answer").mkdir()
    (data / "multi_turn_func_doc" / "ticket_api.json").write_text("\n".join(map(json.dumps, TOOLS)), "utf-8")
    for row, right in ((ROW, RIGHT), (LATER, [[], ["open_ticket(title='lamp', priority=2)"]])):
        name = f"BFCL_v4_{row['id'].rpartition('_')[0]}.json"
        (data / name).write_text(json.dumps(row), "utf-8")
        (data / "possible_answer" / name).write_text(json.dumps({"id": row["id"], "ground_truth": right}), "utf-8")
    monkeypatch.syspath_prepend(str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == "bfcl_eval"]:
        monkeypatch.delitem(sys.modules, name)
    yield data
    for name in [name for name in sys.modules if name.partition(".")[0] == "bfcl_eval"]:
        del sys.modules[name]
