"""The questions of the Berkeley Function Calling Leaderboard, from the data in its package.

The package is not a dependency, because it asks for packages of several gigabytes that its data do not need. It is
installed with `pip install --no-deps bfcl-eval`. Of its code, only the services of conversations are imported.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from toolwire.errors import ConfigurationError, DefinitionError
from toolwire.evaluation.bfcl_conversations import MULTI_TURN, read_conversation
from toolwire.evaluation.bfcl_schemas import json_schema
from toolwire.evaluation.call_scoring import AcceptableCall, ExpectedCalls
from toolwire.evaluation.suite import BrokenRow, Suite, SuiteQuestion, text_message
from toolwire.text.suggest import closest, did_you_mean
from toolwire.tools import definitions

NAME: Final = "bfcl"
INSTALL: Final = "pip install --no-deps bfcl-eval"
SINGLE_TURN: Final = ("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance")
LIVE: Final = (
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_irrelevance",
    "live_relevance",
)
_WITHOUT_ANSWERS: Final[Mapping[str, ExpectedCalls]] = {
    "irrelevance": ExpectedCalls("no_call"),
    "live_irrelevance": ExpectedCalls("no_call"),
    "live_relevance": ExpectedCalls("any_call"),
}
_CATEGORIES: Final = (*SINGLE_TURN, *LIVE, *MULTI_TURN)
_OTHER_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "live": LIVE,
    "multi_turn": MULTI_TURN,
    "simple": ("simple_python",),
}
"""Names for several categories, and the name of a category in earlier versions of the leaderboard."""


def load_bfcl(categories: Sequence[str] = SINGLE_TURN, data: Path | None = None) -> Suite:
    """Return questions of the leaderboard.

    Args:
        categories: the categories; "live" for all those that users contributed, "multi_turn" for all conversations, and
            "simple" for `simple_python`.
        data: the directory with the files `BFCL_v4_*.json`; None for that of the installed package.

    Raises:
        ConfigurationError: the package, or one that it needs for a conversation, is not installed, or there is no such
            category.
    """
    names = [name for category in categories for name in _OTHER_NAMES.get(category, (category,))]
    for name in names:
        if name not in _CATEGORIES:
            near = closest(name, (*_CATEGORIES, *_OTHER_NAMES))
            hint = did_you_mean(f"{NAME}:{category}" for category in near)
            raise ConfigurationError(f"the suite {NAME} has no category {name!r:.60}{hint}")
    folder = data or _installed_data()
    questions: list[SuiteQuestion] = []
    broken: list[BrokenRow] = []
    for name in dict.fromkeys(names):
        answers = {} if name in _WITHOUT_ANSWERS else _answers(folder, name)
        read = partial(read_conversation, data=folder) if name in MULTI_TURN else _question
        for place, line in _lines(folder / f"BFCL_v4_{name}.json"):
            try:
                row = json.loads(line)
                questions.append(read(name, row, () if name in _WITHOUT_ANSWERS else answers[row["id"]]))
            except (ValueError, LookupError, TypeError, AttributeError, DefinitionError) as error:
                broken.append(BrokenRow(place, f"{type(error).__name__}: {error}"))
    return Suite(NAME, tuple(questions), tuple(broken))


def _installed_data() -> Path:
    spec = importlib.util.find_spec("bfcl_eval")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (data := Path(folder) / "data").is_dir():
            return data
    raise ConfigurationError(f"the questions of {NAME} are not installed: {INSTALL}")


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the place and the text of each line."""
    try:
        lines = path.read_bytes().split(b"\n")  # JSON may contain other characters that end lines for Python
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"{path}, line {number}", line


def _answers(folder: Path, name: str) -> dict[str, Any]:
    lines = _lines(folder / "possible_answer" / f"BFCL_v4_{name}.json")
    rows = [json.loads(line) for _, line in lines]
    return {row["id"]: row["ground_truth"] for row in rows}


def _question(category: str, row: Mapping[str, Any], right: Sequence[Mapping[str, Any]]) -> SuiteQuestion:
    calls = tuple(AcceptableCall(tool, arguments) for call in right for tool, arguments in call.items())
    expected = _WITHOUT_ANSWERS.get(category) or ExpectedCalls("calls", calls)
    messages = tuple(text_message(turn["role"], turn["content"]) for turn in row["question"][0])
    # Two functions of one name are one tool, as in the leaderboard, which finds the description by the name.
    tools = [{**function, "parameters": json_schema(function["parameters"])} for function in row["function"]]
    return SuiteQuestion(row["id"], category, messages, tuple(definitions(tools).values()), expected)
