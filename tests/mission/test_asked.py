"""What the founding documents ask for, where no test of a module says it by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import toolwire
from toolwire import FinishReason, ParsedResponse, ToolCall, ToolDefinition, ToolResult
from toolwire.agent import Agent, AgentConfig
from toolwire.agent.hooks import NO_TOOLS, PREFIX, Hooks, ManifestInjector, TurnInfo
from toolwire.agent.run_events import ApprovalRequested, ToolFinished, ToolStarted
from toolwire.testing import ScriptedBackend

WEATHER = ToolDefinition(
    "weather",
    "The weather.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "examples": ["Rome"]},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
    },
)
TURN = TurnInfo(1, (WEATHER,), format="autobyteus_xml")
NONE = TurnInfo(1, (), format="autobyteus_xml")


@pytest.mark.mission("D10", "D11", "D12", "D13")
@pytest.mark.parametrize("inject", ["append", "placeholder"])
def test_tools_go_where_the_prompt_says(inject: Any) -> None:
    written = ManifestInjector(inject=inject)
    manifest = toolwire.prompt([WEATHER], format="autobyteus_xml")
    assert written("Be brief. {{tools}} Thanks.", TURN) == f"Be brief. \n{manifest} Thanks."
    assert written("Be brief.\n{{tools}}", TURN) == f"Be brief.\n{manifest}"
    assert written("{{tools}}", TURN) == f"{PREFIX}\n\n{manifest}"
    assert written("You have: {{tools}}", NONE) == f"You have: {NO_TOOLS}"
    assert written("Be brief.", NONE) == "Be brief."
    assert (manifest in written("Be brief.", TURN)) is (inject == "append")
    for text in ("{{ tools", "{% if tools %}", "{{config}} {{7 * 7}}"):
        assert written(text, TURN).startswith(text), "nothing but the placeholder means anything"


@pytest.mark.mission("D14", "D8")
def test_a_definition_tells_the_whole_schema() -> None:
    text = toolwire.render_definitions([WEATHER], format="autobyteus_xml")
    for told in ('"enum": ["C", "F"]', '"default": 3', '"items": {"type": "string"}', '"lat"', '"required": ["city"]'):
        assert told in text
    assert '"properties": {}' in toolwire.render_definitions([ToolDefinition("ping")], format="autobyteus_xml")


@pytest.mark.mission("D6", "D15")
def test_examples_show_what_is_required_and_then_everything() -> None:
    text = toolwire.render_manifest([WEATHER, ToolDefinition("ping")], format="autobyteus_xml").text
    weather, ping = text.split("\n\n")[1:]
    least, everything = weather.split("\nExample:\n")[1].split("\nExample with all parameters:\n")
    read = [toolwire.parse(one, tools=[WEATHER]).tool_calls[0].arguments for one in (least, everything)]
    assert read == [
        {"city": "Rome"},
        {"city": "Rome", "days": 3, "unit": "C", "place": {"lat": 1.5}, "tags": ["the tags"]},
    ]
    assert "Example:" in ping
    assert "all parameters" not in ping


def calling(*calls: ToolCall) -> ParsedResponse:
    return ParsedResponse(tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS)


def events(agent: Agent) -> list[Any]:
    async def main() -> list[Any]:
        return [event async for event in agent.run("go")]

    return asyncio.run(main())


@pytest.mark.mission("D47", "E22")
def test_steps_come_in_their_order_behind_the_reading() -> None:
    order = list[str]()

    @toolwire.tool
    def add(a: int, b: int) -> int:
        """Adds."""
        order.append("runs")
        return a + b

    def response(name: str) -> Any:
        def step(given: ParsedResponse, turn: TurnInfo) -> ParsedResponse:
            order.append(f"{name} sees {len(given.tool_calls)}")
            return given

        return step

    def twice(call: ToolCall, turn: TurnInfo) -> ToolCall:
        order.append("twice")
        return ToolCall(call.name, {**call.arguments, "a": call.arguments["a"] * 2}, call.id)

    def held(call: ToolCall, turn: TurnInfo) -> ToolCall | ToolResult:
        order.append("held")
        return ToolResult(call.id, call.name, "held") if call.arguments["a"] > 9 else call

    def told(name: str) -> Any:
        def step(call: ToolCall, result: ToolResult, turn: TurnInfo) -> ToolResult:
            return ToolResult(result.call_id, result.tool_name, f"{result.text}{name}")

        return step

    hooks = Hooks(response=(response("one"), response("two")), invocation=(twice, held), result=(told("a"), told("b")))
    backend = ScriptedBackend(
        [
            calling(ToolCall("add", {"a": 1, "b": 1}, "1")),
            calling(ToolCall("add", {"a": 5, "b": 1}, "2")),
            ParsedResponse("x"),
        ]
    )
    found = events(Agent(backend, [add], AgentConfig(hooks=hooks)))
    results = [event.outcome.result.result for event in found if isinstance(event, ToolFinished)]
    assert order == [
        *["one sees 1", "two sees 1", "twice", "held", "runs"],
        *["one sees 1", "two sees 1", "twice", "held"],
        "one sees 0",
        "two sees 0",
    ]
    told_to_the_model = [
        part.text for message in backend.requests[-1].messages if message.role == "tool" for part in message.parts
    ]
    assert told_to_the_model == ["3ab", "heldab"]
    assert len(results) == 2


@pytest.mark.mission("D55")
def test_what_became_of_a_call_is_told_while_others_run() -> None:
    heard = asyncio.Event()

    @toolwire.tool
    async def slow() -> str:
        """Waits until the other's result was told."""
        await heard.wait()
        return "late"

    @toolwire.tool
    def fast() -> str:
        """Does nothing."""
        return "early"

    backend = ScriptedBackend([calling(ToolCall("slow", {}, "1"), ToolCall("fast", {}, "2")), ParsedResponse("done")])

    async def main() -> list[Any]:
        told = []
        async for event in Agent(backend, [slow, fast]).run("go"):
            if isinstance(event, ToolFinished):
                told.append(event.outcome.result.result)
                heard.set()
        return told

    assert asyncio.run(asyncio.wait_for(main(), 60)) == ["early", "late"]
    assert [part.result for part in backend.requests[1].messages[-1].parts] == ["late", "early"]  # type: ignore[union-attr]


