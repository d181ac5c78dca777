"""The loop over a scripted model: what it is told, what runs, and how it ends."""

import asyncio
from typing import Any

import pytest

import toolwire
from toolwire import FinishReason, ParsedResponse, Problem, ProviderError, Tier, ToolCall, ToolError, ToolResult, Usage
from toolwire.agent import Agent, AgentConfig, AgentTeam, Budget, Member, Prices
from toolwire.agent.journal import MemoryJournal
from toolwire.agent.run_events import CorrectionAdded, MemberEvent, RunEnded, ToolFinished
from toolwire.builtin.toolsets import answer_tool, ending_tools
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import Message, ReasoningPart, TextPart
from toolwire.testing import ScriptedBackend


@toolwire.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@toolwire.tool
def fail() -> int:
    """Fails."""
    raise ToolError("broken")


def calling(*calls: ToolCall, content: str = "", **more: Any) -> ParsedResponse:
    return ParsedResponse(content, tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS, **more)


def run(agent: Agent, task: str = "do it", **options: Any) -> tuple[list[Any], RunEnded]:
    async def main() -> list[Any]:
        return [event async for event in agent.run(task, **options)]

    events = asyncio.run(main())
    assert isinstance(events[-1], RunEnded)
    assert not any(isinstance(event, RunEnded) for event in events[:-1])
    return events, events[-1]


def said(backend: ScriptedBackend, at: int) -> str:
    return "\n".join(
        part.text for message in backend.requests[at].messages for part in message.parts if isinstance(part, TextPart)
    )


@pytest.mark.mission("A19", "D50", "D52", "F3", "G7")
def test_calls_run_and_the_model_reads_their_results() -> None:
    calls = [ToolCall("add", {"a": 1, "b": 2}, "1"), ToolCall("add", {"a": 3, "b": 4}, "2")]
    backend = ScriptedBackend([calling(*calls, content="Let me add."), ParsedResponse("3 and 7")])
    events, end = run(Agent(backend, [add]))
    assert (end.reason, end.answer, end.rounds, end.calls) == ("answered", "3 and 7", 2, 2)
    results = backend.requests[1].messages[-1]
    assert results.role == "tool"
    assert results.parts == (ToolResult("1", "add", 3), ToolResult("2", "add", 7))
    assert [message.role for message in end.messages] == ["user", "assistant", "tool", "assistant"]
    assert sum(isinstance(event, ToolFinished) for event in events) == 2


@pytest.mark.parametrize("in_parts", [False, True], ids=["calls", "calls in parts"])
@pytest.mark.parametrize(("maximum", "kept"), [(100, 100), (3, 3), (250, 250), (None, 250)])
def test_calls_of_an_answer_that_are_too_many_are_dropped(maximum: int | None, kept: int, in_parts: bool) -> None:
    calls = [ToolCall("add", {"a": at, "b": 0}, f"c{at}") for at in range(250)]
    answer = calling(*calls, parts=(TextPart("I add."), *calls) if in_parts else ())
    backend = ScriptedBackend([answer, calling(ToolCall("add", {"a": 1, "b": 2}, "z")), "done"])
    events, end = run(Agent(backend, [add], AgentConfig(calls_per_answer=maximum)))
    finished = [event.outcome.call.id for event in events if isinstance(event, ToolFinished)]
    assert sorted(finished[:-1]) == sorted(call.id for call in calls[:kept])
    assert end.calls == kept + 1
    # Each call in the conversation has a result, and the dropped ones are not in it.
    assert [part.id for part in end.messages[1].parts if isinstance(part, ToolCall)] == [
        part.call_id for part in end.messages[2].parts if isinstance(part, ToolResult)
    ]
    note = f"You made 250 calls in one answer. Only the first {maximum} count; the others were dropped"
    assert (note in said(backend, 1)) == (kept < 250)
    assert note not in said(backend, 2)


def test_agent_has_a_maximum_of_calls_by_default() -> None:
    assert AgentConfig().calls_per_answer == 100
    with pytest.raises(ValueError, match="calls_per_answer must be at least 1, not 0"):
        AgentConfig(calls_per_answer=0)


def test_conversation_is_continued_with_history() -> None:
    backend = ScriptedBackend([ParsedResponse("one"), ParsedResponse("two")])
    agent = Agent(backend)
    _, end = run(agent, "first")
    run(agent, "second", history=end.messages)
    assert [message.role for message in backend.requests[1].messages] == ["user", "assistant", "user"]


