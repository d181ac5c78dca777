"""Clients and agents without asyncio: in scripts, in notebooks, and in several event loops."""

import asyncio
import gc
import json
import threading
import time
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import Client, ParsedResponse, RunFailed, ToolCall
from toolwire.agent import Agent, AgentConfig
from toolwire.agent.run_events import RunEnded, ToolFinished
from toolwire.events import ContentDelta, replay
from toolwire.models.backends import ApiBackend
from toolwire.testing import ScriptedBackend

API = toolwire.get_api("openai_chat")


def hello(asked: Asked) -> Answer:
    response = ParsedResponse("hello")
    if json.loads(asked.body).get("stream"):
        return Answer(b"".join(API.encode_stream(replay(response))), content_type="text/event-stream")
    return Answer(json.dumps(API.encode_response(response)).encode())


@toolwire.tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def adding() -> Agent:
    call = ToolCall("add", {"a": 1, "b": 2}, "1")
    return Agent(ScriptedBackend([ParsedResponse("", tool_calls=(call,)), ParsedResponse("three")]), [add])


def test_client_without_asyncio() -> None:
    with serving(hello) as url, Client("openai_chat", "m", base_url=url, key="k") as client:
        assert client.ask_sync("hi").content == "hello"
        assert client.ask_sync("hi again").content == "hello"
        events = list(client.stream_sync("hi"))
    assert "".join(event.text for event in events if isinstance(event, ContentDelta)) == "hello"


def test_value_is_extracted_without_asyncio() -> None:
    def answer(asked: Asked) -> Answer:
        return Answer(json.dumps(API.encode_response(ParsedResponse("[1, 2]"))).encode())

    with serving(answer) as url, Client("openai_chat", "m", base_url=url, key="k") as client:
        assert client.extract_sync(list[int], "one and two", mode="text") == [1, 2]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_client_survives_a_second_event_loop() -> None:
    async def ask(client: Client) -> str:
        return (await client.ask("hi")).content

    with serving(hello) as url:
        client = Client("openai_chat", "m", base_url=url, key="k")
        assert [asyncio.run(ask(client)) for _ in range(3)] == ["hello"] * 3
        del client
        gc.collect()  # connections of loops that have ended cannot be closed any more, and say so here


def test_agent_without_asyncio() -> None:
    assert adding().ask_sync("1 + 2") == "three"
    events = list(adding().run_sync("1 + 2"))
    assert [event.outcome.result.text for event in events if isinstance(event, ToolFinished)] == ["3"]
    assert isinstance(events[-1], RunEnded)
    with pytest.raises(RunFailed):
        Agent(ScriptedBackend([])).ask_sync("nothing is scripted")
    with pytest.raises(TypeError, match="task must be text"):
        adding().ask_sync(3)  # type: ignore[arg-type]


def test_agent_over_http_without_asyncio() -> None:
    with serving(hello) as url, Client("openai_chat", "m", base_url=url, key="k") as client:
        agent = Agent(ApiBackend(client))
        assert [agent.ask_sync("hi"), agent.ask_sync("hi")] == ["hello", "hello"]


def test_plain_code_works_inside_a_running_loop_as_in_a_notebook() -> None:
    async def cell() -> str:
        return adding().ask_sync("1 + 2")

    assert asyncio.run(cell()) == "three"


def test_code_of_that_loop_cannot_wait_for_itself() -> None:
    messages: list[str] = []

    @toolwire.tool
    async def nested() -> str:
        """Ask another agent, the wrong way."""
        try:
            adding().ask_sync("1 + 2")
        except RuntimeError as error:
            messages.append(str(error))
        return "done"

    backend = ScriptedBackend([ParsedResponse("", tool_calls=(ToolCall("nested", {}, "1"),)), ParsedResponse("end")])
    assert Agent(backend, [nested]).ask_sync("go") == "end"
    assert "event loop thread" in messages[0]


def test_plain_tool_may_ask_another_agent() -> None:
    @toolwire.tool
    def nested() -> str:
        """Ask another agent."""
        return adding().ask_sync("1 + 2")

    backend = ScriptedBackend([ParsedResponse("", tool_calls=(ToolCall("nested", {}, "1"),)), ParsedResponse("end")])
    results = [event.outcome.result.text for event in Agent(backend, [nested]).run_sync("go") if is_result(event)]
    assert results == ["three"]


def test_sixty_agents_may_be_nested_in_plain_tools() -> None:
    """Each level occupies a thread; with a pool of a fixed size the innermost ones would wait for ever."""

    def nest(levels: int) -> Agent[str]:
        if not levels:
            return Agent(ScriptedBackend(["the bottom"]))
        inner = nest(levels - 1)

        @toolwire.tool
        def descend() -> str:
            """Ask the agent below."""
            return inner.ask_sync("go")

        call = ToolCall("descend", {}, "1")
        reply = ParsedResponse("", tool_calls=(call,))
        return Agent(ScriptedBackend([reply, f"level {levels}"]), [descend])

    assert nest(60).ask_sync("go") == "level 60"


def is_result(event: Any) -> bool:
    return isinstance(event, ToolFinished)


def test_closing_the_iterator_stops_the_run() -> None:
    stopped = threading.Event()

    @toolwire.tool
    async def forever() -> None:
        """Run until stopped."""
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    backend = ScriptedBackend([ParsedResponse("", tool_calls=(ToolCall("forever", {}, "1"),))])
    events = Agent(backend, [forever]).run_sync("go")
    begun = time.monotonic()
    for event in events:
        if type(event).__name__ == "ToolStarted":
            break
    events.close()  # type: ignore[attr-defined]
    assert stopped.is_set(), "closing waits until the tool has cleaned up"
    assert time.monotonic() - begun < 30


# -- notebooks -----------------------------------------------------------------------------------------------------


def test_call_is_shown_as_a_table_in_which_nothing_is_markup() -> None:
    call = ToolCall("add", {"a": "<b>1</b>", "b": 2}, "1")
    backend = ScriptedBackend([ParsedResponse(tool_calls=(call,)), "no"])
    (finished,) = [event for event in Agent(backend, [add]).run_sync("1 + 2?") if isinstance(event, ToolFinished)]
    html = finished._repr_html_()
    assert "&lt;b&gt;1&lt;/b&gt;" in html
    assert "<b>" not in html
    assert ">error</th>" in html


def test_run_is_shown_as_a_table_in_which_nothing_is_markup() -> None:
    call = ToolCall("add", {"a": 1, "b": 2}, "1")
    answers = [ParsedResponse("<b>Adding</b>", tool_calls=(call,)), ParsedResponse("<script>alert(1)</script>\u202e")]
    end = list(Agent(ScriptedBackend(answers), [add], AgentConfig()).run_sync("1 + 2?"))[-1]
    assert isinstance(end, RunEnded)
    html = end._repr_html_()
    for text in (
        "answered",
        "1 + 2?",
        "&lt;b&gt;Adding&lt;/b&gt;",
        "add {&quot;a&quot;: 1, &quot;b&quot;: 2}",
        "2 rounds",
    ):
        assert text in html
    assert "<script" not in html
    assert "<b>" not in html
    assert "\u202e" not in html
