"""One question, end to end: a real model on this machine, its text read by Toolwire, a real tool run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.agent.run_events import RunEnded, ToolFinished
from toolwire.builtin.toolsets import reading_tools
from toolwire.errors import ProviderError
from toolwire.models import TextBackend, local_source
from toolwire.models.local.runtime import LocalModel
from toolwire.models.local.weights import WEIGHTS, fetch
from toolwire.tools import Tier

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def model() -> LocalModel:
    try:
        path = fetch(WEIGHTS["0.5b"])
    except ProviderError as error:
        pytest.skip(f"no model: {error}")
    return LocalModel(path)


@pytest.mark.mission("A6")
def test_a_call_is_read_and_executed(model: LocalModel, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("The meeting is on Tuesday at noon.\n")
    backend = TextBackend(local_source(model), format="bare_json", model="0.5b")
    config = AgentConfig(
        system="Answer only with a tool call.", tier=Tier.WALK, budget=Budget(rounds=2), settings={"max_tokens": 100}
    )
    agent = Agent(backend, reading_tools(tmp_path), config)

    async def main() -> list[Any]:
        return [event async for event in agent.run("When is the meeting? Read notes.txt.")]

    events = asyncio.run(main())
    assert any(isinstance(event, ToolFinished) and event.outcome.result.success for event in events)
    assert isinstance(events[-1], RunEnded)
    assert events[-1].reason != "error"


def test_leaving_early_stops_the_model(model: LocalModel) -> None:
    stream = model.stream([{"role": "user", "content": "Count from one to five hundred."}])
    assert isinstance(next(stream), str)
    stream.close()
    pieces = list(model.stream([{"role": "user", "content": "Say yes."}], max_tokens=3))
    assert len(pieces) <= 4


def test_special_tokens_stay_in_the_text_except_the_last(model: LocalModel) -> None:
    # Number 151659 of this model's vocabulary is "<|fim_prefix|>".
    messages = [{"role": "user", "content": "Say a."}]
    text = [piece for piece in model.stream(messages, grammar='root ::= "a" <[151659]> "b"') if isinstance(piece, str)]
    assert "".join(text) == "a<|fim_prefix|>b"
    cut = list(model.stream(messages, grammar="root ::= <[151659]> <[151659]> <[151659]>", max_tokens=2))
    assert "".join(piece for piece in cut if isinstance(piece, str)) == "<|fim_prefix|>" * 2


def test_a_conversation_that_is_too_long_is_an_error(model: LocalModel) -> None:
    with pytest.raises(ProviderError, match="context"):
        list(model.stream([{"role": "user", "content": "word " * 40_000}]))
