"""The coach in the loop: formats chosen turn by turn, outcomes learnt, and kept for the next process."""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.unit.telemetry.scripts import Heard, add, go

import toolwire
from toolwire import ContentDelta, Event, Finish, FinishReason, Message
from toolwire.agent import Agent, AgentConfig, Budget
from toolwire.errors import DefinitionError
from toolwire.messages import TextPart
from toolwire.models.backends import TextBackend
from toolwire.telemetry import NATIVE, Archive, Coach, CoachedBackend, Recorder, Tally, coached, text_backend
from toolwire.telemetry.coached_backend import candidates
from toolwire.testing import ScriptedBackend

FORMATS = ("hermes", "forge_xml", "qwen3_coder")


class Model:
    """Writes calls well in one format, and badly in all others; it is asked in whichever its prompt describes."""

    def __init__(self, good: str) -> None:
        self.good = good
        self.asked: list[str] = []

    def source(self, format: str):  # type: ignore[no-untyped-def]
        async def stream(messages: list[Message]) -> AsyncGenerator[Event]:
            self.asked.append(format)
            system = "".join(part.text for part in messages[0].parts if isinstance(part, TextPart))
            if "There are no tools" in system:  # the last round
                yield ContentDelta("That is all.")
                return
            opener = {"hermes": "<tool_call>", "forge_xml": "<tool>", "qwen3_coder": "<function="}[format]
            assert opener in system
            call = toolwire.ToolCall("add", {"a": len(self.asked), "b": 2})
            text = toolwire.render_calls([call], format=format, tools=[add])
            if format != self.good:
                text = re.sub("add", "ad", text)
            yield ContentDelta(text)
            yield Finish(FinishReason.STOP)

        return stream


def agent(model: Model, backend: CoachedBackend, heard: Heard, rounds: int) -> Agent:
    config = AgentConfig(system="Add. {{tools}}", budget=Budget(rounds=rounds))
    return Agent(backend, [add], config, observers=[heard], telemetry=False)


async def drained(agent: Agent, run_id: str) -> None:
    async for _ in agent.run("Add.", run_id=run_id):
        pass


def coach_at_work(good: str, runs: int = 30, **options: object) -> tuple[Model, CoachedBackend, Heard]:
    model, heard = Model(good), Heard()
    backend = coached(
        lambda name: TextBackend(model.source(name), format=name, model="tiny"), "tiny", FORMATS, **options
    )
    for run in range(runs):
        asyncio.run(drained(agent(model, backend, heard, 5), f"run {run}"))
    return model, backend, heard


@pytest.mark.mission("F48")
@pytest.mark.parametrize("good", FORMATS)
def test_it_settles_on_the_format_that_the_model_writes(good: str) -> None:
    model, backend, heard = coach_at_work(good)
    advice = backend.coach.advice()
    assert (advice.format, advice.settled) == (good, True)
    assert set(model.asked[-20:]) == {good}
    assert backend.format == good
    asked = [turn.format for turn in heard.turns]
    assert asked == model.asked
    assert all(turn.choice for turn in heard.turns)
    judged = [turn for turn in heard.turns if turn.good is not None]
    assert sum(tally.tried for tally in backend.coach.tallies) == len(judged)
    assert {turn.good for turn in judged if turn.format == good} == {True}


def test_it_learns_from_an_agent_that_had_another_model_before() -> None:
    model, heard = Model("forge_xml"), Heard()
    backend = coached(lambda name: TextBackend(model.source(name), format=name, model="tiny"), "tiny", FORMATS)
    one = agent(model, backend, heard, 5)
    one.backend = TextBackend(model.source("hermes"), format="hermes", model="other")
    asyncio.run(drained(one, "before"))
    assert not any(tally.tried for tally in backend.coach.tallies)
    before = len(heard.turns)
    one.backend = backend
    asyncio.run(drained(one, "run"))
    judged = [turn for turn in heard.turns[before:] if turn.good is not None]
    assert sum(tally.tried for tally in backend.coach.tallies) == len(judged) > 0

    other = Agent(TextBackend(model.source("hermes"), format="hermes"), [add], telemetry=False)
    other.backend = backend
    asyncio.run(drained(other, "run"))
    assert sum(tally.tried for tally in backend.coach.tallies) > len(judged)


