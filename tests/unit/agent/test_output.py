"""Structured output: asked for in the way that a model's API allows, validated, corrected, streamed in parts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from toolwire import (
    Agent,
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Client,
    ConfigurationError,
    ContentDelta,
    DefinitionError,
    Event,
    Finish,
    FinishReason,
    Message,
    ParsedResponse,
    RunFailed,
    TextPart,
    ToolCall,
    ToolResult,
    apis,
    get_api,
    tool,
)
from toolwire.agent import AgentConfig, AgentEvent, AgentTeam, Budget, Member, PartialOutput, RunEnded, ToolFinished
from toolwire.agent.loop import TOO_EARLY
from toolwire.agent.output import with_output
from toolwire.models import ApiBackend
from toolwire.testing import ScriptedBackend, ScriptedTransport


class City(BaseModel):
    """A city."""

    name: str
    people: int = Field(ge=0)
    river: str = "none"

    @field_validator("name")
    @classmethod
    def known(cls, name: str) -> str:
        if name == "Atlantis":
            raise ValueError("Atlantis is a legend")
        return name


class River(BaseModel):
    length: int


@dataclass
class Point:
    x: int
    y: int = 0


class Label(TypedDict):
    text: str


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BERN = City(name="Bern", people=130_000)
BERN_JSON = '{"name": "Bern", "people": 130000}'
BERN_DATA = {"name": "Bern", "people": 130000}


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


def give(data: dict[str, Any], *others: ToolCall) -> ParsedResponse:
    """An answer that calls the output tool."""
    calls = (*others, ToolCall("final_answer", data, "call_1"))
    return ParsedResponse(tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS)


def agent_of(
    answers: Sequence[Any], output_type: Any, *, tools: Sequence[Any] = (), format: str = "", **config: Any
) -> tuple[Agent[Any], ScriptedBackend]:
    backend = ScriptedBackend(answers, format=format)
    return Agent(backend, tools, AgentConfig(**config), output_type=output_type, telemetry=False), backend


def ask(agent: Agent[Any] | AgentTeam[Any], task: str, **options: Any) -> Any:
    return asyncio.run(agent.ask(task, **options))


def events_of(agent: Agent[Any]) -> list[AgentEvent]:
    async def run() -> list[AgentEvent]:
        return [event async for event in agent.run("Which city?")]

    return asyncio.run(run())


def end_of(agent: Agent[Any]) -> RunEnded:
    end = events_of(agent)[-1]
    assert isinstance(end, RunEnded)
    return end


# -- a required tool call ----------------------------------------------------------------------------------------


NOON = ParsedResponse(tool_calls=(ToolCall("clock", {}, "call_0"),), finish_reason=FinishReason.TOOL_CALLS)


@pytest.mark.parametrize(
    ("first", "options", "told"),
    [
        (give(BERN_DATA), {}, TOO_EARLY),
        (BERN_JSON, {"output_mode": "native"}, "You called no tool"),
        (BERN_JSON, {"format": "hermes"}, "You called no tool"),
        (give(BERN_DATA), {"format": "hermes"}, TOO_EARLY),
    ],
)
def test_an_output_is_not_a_required_tool_call(first: Any, options: dict[str, Any], told: str) -> None:
    answers = [first, NOON, BERN_JSON if isinstance(first, str) else first]
    agent, backend = agent_of(answers, City, tools=[clock], require_tool_call=True, **options)
    end = end_of(agent)
    assert (end.reason, end.output, end.rounds, end.has_result) == ("answered", BERN, 3, True)
    assert told in str(backend.requests[1].messages)
    free, _ = agent_of([first], City, tools=[clock], **options)
    assert end_of(free).has_result is False


# -- the three ways ----------------------------------------------------------------------------------------------


def test_native() -> None:
    agent, backend = agent_of([BERN_JSON], City, output_mode="native")
    assert ask(agent, "Which city?") == BERN
    (request,) = backend.requests
    assert request.output is not None
    assert request.output.name == "City"
    assert request.output.strict is True
    assert request.tools == ()


def test_tool() -> None:
    agent, backend = agent_of([give(BERN_DATA)], City)
    end = end_of(agent)
    assert (end.reason, end.output, end.good) == ("answered", BERN, True)
    assert end.answer == BERN_JSON
    assert end.calls == 0  # nothing ran
    (request,) = backend.requests
    assert [definition.name for definition in request.tools] == ["final_answer"]
    assert "A city." in request.tools[0].description
    assert request.tool_choice.mode == "required"
    assert request.output is None


def shown(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "forge_xml", "mistral"])
def test_text_with_tools(format: str) -> None:
    agent, backend = agent_of([give(BERN_DATA)], City, format=format, tools=[clock])
    assert ask(agent, "Which city?") == BERN
    (request,) = backend.requests
    assert [definition.name for definition in request.tools] == ["clock", "final_answer"]
    assert "final_answer" in shown(request.messages[0])
    assert "a call of the tool final_answer" in shown(request.messages[-1])


def test_text_without_tools() -> None:
    agent, backend = agent_of([BERN_JSON], City, format="hermes")
    assert ask(agent, "Which city?") == BERN
    (request,) = backend.requests
    assert request.tools == ()
    assert '"people"' in shown(request.messages[-1])
    agent, backend = agent_of([give(BERN_DATA)], City, format="hermes", output_mode="tool")
    assert ask(agent, "Which city?") == BERN
    assert [definition.name for definition in backend.requests[0].tools] == ["final_answer"]


@pytest.mark.parametrize(
    "text",
    [
        BERN_JSON,
        f"```json\n{BERN_JSON}\n```",
        f"Here it is:\n\n```\n{BERN_JSON}\n```\nAnything else?",
        "{'name': 'Bern', 'people': '130000',}",
    ],
)
@pytest.mark.parametrize("format", ["", "hermes"])
def test_plain_json_is_accepted_where_it_validates(format: str, text: str) -> None:
    agent, _ = agent_of([text], City, format=format)
    assert ask(agent, "Which city?") == BERN


def test_text_mode_of_an_api_instructs_the_model() -> None:
    agent, backend = agent_of([BERN_JSON], City, output_mode="text", system="Be brief.")
    assert ask(agent, "Which city?") == BERN
    (request,) = backend.requests
    assert request.output is None
    assert request.tools == ()
    assert shown(request.messages[0]) == "Be brief."
    assert '"people"' in shown(request.messages[-1])


NATIVE = {
    *("anthropic_messages", "anthropic_bedrock", "anthropic_vertex", "azure", "azure_deployments"),
    *("bedrock_converse", "openai_chat", "openai_responses", "xai"),
}
NO_SCHEMAS = {"deepseek", "moonshot", "zai"}


@pytest.mark.parametrize("with_tools", [False, True])
@pytest.mark.parametrize("name", apis())
def test_way_of_each_api(name: str, with_tools: bool) -> None:
    native = name in NATIVE or (name not in NO_SCHEMAS and not with_tools)
    answer = ParsedResponse(BERN_JSON) if native else give(BERN_DATA)
    transport = ScriptedTransport(name, [answer])
    client = Client(name, "m", base_url="https://models.test", transport=transport)
    agent = Agent(ApiBackend(client), [clock] if with_tools else [], output_type=City, telemetry=False)
    assert ask(agent, "Which city?") == BERN
    request = get_api(name).decode_request(transport.requests[0])
    assert (request.output is not None) is native
    assert ("final_answer" in [definition.name for definition in request.tools]) is not native


def test_servers_that_hide_the_schema_get_it_in_the_prompt() -> None:
    transport = ScriptedTransport("ollama", [ParsedResponse(BERN_JSON)])
    client = Client("ollama", "m", base_url="http://localhost:1", transport=transport)
    assert ask(Agent(ApiBackend(client), output_type=City, telemetry=False), "Which city?") == BERN
    assert '"people"' in transport.requests[0]["messages"][0]["content"]


def test_schema_that_an_api_cannot_guarantee_is_asked_for_by_the_tool() -> None:
    class Tree(BaseModel):
        children: list[Tree] = []

    Tree.model_rebuild()
    transport = ScriptedTransport("anthropic", [give({"children": [{}]})])
    client = Client("anthropic", "m", base_url="https://models.test", transport=transport)
    tree = ask(Agent(ApiBackend(client), output_type=Tree, telemetry=False), "Grow.")
    assert tree == Tree(children=[Tree()])


def test_text_model_has_no_native_output() -> None:
    agent, _ = agent_of([BERN_JSON], City, format="hermes", output_mode="native")
    with pytest.raises(ConfigurationError, match="native"):
        ask(agent, "Which city?")


# -- types -------------------------------------------------------------------------------------------------------


TYPES: list[tuple[Any, Any, Any]] = [
    (City, BERN_DATA, BERN),
    (Point, {"x": "1"}, Point(1)),
    (Label, {"text": "a"}, {"text": "a"}),
    (SCHEMA, {"n": 1}, {"n": 1}),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (City | River, {"length": 7}, River(length=7)),
    (list[City], [BERN_DATA], [BERN]),
    ({"type": "array", "items": {"type": "integer"}}, [1, 2], [1, 2]),
    (int, 42, 42),
    (bool, True, True),
    (float | None, None, None),
    (Literal["yes", "no"], "yes", "yes"),
    (tuple[int, str], [1, "a"], (1, "a")),
]
OBJECTS = (City, Point, Label, SCHEMA, dict[str, int])


@pytest.mark.parametrize(("kind", "data", "value"), TYPES, ids=[str(kind)[:30] for kind, _, _ in TYPES])
@pytest.mark.parametrize("mode", ["native", "tool"])
def test_types(mode: str, kind: Any, data: Any, value: Any) -> None:
    wrapped = data if kind in OBJECTS else {"response": data}
    answer = give(wrapped) if mode == "tool" else ParsedResponse(json.dumps(wrapped))
    agent, _ = agent_of([answer], kind, output_mode=mode)
    end = end_of(agent)
    assert (end.reason, end.output) == ("answered", value)


def test_output_of_text_is_the_answer_of_a_run_that_has_one() -> None:
    @tool(ends_turn=True)
    def done(text: str) -> str:
        """End."""
        return text

    finishing = ParsedResponse(tool_calls=(ToolCall("done", {"text": "yes"}, "1"),))
    ended = Agent(ScriptedBackend([finishing]), [done]).run_to_end_sync("Well?")
    assert (ended.reason, ended.output) == ("finished", "yes")
    cut = Agent(ScriptedBackend([ParsedResponse("Be", finish_reason=FinishReason.LENGTH)])).run_to_end_sync("Well?")
    assert (cut.reason, cut.answer, cut.output) == ("length", "Be", None)


def test_recorded_end_has_the_output_of_its_agent() -> None:
    recorded = replace(Agent(ScriptedBackend(["Bern."])).run_to_end_sync("?"), output=None)
    assert with_output(recorded, None).output == "Bern."
    assert with_output(replace(recorded, reason="length"), None).output is None


def test_text_is_the_default() -> None:
    for output_type in (None, str):
        agent, backend = agent_of(["Bern."], output_type)
        end = end_of(agent)
        assert (end.answer, end.output) == ("Bern.", "Bern.")
        assert agent.output is None
        assert backend.requests[0].output is None
    assert ask(agent_of(["Bern."], str)[0], "Which city?") == "Bern."


def test_prose_is_accepted_where_the_type_admits_text() -> None:
    agent, backend = agent_of(["It is noon."], City | str)
    assert ask(agent, "Which city?") == "It is noon."
    assert backend.requests[0].tool_choice.mode == "auto"


def test_nulls_for_optional_properties_mean_that_they_are_missing() -> None:
    class Country(BaseModel):
        capital: City

    data = {"capital": {**BERN_DATA, "river": None}}
    agent, _ = agent_of([give(data)], Country)
    assert ask(agent, "Which city?") == Country(capital=BERN)


def test_types_without_a_schema_are_refused() -> None:
    with pytest.raises(DefinitionError, match="no JSON Schema"):
        Agent(ScriptedBackend([]), output_type=object.__new__, telemetry=False)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match=r"\$defs"):
        reference = {"type": "array", "items": {"$ref": "#/properties/a"}}
        Agent(ScriptedBackend([]), output_type=reference, telemetry=False)


def test_a_tool_of_that_name_is_refused() -> None:
    with pytest.raises(DefinitionError, match="final_answer"):
        Agent(ScriptedBackend([]), [clock.replace(name="final_answer")], output_type=City, telemetry=False)


# -- corrections -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "issue"),
    [
        ({"name": "Bern"}, "people"),
        ({"name": "Bern", "people": -1}, "/people: is -1"),
        ({"name": "Atlantis", "people": 0}, "/name: Value error, Atlantis is a legend"),
    ],
)
@pytest.mark.parametrize("mode", ["native", "tool"])
def test_invalid_output_is_explained(mode: str, data: dict[str, Any], issue: str) -> None:
    first = give(data) if mode == "tool" else ParsedResponse(json.dumps(data))
    second = give(BERN_DATA) if mode == "tool" else BERN_JSON
    agent, backend = agent_of([first, second], City, output_mode=mode)
    end = end_of(agent)
    assert (end.output, end.rounds) == (BERN, 2)
    shown = [
        part.text
        for message in backend.requests[1].messages
        for part in message.parts
        if isinstance(part, TextPart | ToolResult)
    ]
    assert any(issue in text for text in shown)


def test_prose_is_corrected_in_tool_mode() -> None:
    agent, backend = agent_of(["It is Bern.", give(BERN_DATA)], City)
    assert ask(agent, "Which city?") == BERN
    (note,) = backend.requests[1].messages[-1].parts
    assert isinstance(note, TextPart)
    assert "calling final_answer" in note.text


def test_text_model_is_shown_the_call() -> None:
    agent, backend = agent_of(["It is Bern.", give(BERN_DATA)], City, format="hermes", tools=[clock])
    assert ask(agent, "Which city?") == BERN
    (note,) = backend.requests[1].messages[-1].parts
    assert isinstance(note, TextPart)
    assert '<tool_call>\n{"name": "final_answer"' in note.text


@pytest.mark.parametrize("retries", [0, 2])
def test_too_many_invalid_outputs_end_the_run(retries: int) -> None:
    agent, backend = agent_of([give({"name": "Bern"})] * 9, City, output_retries=retries)
    end = end_of(agent)
    assert (end.reason, end.output, end.good) == ("failures", None, False)
    assert end.detail.startswith(f"no valid output in {retries + 1} answers: ")
    assert "people" in end.detail
    assert len(backend.requests) == retries + 1
    with pytest.raises(RunFailed, match="no valid output"):
        ask(agent_of([give({"name": "Bern"})] * 9, City)[0], "Which city?")


def test_cut_output_is_not_accepted() -> None:
    agent, _ = agent_of([ParsedResponse("42", finish_reason=FinishReason.LENGTH)], int, output_mode="native")
    end = end_of(agent)
    assert (end.reason, end.output) == ("length", None)


# -- tools beside the output ---------------------------------------------------------------------------------------


def test_tools_run_before_the_output() -> None:
    agent, backend = agent_of(
        [ParsedResponse(tool_calls=(ToolCall("clock", {}, "c1"),)), give(BERN_DATA)], City, tools=[clock]
    )
    end = end_of(agent)
    assert (end.output, end.calls, end.rounds) == (BERN, 1, 2)
    assert [definition.name for definition in backend.requests[0].tools] == ["clock", "final_answer"]


def test_tools_beside_the_output_run_too() -> None:
    agent, _ = agent_of([give(BERN_DATA, ToolCall("clock", {}, "c1"))], City, tools=[clock])
    events = events_of(agent)
    outcomes = [event.outcome for event in events if isinstance(event, ToolFinished)]
    assert [outcome.call.name for outcome in outcomes] == ["final_answer", "clock"]
    end = events[-1]
    assert isinstance(end, RunEnded)
    assert (end.output, end.calls) == (BERN, 1)
    assert [part.tool_name for part in end.messages[-1].parts if isinstance(part, ToolResult)] == [
        "clock",
        "final_answer",
    ]


def test_output_needs_no_budget_of_calls() -> None:
    agent, _ = agent_of([give(BERN_DATA)], City, budget=Budget(calls=0))
    assert end_of(agent).output == BERN
    agent, _ = agent_of([give(BERN_DATA, ToolCall("clock", {}, "c1"))], City, tools=[clock], budget=Budget(calls=1))
    assert end_of(agent).output == BERN


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_last_answer_gives_the_output(mode: str) -> None:
    last = give(BERN_DATA) if mode == "tool" else BERN_JSON
    calls = ParsedResponse(tool_calls=(ToolCall("clock", {}, "c1"),))
    agent, backend = agent_of([calls, last], City, tools=[clock], output_mode=mode, budget=Budget(rounds=2))
    end = end_of(agent)
    assert (end.reason, end.output, end.good) == ("budget", BERN, False)
    choice = backend.requests[-1].tool_choice
    assert (choice.mode, choice.names) == (("required", ("final_answer",)) if mode == "tool" else ("none", ()))


def test_a_tool_that_ends_the_turn_gives_no_output() -> None:
    @tool(ends_turn=True)
    def stop() -> str:
        """Stop."""
        return "stopped"

    calls = ParsedResponse(tool_calls=(ToolCall("stop", {}, "c1"),))
    agent, _ = agent_of([calls], City, tools=[stop])
    with pytest.raises(RunFailed, match="tool stop"):
        ask(agent, "Stop.")


def test_conversation_continues_after_an_output() -> None:
    agent, backend = agent_of([give(BERN_DATA), give(BERN_DATA)], City)
    end = end_of(agent)
    assert isinstance(end.messages[-1].parts[0], ToolResult)
    assert ask(agent, "And now?", history=end.messages) == BERN
    assert backend.requests[1].messages[: len(end.messages)] == end.messages


def test_member_of_a_team_answers_with_the_text_of_its_output() -> None:
    member, _ = agent_of([give(BERN_DATA)], City, name="geographer")
    calls = ParsedResponse(tool_calls=(ToolCall("geographer", {"task": "Which city?"}, "c1"),))
    backend = ScriptedBackend([calls, "It is Bern."])
    team = AgentTeam(Agent(backend, telemetry=False), [Member(member, "Knows cities.")])
    assert ask(team, "Which city?") == "It is Bern."
    (result,) = backend.requests[1].messages[-1].parts
    assert isinstance(result, ToolResult)
    assert result.text == BERN_JSON


# -- parts of an output ------------------------------------------------------------------------------------------


def in_pieces(text: str) -> list[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def streamed(text: str) -> list[Event]:
    return [*map(ContentDelta, in_pieces(text)), Finish(FinishReason.STOP)]


def streamed_call(text: str, data: dict[str, Any]) -> list[Event]:
    return [
        CallStart(0, "final_answer", "c1"),
        *(ArgumentsDelta(0, piece) for piece in in_pieces(text)),
        CallEnd(0, ToolCall("final_answer", data, "c1"), True),
        Finish(FinishReason.TOOL_CALLS),
    ]


@pytest.mark.parametrize("answer", [streamed(BERN_JSON), streamed_call(BERN_JSON, BERN_DATA)], ids=["native", "tool"])
def test_parts_are_streamed(answer: list[Event]) -> None:
    agent, _ = agent_of([answer], City, output_mode="native" if isinstance(answer[0], ContentDelta) else "tool")
    parts = [event.value for event in events_of(agent) if isinstance(event, PartialOutput)]
    assert parts[0] == {}
    assert {"name": "Be"} in parts
    assert {"name": "Bern"} in parts
    assert parts[-1] == BERN_DATA
    assert all(before != after for before, after in pairwise(parts))


def test_parts_of_a_list_are_unwrapped() -> None:
    agent, _ = agent_of([streamed('{"response": ["a", "bc"]}')], list[str], output_mode="native")
    events = events_of(agent)
    parts = [event.value for event in events if isinstance(event, PartialOutput)]
    assert parts[0] == [""]
    assert parts[-1] == ["a", "bc"]
    assert all(isinstance(part, list) for part in parts)


def test_prose_has_no_parts() -> None:
    agent, _ = agent_of([streamed("Well, {that} is hard."), BERN_JSON], City)
    parts = [event.value for event in events_of(agent) if isinstance(event, PartialOutput)]
    assert parts == [BERN_DATA]


def test_agents_without_an_output_type_have_no_parts() -> None:
    agent, _ = agent_of([streamed(BERN_JSON)], None)
    assert not [event for event in events_of(agent) if isinstance(event, PartialOutput)]


# -- settings ----------------------------------------------------------------------------------------------------


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="output_mode is one of"):
        AgentConfig(output_mode="json")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="output_retries"):
        AgentConfig(output_retries="2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="telemtry"):
        Agent(ScriptedBackend([]), telemtry=False)  # type: ignore[call-overload]