@pytest.mark.mission("C28", "D46", "F34")
def test_correction_is_in_one_prompt_only() -> None:
    problem = Problem("malformed", 0, "<tool_call>{", "The call could not be read.", 0)
    broken = ParsedResponse("<tool_call>{", incomplete=(ToolCall("add"),), problems=(problem,))
    good = calling(ToolCall("add", {"a": 1, "b": 2}, "1"))
    backend = ScriptedBackend([broken, good, ParsedResponse("3")], format="hermes")
    events, end = run(Agent(backend, [add]))
    (told,) = [event.text for event in events if isinstance(event, CorrectionAdded)]
    assert "could not be read" in told
    assert '{"name": "add"' in told
    assert told in said(backend, 1)
    assert told not in said(backend, 2)
    assert end.reason == "answered"
    assert all("could not be read" not in str(message) for message in end.messages)


@pytest.mark.mission("C32", "C41", "F36")
@pytest.mark.need(33)
@pytest.mark.parametrize(
    ("budget", "what"),
    [
        (Budget(rounds=3), "3 rounds"),
        (Budget(calls=2), "2 calls"),
        (Budget(tokens=20), "20 tokens"),
        (Budget(money=0.002, prices=Prices(input=50, output=100)), "0.002 money"),
        (Budget(seconds=0.0), "0 seconds"),
    ],
)
def test_model_is_asked_for_a_last_answer_when_a_budget_is_used_up(budget: Budget, what: str) -> None:
    many = [
        calling(ToolCall("add", {"a": at, "b": 0}, str(at)), usage=Usage(input_tokens=10, output_tokens=5))
        for at in range(9)
    ]
    backend = ScriptedBackend([*many[: 0 if "seconds" in what else 2], ParsedResponse("as far as I know")])
    _, end = run(Agent(backend, [add], AgentConfig(budget=budget)))
    assert end.reason == "budget"
    assert what in end.detail
    assert end.answer == "as far as I know"
    assert backend.requests[-1].tool_choice.mode == "none"
    assert backend.requests[-1].tools == backend.requests[0].tools
    assert "No more tool calls" in said(backend, -1)


@pytest.mark.parametrize("usage", [Usage(-1000, 5), Usage(1000, -999), Usage(10, 5, cached_tokens=10**6), Usage()])
def test_token_counts_that_cannot_be_do_not_extend_a_budget(usage: Usage) -> None:
    answers = [calling(ToolCall("add", {"a": at, "b": 0}, str(at)), usage=usage) for at in range(9)]
    budget = Budget(money=0.002, prices=Prices(input=100, output=200, cached=10))
    _, end = run(Agent(ScriptedBackend([*answers, ParsedResponse("done")]), [add], AgentConfig(budget=budget)))
    assert end.reason == "budget"
    assert end.usage.input_tokens >= 0
    assert end.usage.output_tokens >= 0


@pytest.mark.mission("C29", "C30")
def test_failures_of_one_kind_and_tool_end_the_run() -> None:
    backend = ScriptedBackend([calling(ToolCall("fail", {}, str(at))) for at in range(9)])
    _, end = run(Agent(backend, [fail]))
    assert end.reason in ("failures", "repeats")
    nameless = ScriptedBackend([calling(ToolCall(f"tool{at}", {}, str(at))) for at in range(9)] + [ParsedResponse("x")])
    _, end = run(Agent(nameless, [add]))
    assert end.reason == "failures", "a tool that there is not is like another"


@pytest.mark.mission("C29", "F36")
@pytest.mark.need(33)
def test_repeated_calls_are_warned_of_once() -> None:
    same = calling(ToolCall("add", {"a": 1, "b": 1}, "1"))
    backend = ScriptedBackend([same, same, same, ParsedResponse("2")])
    events, end = run(Agent(backend, [add]))
    assert (end.reason, end.answer, end.rounds, end.calls) == ("repeats", "2", 4, 3)
    assert backend.requests[-1].tool_choice.mode == "none"
    assert (
        sum(
            "did before" in event.text or "same calls" in event.text
            for event in events
            if isinstance(event, CorrectionAdded)
        )
        == 1
    )