def test_it_depends_on_nothing_but_outcomes_seed_run_and_round() -> None:
    first, again, other = (coach_at_work("forge_xml", runs=8, seed=seed)[0].asked for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_conversation_is_told_in_the_format_of_the_turn() -> None:
    seen: list[list[str]] = []

    def make(name: str) -> TextBackend:
        async def stream(messages: list[Message]) -> AsyncGenerator[Event]:
            seen.append([name, *(part.text for one in messages for part in one.parts if isinstance(part, TextPart))])
            call = toolwire.ToolCall("add", {"a": len(seen), "b": 2})
            yield ContentDelta(toolwire.render_calls([call], format=name, tools=[add]))
            yield Finish(FinishReason.STOP)

        return TextBackend(stream, format=name, model="tiny")

    coach = Coach("tiny", FORMATS[:2], explore=0.5, enough=10**6, confidence=0.9999)
    backend = CoachedBackend({name: make(name) for name in FORMATS[:2]}, coach)
    asyncio.run(drained(Agent(backend, [add], AgentConfig(budget=Budget(rounds=12)), telemetry=False), "run"))
    assert {name for name, *_ in seen} == set(FORMATS[:2])
    for name, *texts in seen[2:]:
        other = "<tool>" if name == "hermes" else "<tool_call>"
        assert not any(other in text for text in texts)


def test_it_begins_with_what_was_recorded(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "turns.db")
    for good in (True,) * 30:
        recorder.outcome("tiny", "forge_xml", good=good)
    for good in (True, False) * 15:
        recorder.outcome("tiny", "hermes", good=good)
    assert recorder.flush()
    recorder.close()
    model = Model("forge_xml")
    backend = coached(
        lambda name: TextBackend(model.source(name), format=name, model="tiny"),
        "tiny",
        FORMATS[:2],
        archive=Archive(recorder.path),
    )
    assert backend.coach.tallies == (Tally("hermes", 30, 15), Tally("forge_xml", 30, 30))
    assert backend.coach.advice().settled
    assert backend.format == "forge_xml"
    fresh = coached(lambda name: TextBackend(model.source(name), format=name), "tiny", archive=tmp_path / "none.db")
    assert all(tally.tried == 0 for tally in fresh.coach.tallies)


def test_fields_of_an_api_may_be_one_of_the_ways() -> None:
    native, text = ScriptedBackend(["done"] * 9), ScriptedBackend(["done"] * 9, format="hermes")
    backend = CoachedBackend({NATIVE: native, "hermes": text}, Coach("scripted", (NATIVE, "hermes"), explore=0))
    assert backend.format == ""
    heard = Heard()
    asyncio.run(Agent(backend, [add], observers=[heard], telemetry=False).ask("?"))
    assert heard.turns[0].format == NATIVE
    assert len(native.requests) == 1


def test_coach_is_a_name_of_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path))
    model = Model("hermes")
    plain = text_backend(model.source("hermes"), format="hermes", model="tiny")
    assert isinstance(plain, TextBackend)
    chosen = text_backend(model.source("hermes"), format="coach", model="Qwen/Qwen3-Coder-30B", explore=0.1)
    assert isinstance(chosen, CoachedBackend)
    assert chosen.coach.formats == ("qwen3_coder", "hermes", "forge_xml", "autobyteus_xml")
    assert candidates("gpt-4o") == ("pythonic", "hermes", "forge_xml", "autobyteus_xml")
    assert candidates("no such model") == ("hermes", "forge_xml", "autobyteus_xml")


def test_what_cannot_be_chosen_is_said() -> None:
    with pytest.raises(DefinitionError, match="may choose forge_xml, which there is no backend for"):
        CoachedBackend({"hermes": ScriptedBackend([])}, Coach("tiny", ("hermes", "forge_xml")))
    with pytest.raises(DefinitionError, match="no format to choose from"):
        Coach("tiny", ())
    with pytest.raises(DefinitionError, match="evidence of xml"):
        Coach("tiny", ("hermes",), [Tally("xml", 1, 1)])
    with pytest.raises(DefinitionError, match="shares between 0 and 1"):
        Coach("tiny", ("hermes",), explore=20)


def test_turns_of_other_models_teach_it_nothing() -> None:
    coach = Coach("tiny", ("hermes",))
    go(['<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'], coach, model="other")
    assert coach.tallies == (Tally("hermes"),)
    go(['<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'], coach, model="tiny")
    coach.learn("hermes", good=False)
    coach.learn("unknown", good=True)
    assert coach.tallies == (Tally("hermes", 2, 1),)
