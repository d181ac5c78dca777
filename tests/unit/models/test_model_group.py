"""Several models as one backend."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from toolwire import Agent, DefinitionError, FinishReason, ParsedResponse, ProviderError, ToolCall, Usage, tool
from toolwire.agent import AgentConfig, AgentEvent, Budget, ModelChosen, Prices, RunEnded, TurnStarted
from toolwire.errors import ConfigurationError
from toolwire.events import ContentDelta, Event, Finish, ProblemFound, UsageCounted, collect
from toolwire.messages import Message, Problem, TextPart
from toolwire.models import CircuitBreaker, Fallback, Route, StreamOptions
from toolwire.models.backends import NO_OPTIONS
from toolwire.providers.request import ChatRequest
from toolwire.telemetry.records import EndRecord, RunRecord, TurnRecord
from toolwire.testing import ScriptedBackend

QUESTION = ChatRequest(messages=(Message("user", (TextPart("How much tea is there?"),)),))
DOWN = ProviderError("the server is down", status=503)


class Named(ScriptedBackend):
    """A scripted model with a name."""

    def __init__(
        self, name: str, *answers: ParsedResponse | str | list[Event] | ProviderError, format: str = ""
    ) -> None:
        super().__init__(answers, format=format)
        self.model = name


class Slow(Named):
    """A model that answers after a while."""

    def __init__(self, name: str, seconds: float, *answers: str) -> None:
        super().__init__(name, *answers)
        self.seconds = seconds
        self.stopped = False

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        try:
            await asyncio.sleep(self.seconds)
            async for event in super().stream(request, options):
                yield event
        except asyncio.CancelledError:
            self.stopped = True
            raise


class Turns:
    """Keeps the records of turns."""

    def __init__(self) -> None:
        self.records: list[TurnRecord] = []

    def begin(self, run: RunRecord, /) -> None:
        pass

    def turn(self, turn: TurnRecord, /) -> None:
        self.records.append(turn)

    def end(self, end: EndRecord, /) -> None:
        pass


async def answer(backend: Fallback | Route) -> str:
    return collect([event async for event in backend.stream(QUESTION)]).content


def run(agent: Agent, task: str = "How much tea is there?") -> list[AgentEvent]:
    return list(agent.run_sync(task))


@pytest.mark.parametrize("status", [0, 200, 401, 402, 404, 408, 429, 500, 503, 529])
def test_next_model_answers_where_the_first_one_fails(status: int) -> None:
    second = Named("b", "Three.")
    both = Fallback([Named("a", ProviderError("no", status=status)), second])
    assert asyncio.run(answer(both)) == "Three."
    assert second.requests == [QUESTION]


@pytest.mark.parametrize(
    ("on", "status"), [("limit", 503), ("server", 429), ("connection", 400), ("request", 0), ("refusal", 500)]
)
def test_another_failure_is_raised(on: str, status: int) -> None:
    second = Named("b", "Three.")
    both = Fallback([Named("a", ProviderError("no", status=status)), second], on={on})  # type: ignore[arg-type]
    with pytest.raises(ProviderError, match=r"^no$"):
        asyncio.run(answer(both))
    assert not second.requests


def test_error_names_the_reason_of_each_model() -> None:
    both = Fallback([Named("a", DOWN), Named("b", ProviderError("too many requests", status=429))])
    with pytest.raises(ProviderError, match="a: the server is down; b: too many requests") as raised:
        asyncio.run(answer(both))
    assert raised.value.status == 429


def test_model_without_an_agent_is_not_replaced_in_the_middle() -> None:
    broken: list[Event] = [
        ContentDelta("Th"),
        ProblemFound(Problem("provider_error", 0, "", "cut")),
        Finish(FinishReason.ERROR),
    ]
    second = Named("b", "Three.")
    assert asyncio.run(answer(Fallback([Named("a", broken), second]))) == "Th"
    assert not second.requests


REFUSED: list[Event] = [ContentDelta("I can"), UsageCounted(Usage(10, 2)), Finish(FinishReason.CONTENT_FILTER)]
UNREADABLE: list[Event] = [
    ContentDelta("<tool_call>{"),
    ProblemFound(Problem("malformed", 0, "<tool_call>{", "no JSON")),
    UsageCounted(Usage(10, 2)),
    Finish(FinishReason.STOP),
]
BROKEN: list[Event] = [
    ContentDelta("Th"),
    UsageCounted(Usage(10, 2)),
    ProblemFound(Problem("provider_error", 0, "", "overloaded")),
    Finish(FinishReason.ERROR),
]


@pytest.mark.parametrize(
    ("events", "reason"),
    [(REFUSED, "content filter"), (UNREADABLE, "cannot be read: no JSON"), (BROKEN, "overloaded")],
)
def test_agent_begins_a_turn_again_with_the_next_model(events: list[Event], reason: str) -> None:
    turns = Turns()
    second = ParsedResponse("Three.", usage=Usage(20, 1))
    prices = {"a": Prices(input=1e6), "b": Prices(input=2e6)}
    config = AgentConfig(budget=Budget(money=1_000, prices=prices))
    emitted = run(Agent(Fallback([Named("a", events), Named("b", second)]), config=config, observers=[turns]))
    shape = [event for event in emitted if isinstance(event, TurnStarted | ModelChosen)]
    assert [type(event) for event in shape] == [TurnStarted, ModelChosen, TurnStarted, ModelChosen]
    assert shape[1] == ModelChosen("a", "", "", "first choice")
    assert isinstance(shape[3], ModelChosen)
    assert shape[3].model == "b"
    assert reason in shape[3].reason
    ended = emitted[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.answer, ended.usage, ended.money) == ("Three.", Usage(30, 3), 10 + 2 * 20)
    assert [(turn.model, turn.attempt, bool(turn.error)) for turn in turns.records] == [("a", 1, True), ("b", 2, False)]


def test_failed_answer_is_counted_once_where_no_other_model_answers() -> None:
    emitted = run(Agent(Fallback([Named("a", BROKEN), Named("b", DOWN)])))
    ended = emitted[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.usage) == ("error", Usage(10, 2))
    assert ended.detail == "no model answers: a: overloaded; b: the server is down"


def test_last_failure_is_the_result_where_all_models_refuse() -> None:
    ended = run(Agent(Fallback([Named("a", REFUSED), Named("b", REFUSED)])))[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.answer) == ("error", "I can")


@tool
def count_stock(item: str) -> int:
    """Return how many of an item are in stock."""
    return 3


def test_each_model_reads_the_request_in_its_format() -> None:
    text = '<tool_call>\n{"name": "count_stock", "arguments": {"item": "tea"}}\n</tool_call>'
    first = Named("api", ProviderError("down"), "There are 3.")
    call = ToolCall("count_stock", {"item": "tea"}, "call_1")
    second = Named("text", ParsedResponse(text, tool_calls=(call,)), format="hermes")
    emitted = run(Agent(Fallback([first, second]), [count_stock]))
    assert "count_stock" not in str(first.requests[0].messages)
    assert "<tool_call>" in str(second.requests[0].messages[0])
    assert [event.format for event in emitted if isinstance(event, ModelChosen)] == ["hermes", ""]
    ended = emitted[-1]
    assert isinstance(ended, RunEnded)
    assert ended.answer == "There are 3."


def test_failing_model_is_skipped_for_a_while() -> None:
    now = 0.0
    first, second = Named("a", *[DOWN] * 3, "back"), Named("b", *["Three."] * 9)
    both = Fallback([first, second], breaker=CircuitBreaker(2, 30), clock=lambda: now)
    for _ in range(3):
        assert asyncio.run(answer(both)) == "Three."
    assert len(first.requests) == 2
    now = 31
    assert asyncio.run(answer(both)) == "Three."  # asked again, and failing once more: skipped at once
    assert len(first.requests) == 3
    assert asyncio.run(answer(both)) == "Three."
    assert len(first.requests) == 3
    now = 62
    assert asyncio.run(answer(both)) == "back"


def test_success_closes_the_circuit() -> None:
    first, second = Named("a", DOWN, "one", DOWN, "two"), Named("b", *["Three."] * 9)
    both = Fallback([first, second], breaker=CircuitBreaker(2, 30), clock=lambda: 0.0)
    assert [asyncio.run(answer(both)) for _ in range(4)] == ["Three.", "one", "Three.", "two"]


def test_a_model_is_asked_though_all_are_skipped() -> None:
    both = Fallback([Named("a", DOWN, "One."), Named("b", DOWN)], breaker=CircuitBreaker(1, 30), clock=lambda: 0.0)
    with pytest.raises(ProviderError):
        asyncio.run(answer(both))
    assert asyncio.run(answer(both)) == "One."


def test_refusals_do_not_open_the_circuit() -> None:
    first = Named("a", *[[Finish(FinishReason.CONTENT_FILTER)]] * 3)
    both = Fallback([first, Named("b", *["Three."] * 3)], breaker=CircuitBreaker(1, 30), clock=lambda: 0.0)
    for _ in range(3):
        assert asyncio.run(answer(both)) == "Three."
    assert len(first.requests) == 3


def test_faster_model_answers_and_the_slower_one_is_stopped_and_paid() -> None:
    slow, fast = Slow("a", 30, "late"), Named("b", ParsedResponse("Three.", usage=Usage(5, 1)))
    emitted = run(Agent(Fallback([slow, fast], hedge=0.01)))
    assert slow.stopped
    (chosen,) = [event for event in emitted if isinstance(event, ModelChosen)]
    assert chosen.reason == "a sent nothing for 0.01 s"
    ended = emitted[-1]
    assert isinstance(ended, RunEnded)
    assert ended.answer == "Three."
    assert ended.usage.estimated
    assert ended.usage.input_tokens > 5


def test_slow_model_answers_where_the_second_one_fails() -> None:
    both = Fallback([Slow("a", 0.05, "late"), Named("b", DOWN)], hedge=0.01)
    assert asyncio.run(answer(both)) == "late"


def test_no_second_model_is_asked_by_default() -> None:
    second = Named("b", "Three.")
    assert asyncio.run(answer(Fallback([Slow("a", 0.05, "late"), second]))) == "late"
    assert not second.requests


def test_abandoned_answer_stops_all_models() -> None:
    first, second = Slow("a", 30, "late"), Slow("b", 30, "late")

    async def give_up() -> None:
        async with asyncio.timeout(0.05):
            await answer(Fallback([first, second], hedge=0.01))

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert (first.stopped, second.stopped) == (True, True)


def test_route_chooses_by_the_request() -> None:
    small, large = Named("small", "short"), Named("large", "long")
    route = Route(
        {"small": small, "large": large}, lambda request: "large" if "tea" in str(request.messages[-1]) else "small"
    )
    emitted = run(Agent(route))
    assert [event for event in emitted if isinstance(event, ModelChosen)] == [
        ModelChosen("large", "", "", "the route large")
    ]
    assert (len(small.requests), len(large.requests)) == (0, 1)


def test_route_in_a_fallback_and_a_fallback_in_a_route() -> None:
    inner = Route({"x": Named("x", DOWN), "y": Named("y", "wrong")}, lambda _: "x")
    assert asyncio.run(answer(Fallback([inner, Named("b", "Three.")]))) == "Three."
    outer = Route({"f": Fallback([Named("a", DOWN), Named("b", "Three.")])}, lambda _: "f")
    assert asyncio.run(answer(outer)) == "Three."


def test_impossible_combinations_are_errors() -> None:
    one = Named("a")
    for wrong, message in (
        (lambda: Fallback([]), "needs a model"),
        (lambda: Fallback([Fallback([one])]), "one list"),
        (lambda: Fallback([Route({"f": Fallback([one])}, lambda _: "f")]), "one list"),
        (lambda: Fallback([one], on={"bad"}), "no failure 'bad'"),  # type: ignore[arg-type]
        (lambda: Route({}, lambda _: ""), "needs a model"),
    ):
        with pytest.raises(DefinitionError, match=message):
            wrong()
    with pytest.raises(DefinitionError, match="no model 'z'"):
        asyncio.run(answer(Route({"a": one}, lambda _: "z")))
    with pytest.raises(TypeError, match="backends"):
        Fallback([object()])  # type: ignore[list-item]


def test_budget_of_money_needs_the_prices_of_all_models() -> None:
    with pytest.raises(ConfigurationError, match="none are published for 'b'"):
        config = AgentConfig(budget=Budget(money=1, prices={"a": Prices()}))
        Agent(Fallback([Named("a"), Named("b")]), config=config)