@pytest.mark.mission("C24", "C31")
def test_model_is_asked_again_for_a_required_call() -> None:
    answers = [ParsedResponse("prose"), calling(ToolCall("add", {"a": 1, "b": 1}, "1"))]
    backend = ScriptedBackend(answers, format="hermes")
    events, _ = run(Agent(backend, [add], AgentConfig(require_tool_call=True, budget=Budget(rounds=4))))
    told = next(event.text for event in events if isinstance(event, CorrectionAdded))
    assert "called no tool" in told
    assert '<tool_call>\n{"name": "add"' in told, "and how one is written"
    assert backend.requests[0].tool_choice.mode == "required"


@pytest.mark.mission("C31")
def test_an_answer_that_rests_on_a_result_ends_the_run() -> None:
    failing, adding = calling(ToolCall("add", {"a": 1}, "1")), calling(ToolCall("add", {"a": 1, "b": 1}, "2"))
    backend = ScriptedBackend([failing, ParsedResponse("prose"), adding, ParsedResponse("2")])
    _, end = run(Agent(backend, [add], AgentConfig(require_tool_call=True)))
    assert (end.reason, end.answer, end.rounds, end.has_result) == ("answered", "2", 4, True)
    assert [request.tool_choice.mode for request in backend.requests] == ["required", "required", "required", "auto"]


@pytest.mark.mission("C30", "D56")
def test_answer_that_breaks_off_is_asked_for_again() -> None:
    cut = ParsedResponse("half", finish_reason=FinishReason.ERROR)
    backend = ScriptedBackend([cut, ParsedResponse("whole")])
    assert run(Agent(backend))[1].answer == "whole"
    backend = ScriptedBackend([cut, cut])
    assert run(Agent(backend))[1].reason == "error"
    backend = ScriptedBackend([ProviderError("no route")])
    end = run(Agent(backend))[1]
    assert (end.reason, end.detail) == ("error", "no route")


@pytest.mark.mission("F38", "G1", "G2")
def test_gate_hides_tools_that_the_task_does_not_ask_for() -> None:
    done = list[str]()
    config = AgentConfig(gate="intent")

    @toolwire.tool(tier=Tier.RUN)
    def write() -> str:
        done.append("written")
        return "ok"

    backend = ScriptedBackend([calling(ToolCall("write", {}, "1")), ParsedResponse("sorry")])
    events, _ = run(Agent(backend, [add, write], config), "What is one and one?")
    assert [tool.name for tool in backend.requests[0].tools] == ["add"]
    (call,) = [event for event in events if isinstance(event, ToolFinished)]
    assert "tier RUN" in (call.outcome.result.error or "")
    assert not done
    backend = ScriptedBackend([calling(ToolCall("write", {}, "1")), ParsedResponse("done")])
    events, _ = run(Agent(backend, [add, write], config), "Write it to the file.")
    assert events[0].intent.phrase.casefold() == "write"
    assert done == ["written"]


@pytest.mark.need(35)
def test_many_tools_are_found_on_demand() -> None:
    def made(at: int) -> toolwire.ToolDefinition:
        return toolwire.ToolDefinition(f"measure_{at}", "Measures something rather particular. " * 9, tier=Tier.CRAWL)

    def weather(city: str) -> str:
        """The weather in a city."""
        return f"{city}: rain"

    search = calling(ToolCall("find_tools", {"query": "weather"}, "1"))
    backend = ScriptedBackend([search, calling(ToolCall("weather", {"city": "Oslo"}, "2")), ParsedResponse("rain")])
    agent = Agent(backend, [*map(made, range(50)), weather], AgentConfig(definitions=500))
    _, end = run(agent, "What is the weather in Oslo?")
    assert [[tool.name for tool in request.tools] for request in backend.requests[:2]] == [
        ["find_tools"],
        ["find_tools", "weather"],
    ]
    assert end.answer == "rain"
    backend = ScriptedBackend([ParsedResponse("dry")])
    agent.backend = backend
    run(agent, "And in Rome?", history=end.messages)
    assert "weather" in [tool.name for tool in backend.requests[0].tools]


def test_ask_returns_the_answer_or_raises_the_reason() -> None:
    assert asyncio.run(Agent(ScriptedBackend([ParsedResponse("yes")])).ask("?")) == "yes"
    with pytest.raises(toolwire.ToolwireError, match=r"no answer \(error\): no route"):
        asyncio.run(Agent(ScriptedBackend([ProviderError("no route")])).ask("?"))