@pytest.mark.mission("E21")
@pytest.mark.parametrize(
    ("approved", "how"), [(True, "works"), (True, "fails"), (False, "works")], ids=["done", "failed", "denied"]
)
def test_what_becomes_of_a_call_is_told(approved: bool, how: str) -> None:
    @toolwire.tool(requires_confirmation=True)
    def act(how: str) -> str:
        """Acts."""
        if how == "fails":
            raise toolwire.ToolError("broken")
        return how

    async def confirm(approval: toolwire.Approval) -> bool:
        return approved

    backend = ScriptedBackend([calling(ToolCall("act", {"how": how}, "1")), ParsedResponse("x")])
    found = events(Agent(backend, [act], confirm=confirm))
    told = [event for event in found if isinstance(event, ToolStarted | ApprovalRequested | ToolFinished)]
    assert [type(event).__name__ for event in told] == ["ToolStarted", "ApprovalRequested", "ToolFinished"]
    result = told[-1].outcome.result
    assert (result.success, result.error) == {
        (True, "works"): (True, None),
        (True, "fails"): (False, "broken"),
        (False, "works"): (False, "The user refused this call of act."),
    }[approved, how]


@pytest.mark.mission("D48")
def test_a_fingerprint_is_of_the_name_and_the_arguments_alone() -> None:
    one = ToolCall("f", {"a": "é", "b": {"y": 1, "x": [2]}}, "1")
    same = ToolCall("f", {"b": {"x": [2], "y": 1}, "a": "é"}, "2", raw="other", format="hermes")
    assert one.fingerprint == same.fingerprint
    assert len({call.fingerprint for call in (one, ToolCall("g", one.arguments), ToolCall("f", {"a": "e"}))}) == 3
    assert len(one.fingerprint) == 64


@pytest.mark.mission("D54")
def test_a_tool_may_give_back_several_images() -> None:
    images = [toolwire.ImagePart("aGk=", "image/png"), toolwire.ImagePart("aG8=", "image/jpeg")]

    @toolwire.tool
    def look() -> list[toolwire.ImagePart]:
        """Looks."""
        return images

    backend = ScriptedBackend([calling(ToolCall("look", {}, "1")), ParsedResponse("nice")])
    events(Agent(backend, [look]))
    (result,) = backend.requests[1].messages[-1].parts
    assert isinstance(result, ToolResult)
    assert result.images == tuple(images)


@pytest.mark.mission("F10", "F11", "F12", "F4")
def test_values_hold_what_the_design_names() -> None:
    call = ToolCall("f", {"a": 1})
    assert (call.id, call.raw) == ("", "")
    assert ToolResult("1", "f", 0).success
    assert not ToolResult("1", "f", error="no").success
    response = toolwire.parse('hi <tool_call>{"name": "f"}</tool_call>')
    assert (response.content, response.finish_reason) == ("hi ", "tool_calls")
    assert response.tool_calls[0].raw == '<tool_call>{"name": "f"}</tool_call>'
    assert {"stop", "tool_calls", "length"} <= {str(reason) for reason in FinishReason}
    definition = ToolDefinition("f")
    assert (definition.tier, definition.requires_confirmation) == (toolwire.Tier.CRAWL, False)


@pytest.mark.mission("F17")
def test_prose_that_promises_a_call_is_prose() -> None:
    for text in ("I'll use the weather tool.", "I'll use the `weather` tool for Rome: weather(Rome)"):
        assert toolwire.parse(text, tools=[WEATHER]).tool_calls == ()
        assert toolwire.parse(text, tools=[WEATHER]).content == text


@pytest.mark.mission("F16")
def test_json_in_content_is_a_call_only_of_a_known_tool() -> None:
    text = '{"name": "weather", "arguments": {"city": "Rome"}}'
    (call,) = toolwire.parse(text, tools=[WEATHER]).tool_calls
    assert call.confidence < 1
    assert toolwire.parse(text, tools=[ToolDefinition("other")]).content == text
    assert toolwire.parse(text).content == text


@pytest.mark.mission("F32")
def test_no_answer_at_all_is_no_call() -> None:
    assert toolwire.parse("").tool_calls == ()
    for content in (None, ""):
        body = {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}
        assert toolwire.parse(body).content == ""
