from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.evaluation.scripted_models import PARIS, TOOL, CountedModel, refused

from toolwire import ConfigurationError, ContentDelta, FinishReason, Problem
from toolwire.agent.model_pool import Models
from toolwire.evaluation.asked_model import AskedModel, AskSettings, EvaluationLimits, ModelChoice
from toolwire.evaluation.model_answer import AnswerStore, ModelAnswer, answer_from_json
from toolwire.evaluation.suite import text_message
from toolwire.events import Event, Finish, ProblemFound
from toolwire.providers.request import ChatRequest
from toolwire.tools import definitions

TOOLS = tuple(definitions([TOOL]).values())
HERMES = ModelChoice("0.5b", "hermes")


def request(text: str = "Weather in Paris?") -> ChatRequest:
    return ChatRequest(messages=(text_message("user", text),), tools=TOOLS)


def asked(
    model: CountedModel, *requests: ChatRequest, choice: ModelChoice = HERMES, **options: Any
) -> list[ModelAnswer]:
    async def go() -> list[ModelAnswer]:
        async with Models(load=lambda name: model) as models:
            settings = options.pop("settings", AskSettings())
            subject = AskedModel(choice, settings, models, **options)
            return [await subject.answer(one) for one in requests]

    return asyncio.run(go())


def test_the_prompt_has_the_tools_and_the_system_text() -> None:
    model = CountedModel(lambda question: PARIS)
    (answer,) = asked(model, request(), settings=AskSettings(system="Be brief."))
    system, user = model.prompts[0]
    assert system["role"] == "system" and system["content"].startswith("Be brief.")
    assert "get_weather" in system["content"] and "<tool_call>" in system["content"]
    assert user == {"role": "user", "content": "Weather in Paris?"}
    assert (answer.outcome, answer.format, answer.text, answer.native_calls) == ("answered", "hermes", PARIS, None)
    assert answer.output_tokens > 0 and answer.estimated


def test_a_stored_answer_is_not_asked_for_again(tmp_path: Path) -> None:
    model = CountedModel(lambda question: PARIS)
    for _ in range(2):
        store = AnswerStore(tmp_path / "answers.db")
        first, other = asked(model, request(), request("Weather in Rome?"), store=store)
        store.close()
        assert first.text == other.text == PARIS
    assert len(model.prompts) == 2


@pytest.mark.parametrize(
    ("choice", "settings"),
    [
        (ModelChoice("0.5b", "pythonic"), AskSettings()),
        (ModelChoice("1.5b", "hermes"), AskSettings()),
        (ModelChoice("0.5b", "hermes", "required"), AskSettings()),
        (ModelChoice("0.5b", "hermes", prompt="brief"), AskSettings()),
        (HERMES, AskSettings(max_tokens=7)),
        (HERMES, AskSettings(temperature=0.5)),
        (HERMES, AskSettings(seed=4)),
        (HERMES, AskSettings(system="Another one.")),
    ],
)
def test_another_model_or_setting_is_asked_anew(tmp_path: Path, choice: ModelChoice, settings: AskSettings) -> None:
    model = CountedModel(lambda question: PARIS)
    store = AnswerStore(tmp_path / "answers.db")
    asked(model, request(), store=store)
    asked(model, request(), store=store, choice=choice, settings=settings)
    store.close()
    assert len(model.prompts) == 2


def test_a_model_that_does_not_finish_is_a_timeout_and_is_asked_again(tmp_path: Path) -> None:
    model = CountedModel(lambda question: None)
    store = AnswerStore(tmp_path / "answers.db")
    (answer,) = asked(model, request(), store=store, settings=AskSettings(timeout=0.5))
    assert (answer.outcome, answer.text) == ("timeout", "Let me")
    assert answer.detail == "no complete answer within 0.5 seconds"
    model.answer = lambda question: PARIS
    (answer,) = asked(model, request(), store=store)
    store.close()
    assert answer.outcome == "answered"


def test_an_error_of_the_server_is_one(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path / "answers.db")
    (answer,) = asked(CountedModel(refused), request(), store=store)
    store.close()
    assert (answer.outcome, answer.detail) == ("error", "the server is down")


def test_the_reason_of_a_broken_answer_is_what_broke_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        format, model = "hermes", "m"

        async def stream(self, *_: object) -> AsyncGenerator[Event]:
            yield ContentDelta("I look.")
            yield ProblemFound(Problem("malformed", 0, "", "It is not a call."))
            yield ProblemFound(Problem("truncated", 0, "", "The stream broke off."))
            yield ProblemFound(Problem("truncated", 0, "", "Send it again."))
            yield Finish(FinishReason.ERROR)

    async def opened(_: AskedModel) -> Broken:
        return Broken()

    monkeypatch.setattr(AskedModel, "backend", opened)
    (answer,) = asked(CountedModel(lambda question: PARIS), request())
    assert (answer.outcome, answer.detail) == ("error", "The stream broke off.")


def test_limits_of_the_evaluation() -> None:
    model = CountedModel(lambda question: PARIS)
    limits = EvaluationLimits(seconds=0)
    (answer,) = asked(model, request(), limits=limits)
    assert (answer.outcome, answer.detail) == ("not_asked", "the time limit of 0 seconds was reached")
    limits = EvaluationLimits(money=0.5, spent=0.5)
    (answer,) = asked(model, request(), limits=limits)
    assert (answer.outcome, answer.detail) == ("not_asked", "the limit of $0.5 was reached")
    assert model.prompts == []


def test_stored_answers_cost_no_limit(tmp_path: Path) -> None:
    model = CountedModel(lambda question: PARIS)
    store = AnswerStore(tmp_path / "answers.db")
    asked(model, request(), store=store)
    (answer,) = asked(model, request(), store=store, limits=EvaluationLimits(seconds=0))
    store.close()
    assert answer.outcome == "answered"


def test_money_cannot_be_limited_without_prices() -> None:
    choice = ModelChoice("m", "hermes", url="http://localhost:1/v1")
    with pytest.raises(ConfigurationError, match="no prices are published for 'm'"):
        asked(CountedModel(refused), request(), choice=choice, limits=EvaluationLimits(money=1.0))


def test_a_stored_answer_of_another_form_is_ignored(tmp_path: Path) -> None:
    model = CountedModel(lambda question: PARIS)
    store = AnswerStore(tmp_path / "answers.db")
    asked(model, request(), store=store)
    store._connection.execute("UPDATE answers SET answer = '{}'")
    asked(model, request(), store=store)
    store.close()
    assert len(model.prompts) == 2


def test_answers_survive_json() -> None:
    answer = ModelAnswer("answered", "", native_calls=(("f", {"x": [1]}),), native_problems=("p",), notes=("n",))
    assert answer_from_json(answer.to_json()) == answer
    with pytest.raises(ValueError, match="outcome"):
        answer_from_json({"outcome": "perhaps"})


@pytest.mark.parametrize(
    ("choice", "provider", "model"),
    [
        (ModelChoice("0.5b"), "local", "0.5b"),
        (ModelChoice("openai:gpt-5-mini"), "openai", "gpt-5-mini"),
        (ModelChoice("qwen3:8b", api="ollama"), "ollama", "qwen3:8b"),
        (ModelChoice("m", url="http://localhost/v1"), "", "m"),
    ],
)
def test_models_by_name(choice: ModelChoice, provider: str, model: str) -> None:
    assert (choice.profile.provider, choice.profile.model) == (provider, model)
    assert choice.is_local == (provider == "local")