@pytest.mark.mission("C22", "F36")
def test_closing_the_iterator_stops_tools() -> None:
    stopped = list[str]()

    async def forever() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("yes")
        return ""

    async def main() -> None:
        agent = Agent(ScriptedBackend([calling(ToolCall("forever", {}, "1"))]), [forever])
        events = agent.run("go")
        async for event in events:
            if type(event).__name__ == "ToolStarted":
                break
        await events.aclose()

    asyncio.run(main())
    assert stopped == ["yes"]


def test_member_is_called_as_a_tool() -> None:
    helper = Agent(
        ScriptedBackend(
            [
                calling(ToolCall("add", {"a": 2, "b": 2}, "m"), usage=Usage(1, 1)),
                ParsedResponse("four", usage=Usage(7, 3)),
            ]
        ),
        [add],
        AgentConfig(name="counter"),
    )
    called = calling(ToolCall("counter", {"task": "2 + 2"}, "1"), usage=Usage(5, 5))
    lead = Agent(ScriptedBackend([called, ParsedResponse("It is four.", usage=Usage(2, 2))]))
    AgentTeam(lead, [Member(helper, "Adds numbers.")])
    events, end = run(lead)
    assert end.answer == "It is four."
    assert (end.usage.input_tokens, end.usage.output_tokens) == (15, 11)
    told = [event.event for event in events if isinstance(event, MemberEvent)]
    assert any(isinstance(event, ToolFinished) and event.outcome.result.result == 4 for event in told)
    results = [event.outcome.result for event in events if isinstance(event, ToolFinished)]
    assert results == [ToolResult("1", "counter", "four")]


def test_member_that_fails_is_a_tool_that_fails() -> None:
    helper = Agent(ScriptedBackend([ProviderError("no route")]), config=AgentConfig(name="helper"))
    lead = Agent(ScriptedBackend([calling(ToolCall("helper", {"task": "x"}, "1")), ParsedResponse("sorry")]))
    AgentTeam(lead, [Member(helper, "Helps.")])
    events, end = run(lead)
    (done,) = [event for event in events if isinstance(event, ToolFinished)]
    assert done.outcome.result.error == "helper has no answer (error): no route"
    assert end.good


@pytest.mark.mission("C31")
def test_tool_that_ends_the_turn_ends_the_run() -> None:
    finish = calling(ToolCall("task_completion", {"result": "all done"}, "1"))
    backend = ScriptedBackend([ParsedResponse("prose"), finish])
    agent = Agent(backend, [add, *ending_tools()], AgentConfig(require_tool_call=True))
    _, end = run(agent)
    assert (end.reason, end.answer, end.detail, end.rounds) == ("finished", "all done", "task_completion", 2)
    assert end.has_result, "the result of the tool that ends the turn is the answer"
    adding = calling(ToolCall("add", {"a": 1, "b": 1}, "2"))
    backend = ScriptedBackend([adding, ParsedResponse("prose"), finish])
    _, end = run(Agent(backend, [add, *ending_tools()], AgentConfig(require_tool_call=True)))
    assert (end.reason, end.rounds) == ("finished", 3), "the result of another call is not enough"


@toolwire.tool(gives_answer=True)
def reply(words: str) -> str:
    """Answers."""
    return words


ANSWERING = {
    "final_answer": (answer_tool(), {"text": "It is 2."}),
    "other name": (answer_tool().replace(name="finish"), {"text": "It is 2."}),
    "own tool": (reply, {"words": "It is 2."}),
}


@pytest.mark.parametrize("tool, arguments", ANSWERING.values(), ids=ANSWERING)
def test_answer_that_is_a_call_is_prose_in_the_conversation_and_no_result(tool: Any, arguments: Any) -> None:
    call = ToolCall(tool.definition.name, arguments, "2")
    thought = ReasoningPart("Easy.", signature="s")
    parts = (thought, TextPart("So:"), thought, TextPart("\n"), ReasoningPart("", signature="of the call"), call)
    answering = calling(call, content="So:", parts=parts)
    backend = ScriptedBackend([calling(ToolCall("add", {"a": 1, "b": 1}, "1")), answering])
    agent = Agent(backend, [add, tool], AgentConfig(require_tool_call=True))
    _, end = run(agent)
    assert (end.reason, end.answer, end.output, end.has_result) == ("finished", "It is 2.", "It is 2.", True)
    assert [message.role for message in end.messages] == ["user", "assistant", "tool", "assistant"]
    assert end.messages[-1].parts == (thought, TextPart("So:"), thought, TextPart("It is 2."))
    backend = ScriptedBackend([answering])
    _, end = run(Agent(backend, [add, tool], AgentConfig(require_tool_call=True)))
    assert (end.reason, end.rounds, end.has_result) == ("finished", 1, False), "no tool was asked for what it says"


