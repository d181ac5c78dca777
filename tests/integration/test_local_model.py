"""One question, end to end: a real model on this machine, its text read by Toolwire, a real tool run."""

from pathlib import Path

import pytest

from toolwire import textloop as agent
from toolwire.builtin import reading_tools
from toolwire.errors import ProviderError
from toolwire.local import WEIGHTS, LocalModel, fetch

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def model() -> LocalModel:
    try:
        path = fetch(WEIGHTS["0.5b"])
    except ProviderError as error:
        pytest.skip(f"no model: {error}")
    return LocalModel(path)


def test_a_call_is_read_and_executed(model: LocalModel, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("The meeting is on Tuesday at noon.\n")
    steps = list(
        agent.run(
            "When is the meeting? Read notes.txt.",
            model=model,
            tools=reading_tools(tmp_path),
            format="bare_json",
            system="Answer only with a tool call.",
            max_rounds=2,
        )
    )
    assert any(step.kind == "call" for step in steps)
    assert any(step.result and step.result.success for step in steps)


def test_leaving_early_stops_the_model(model: LocalModel) -> None:
    stream = model.stream([{"role": "user", "content": "Count from one to five hundred."}])
    assert isinstance(next(stream), str)
    stream.close()
    pieces = list(model.stream([{"role": "user", "content": "Say yes."}], max_tokens=3))
    assert len(pieces) <= 4


def test_a_conversation_that_is_too_long_is_an_error(model: LocalModel) -> None:
    with pytest.raises(ProviderError, match="context"):
        list(model.stream([{"role": "user", "content": "word " * 40_000}]))