def test_answer_beside_another_call_is_prose_behind_its_result() -> None:
    sum_of_two = ToolCall("add", {"a": 1, "b": 1}, "1")
    answering = calling(sum_of_two, ToolCall("final_answer", {"text": "It is 3."}, "2"), content="So:")
    _, end = run(Agent(ScriptedBackend([answering]), [add, answer_tool()]))
    assert (end.reason, end.answer) == ("finished", "It is 3.")
    assert end.messages[1:] == (
        Message("assistant", (TextPart("So:"), sum_of_two)),
        Message("tool", (ToolResult("1", "add", 2),)),
        Message("assistant", "It is 3."),
    )


def test_own_tool_named_final_answer_stays_a_call_with_its_result() -> None:
    @toolwire.tool(name="final_answer", ends_turn=True)
    def look_up(text: str) -> str:
        """Looks up."""
        return f"looked up {text}"

    call = ToolCall("final_answer", {"text": "it"}, "1")
    _, end = run(Agent(ScriptedBackend([calling(call)]), [look_up]))
    assert (end.answer, end.has_result) == ("looked up it", True)
    assert end.messages[-1].parts == (ToolResult("1", "final_answer", "looked up it"),)


def test_empty_answer_by_a_call_is_an_error_that_the_model_reads() -> None:
    backend = ScriptedBackend([calling(ToolCall("final_answer", {"text": text}, "1")) for text in (" ", "It is 2.")])
    _, end = run(Agent(backend, [add, answer_tool()]))
    assert (end.reason, end.answer, end.rounds) == ("finished", "It is 2.", 2)
    assert "the answer is empty" in str(backend.requests[1].messages[-1].parts)
    _, end = run(Agent(ScriptedBackend([calling(ToolCall("reply", {"words": ""}, "1"))]), [reply]))
    assert (end.reason, [message.role for message in end.messages]) == ("finished", ["user"]), "no part without text"


def test_journal_replays_an_answer_that_is_a_call() -> None:
    texts = [calling(ToolCall("add", {"a": 1, "b": 1}, "1")), calling(ToolCall("final_answer", {"text": "Two."}, "2"))]
    journal = MemoryJournal()
    _, end = run(Agent(ScriptedBackend(texts), [add, answer_tool()]), journal=journal, run_id="r")
    later = MemoryJournal(journal.records)
    _, again = run(Agent(ScriptedBackend([]), [add, answer_tool()]), journal=later, run_id="r")
    assert (again.messages, again.answer, again.has_result) == (end.messages, "Two.", True)


def test_tool_of_two_servers_does_not_end_a_run_by_its_name() -> None:
    registry = ToolRegistry()
    for server in ("a", "b"):
        registry.register(add, server=server)
    call = ToolCall("add", {"a": 1, "b": 1}, "1", "a")
    _, end = run(Agent(ScriptedBackend([calling(call), ParsedResponse("2")]), registry))
    assert (end.reason, end.answer) == ("answered", "2")


def test_tools_that_end_the_turn_need_no_search() -> None:
    backend = ScriptedBackend([calling(ToolCall("final_answer", {"text": "Yes."}, "1"))])
    agent = Agent(backend, [add, answer_tool()], AgentConfig(definitions=0))
    run(agent)
    assert [tool.name for tool in backend.requests[0].tools] == ["final_answer", "find_tools"]


def test_tool_that_ends_the_turn_may_be_registered_during_a_run() -> None:
    registry = ToolRegistry([fail])

    @registry.register
    def connect() -> str:
        """Connects."""
        registry.register(answer_tool())
        return "connected"

    backend = ScriptedBackend([calling(ToolCall("connect", {}, "1")), ParsedResponse("done")])
    run(Agent(backend, registry, AgentConfig(definitions=0)))
    assert [[tool.name for tool in request.tools] for request in backend.requests] == [
        ["find_tools"],
        ["final_answer", "find_tools"],
    ]
