"""Tests of constraints: grammars in the requests of text models, and servers that refuse them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, Field
from tests.property.grammar_engines import engine

import toolwire
from toolwire.agent import Agent
from toolwire.client.client import Client
from toolwire.errors import DefinitionError, ProviderError
from toolwire.events import ContentDelta, Event, Finish, ProblemFound
from toolwire.messages import FinishReason, Message, ParsedResponse, Problem, TextPart, ToolCall
from toolwire.models.backends import ApiBackend, StreamOptions, TextBackend
from toolwire.models.constraints import GRAMMAR_SERVERS, Constraint, strict_tools
from toolwire.providers.output_request import FINAL_ANSWER
from toolwire.providers.request import ChatRequest, Notes, ToolChoice
from toolwire.testing import ScriptedTransport
from toolwire.tools import ToolDefinition

TOOL = ToolDefinition("ping", parameters={"type": "object", "properties": {"host": {"type": "string"}}})
OTHER = ToolDefinition("pong", parameters={"type": "object", "properties": {}})


@toolwire.tool
def clock() -> str:
    """The time."""
    return "noon"


class Recorded:
    """A text model that records the keywords of each request, and refuses the first ones."""

    def __init__(self, *errors: ProviderError) -> None:
        self.requests: list[dict[str, Any]] = []
        self._errors = list(errors)

    async def direct(self, messages: list[Message], *, grammar: str = "") -> AsyncGenerator[Event]:
        async for event in self._answer({"grammar": grammar}):
            yield event

    async def served(
        self, messages: list[Message], *, extra_body: dict[str, Any] | None = None
    ) -> AsyncGenerator[Event]:
        async for event in self._answer(extra_body or {}):
            yield event

    async def _answer(self, request: dict[str, Any]) -> AsyncGenerator[Event]:
        self.requests.append(request)
        if self._errors:
            raise self._errors.pop(0)
        yield ContentDelta("Hello.")
        yield Finish(FinishReason.STOP)


def ask(backend: TextBackend, refusals: Any = None, **request: Any) -> tuple[str, Notes]:
    """Return the text of an answer, and the notes of its request."""
    notes = Notes()

    async def run() -> toolwire.ParsedResponse:
        chat = ChatRequest([Message("user", (TextPart("Hi"),))], tools=(TOOL, OTHER), **request)
        return toolwire.collect(
            [event async for event in backend.stream(chat, StreamOptions(notes=notes, refusals=refusals))]
        )

    return asyncio.run(run()).content, notes


def constrained(source: Any, constraint: Constraint, *, format: str = "hermes", api: str = "") -> TextBackend:
    backend = TextBackend(source, format=format, model="m", api=api)
    backend.constraint = constraint
    return backend


def test_a_model_in_this_process_gets_the_grammar_of_its_format() -> None:
    model = Recorded()
    assert ask(constrained(model.direct, Constraint()))[0] == "Hello."
    expected = toolwire.grammar([TOOL, OTHER], format="hermes", syntax="gbnf", text_after=True).text
    assert model.requests == [{"grammar": expected}]


def test_the_mode_and_the_tool_choice_decide_what_the_grammar_requires() -> None:
    model = Recorded()
    ask(constrained(model.direct, Constraint("required")))
    ask(constrained(model.direct, Constraint()), tool_choice=ToolChoice("required", ("ping",)))
    ask(constrained(model.direct, Constraint()), tool_choice=ToolChoice("none"))
    both, named, none = (request["grammar"] for request in model.requests)
    assert (
        both
        == toolwire.grammar([TOOL, OTHER], format="hermes", tool_choice="required", syntax="gbnf", text_after=True).text
    )
    assert "ping" in named
    assert "pong" not in named
    assert none == ""


def test_a_call_that_a_request_demands_is_constrained_in_this_process_by_default() -> None:
    model = Recorded()
    backend = TextBackend(model.direct, format="hermes", model="m")
    for choice in (ToolChoice("required"), ToolChoice("required", ("ping",)), ToolChoice(), ToolChoice("none")):
        ask(backend, tool_choice=choice)
    options: Any = {"format": "hermes", "tool_choice": "required", "syntax": "gbnf", "text_after": True}
    expected = [toolwire.grammar(tools, **options).text for tools in ([TOOL, OTHER], [TOOL])]
    assert [request["grammar"] for request in model.requests] == [*expected, "", ""]
    # A server might refuse a grammar that nobody asked for.
    model = Recorded()
    ask(TextBackend(model.served, format="hermes", api="vllm"), tool_choice=ToolChoice("required"))
    assert model.requests == [{}]


SCHEMA = ("response_format", "json_schema", "schema")
PATHS = {
    "llama_cpp": ("grammar",),
    "vllm": ("structured_outputs", "structural_tag"),
    "sglang": ("ebnf",),
    "ollama": ("format",),
    "ollama_chat": SCHEMA,
    "lm_studio": SCHEMA,
}


def test_each_server_has_a_row() -> None:
    assert tuple(PATHS) == GRAMMAR_SERVERS


@pytest.mark.parametrize("server", PATHS)
def test_a_server_gets_the_grammar_in_its_own_field(server: Any) -> None:
    """Whether the constraint names the server, or the model is reached through its API."""
    for constraint, api in (Constraint("required", server), "openai_compatible"), (Constraint("required"), server):
        model = Recorded()
        backend = constrained(model.served, constraint, format="bare_json", api=api)
        assert backend.takes_grammars
        ask(backend)
        value: Any = model.requests[0]
        for key in PATHS[server]:
            value = value[key]
        assert "host" in str(value)
        assert isinstance(value, str) == (server not in ("ollama", "ollama_chat", "lm_studio"))


@pytest.mark.parametrize(
    ("format", "mode", "why"),
    [("bare_json", "auto", "no place for text"), ("hermes", "required", "not JSON alone")],
)
def test_what_a_json_schema_cannot_say_is_noted_and_not_constrained(format: str, mode: Any, why: str) -> None:
    model = Recorded()
    _, notes = ask(constrained(model.served, Constraint(mode), format=format, api="ollama"))
    assert model.requests == [{}]
    assert why in next(note for note in notes if note.where == "constrain").message


def test_an_answer_is_asked_for_again_where_the_server_refuses_the_grammar() -> None:
    model = Recorded(ProviderError("failed to parse grammar", status=400))
    text, notes = ask(constrained(model.served, Constraint(server="llama_cpp")))
    assert text == "Hello."
    assert [bool(request) for request in model.requests] == [True, False]
    assert "failed to parse grammar" in next(note for note in notes if note.where == "constrain").message


@pytest.mark.parametrize(("message", "refused"), [("Failed to compile the grammar", True), ("out of memory", False)])
def test_a_stream_that_begins_with_an_error_about_the_grammar_refuses_it(message: str, refused: bool) -> None:
    """The status of such a stream is that of a success."""
    requests: list[Any] = []

    async def streamed(messages: list[Message], *, grammar: str = "") -> AsyncGenerator[Event]:
        requests.append(grammar)
        if grammar:
            yield ProblemFound(Problem("provider_error", 0, "", message))
            yield Finish(FinishReason.ERROR)
        else:
            yield ContentDelta("Hello.")
            yield Finish(FinishReason.STOP)

    refusals: dict[Any, str] = {}
    text, notes = ask(constrained(streamed, Constraint()), refusals=refusals)
    assert text == ("Hello." if refused else "")
    assert [bool(grammar) for grammar in requests] == [True, *[False] * refused]
    assert any(message in note.message for note in notes if note.where == "constrain") is refused
    assert bool(refusals) is refused


def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    requests: list[Any] = []

    async def breaks_off(messages: list[Message], *, grammar: str = "") -> AsyncGenerator[Event]:
        requests.append(grammar)
        yield ContentDelta("Hel")
        raise ProviderError("the grammar failed", status=400)

    with pytest.raises(ProviderError, match=r"cannot go on under the grammar: the grammar failed \(ask again"):
        ask(constrained(breaks_off, Constraint()))
    assert len(requests) == 1


@pytest.mark.parametrize(("message", "explained"), [("Grammar stack empty.", True), ("out of memory", False)])
def test_a_stream_that_breaks_off_under_its_grammar_says_so(message: str, explained: bool) -> None:
    async def breaks_off(messages: list[Message], *, grammar: str = "") -> AsyncGenerator[Event]:
        yield ContentDelta("Hel")
        yield ProblemFound(Problem("provider_error", 0, "", message))
        yield Finish(FinishReason.ERROR)

    async def run() -> list[str]:
        request = ChatRequest([Message("user", "Hi")], tools=(TOOL,))
        events = [event async for event in constrained(breaks_off, Constraint()).stream(request)]
        return [event.problem.message for event in events if isinstance(event, ProblemFound)]

    (shown,) = asyncio.run(run())
    assert message in shown and ("ask without the constraint" in shown) is explained


def test_other_errors_are_raised_as_they_are() -> None:
    model = Recorded(ProviderError("overloaded", status=503))
    with pytest.raises(ProviderError, match="overloaded"):
        ask(constrained(model.served, Constraint(server="llama_cpp")))
    assert len(model.requests) == 1


class City(BaseModel):
    """A city."""

    name: str
    people: int = Field(ge=0)


def test_the_grammar_of_an_agent_with_an_output_type_admits_no_value_outside_the_type() -> None:
    grammars: list[str] = []

    def written(**arguments: Any) -> str:
        return toolwire.render_calls([ToolCall(FINAL_ANSWER, arguments)], format="hermes")

    async def answers(messages: list[Message], *, grammar: str = "") -> AsyncGenerator[Event]:
        grammars.append(grammar)
        yield ContentDelta(written(name="Bern", people=130000))
        yield Finish(FinishReason.STOP)

    agent = Agent(constrained(answers, Constraint()), [clock], output_type=City, telemetry=False)
    assert asyncio.run(agent.ask("Which city?")) == City(name="Bern", people=130000)
    (grammar,) = grammars
    real = engine("llama.cpp")
    assert real.match(grammar, written(name="Bern", people=130000), "gbnf").complete
    for wrong in (
        {"name": "Bern", "people": "many"},
        {"name": "Bern", "people": -1},
        {"name": "Bern", "people": 1.5},
        {"name": 3, "people": 1},
        {"name": "Bern"},
        {"name": "Bern", "people": 1, "river": "Aare"},
    ):
        assert not real.match(grammar, written(**wrong), "gbnf").complete, wrong


def strict_calls(*answers: Any, **request: Any) -> tuple[list[Any], Notes]:
    """Return the bodies of the requests of an API under a constraint, and their notes."""
    constraint = request.pop("constraint", Constraint())
    transport = ScriptedTransport("openai_chat", answers or [ParsedResponse("Hello.")])
    notes = Notes()

    async def run() -> None:
        async with Client("openai_chat", "m", base_url="http://b/v1", key="none", transport=transport) as client:
            backend = ApiBackend(client)
            assert backend.takes_grammars
            backend.constraint = constraint
            chat = ChatRequest([Message("user", (TextPart("Hi"),))], **{"tools": (TOOL, OTHER), **request})
            events = [event async for event in backend.stream(chat, StreamOptions(notes=notes))]
            assert toolwire.collect(events).content == "Hello."

    asyncio.run(run())
    return transport.requests, notes


def test_an_api_with_strict_tools_gets_all_tools_strict_that_do_not_say_otherwise() -> None:
    tools = (TOOL, replace(OTHER, annotations={"strict": False}))
    (body,), _ = strict_calls(tools=tools)
    assert [tool["function"].get("strict") for tool in body["tools"]] == [True, False]
    assert "tool_choice" not in body


def test_a_required_call_of_strict_tools_stays_among_the_tools_that_the_request_names() -> None:
    required = Constraint("required")
    (body,), _ = strict_calls(constraint=required)
    assert body["tool_choice"] == "required"
    (body,), _ = strict_calls(constraint=required, tool_choice=ToolChoice("auto", ("ping",)))
    assert body["tool_choice"] == {"type": "function", "function": {"name": "ping"}}
    for request in ({"tools": ()}, {"tool_choice": ToolChoice("none")}):
        (body,), notes = strict_calls(constraint=required, **request)
        assert body.get("tool_choice", "none") == "none"
        assert "strict" not in str(body)
        assert not notes


REFUSED_GRAMMAR = (400, b'{"error": {"message": "the compiled grammar is too large"}}')


def test_tools_are_offered_again_without_strict_mode_where_the_server_refuses_it() -> None:
    bodies, notes = strict_calls(REFUSED_GRAMMAR, ParsedResponse("Hello."))
    assert ["strict" in str(body["tools"]) for body in bodies] == [True, False]
    message = next(note for note in notes if note.where == "constrain").message
    assert message.startswith("the server refused the strict tools")
    assert "too large" in message


STRICT_REFUSALS = [
    ("openai_chat", 400, "Invalid schema for function 'ping': In context=(), 'additionalProperties' is required"),
    ("openai_responses", 400, "Unknown parameter: 'tools[0].strict'."),
    ("groq", 422, "body.tools.0.function.strict: Extra inputs are not permitted"),
    ("openai_chat", 400, "This response_format type is unavailable now"),
    ("groq", 400, "tools[0].function.parameters: `additionalProperties:false` must be set on every object"),
    ("anthropic", 400, "The compiled grammar is too large, which would cause performance issues."),
    ("anthropic", 400, "Schema is too complex for compilation."),
    ("anthropic", 400, "tools.1.custom: For 'array' type, property 'maxItems' is not supported"),
    ("bedrock_converse", 400, "The model returned the following errors: tools.0.custom: For 'array' type, .."),
    ("bedrock_converse", 400, "tools.0.custom.strict: Extra inputs are not permitted"),
]
OTHER_ERRORS = [
    ("openai_chat", 400, "Invalid 'messages[3].tool_call_id': string too long."),
    ("openai_chat", 400, "Invalid 'tools[0].function.name': string does not match pattern."),
    (
        "openai_chat",
        400,
        "This model's maximum context length is 8192 tokens, of which the schema of tools takes 9000.",
    ),
    ("openai_responses", 400, "Unsupported parameter: 'temperature' is not supported with this model."),
    ("anthropic", 400, "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"),
    ("anthropic", 400, "messages: roles must alternate between user and assistant"),
    ("bedrock_converse", 400, "Malformed input request: 2 schema violations found, please reformat your input"),
    ("cohere", 400, "invalid schema: strict"),  # it has no strict mode
    ("openai_chat", 401, "Incorrect API key provided; strict mode"),
    ("openai_chat", 500, "the compiled grammar is too large"),
]


def is_strict_refusal(api: str, status: int, message: str) -> bool:
    return strict_tools(toolwire.get_api(api).strict_dialect).is_refused(ProviderError(message, status=status))


@pytest.mark.parametrize(("api", "status", "message"), STRICT_REFUSALS)
def test_an_error_about_strict_mode_or_schemas_refuses_the_strict_tools(api: str, status: int, message: str) -> None:
    assert is_strict_refusal(api, status, message)


@pytest.mark.parametrize(("api", "status", "message"), OTHER_ERRORS)
def test_another_error_does_not_refuse_the_strict_tools(api: str, status: int, message: str) -> None:
    assert not is_strict_refusal(api, status, message)


def test_another_error_of_a_request_with_strict_tools_is_raised_at_once() -> None:
    transport = ScriptedTransport(
        "openai_chat", [(400, b'{"error": {"message": "messages are empty"}}'), ParsedResponse("Hello.")]
    )

    async def run() -> None:
        async with Client("openai_chat", "m", base_url="http://b/v1", key="none", transport=transport) as client:
            backend = ApiBackend(client)
            backend.constraint = Constraint()
            chat = ChatRequest([Message("user", (TextPart("Hi"),))], tools=(TOOL,))
            async for _ in backend.stream(chat):
                pass

    with pytest.raises(ProviderError, match="messages are empty"):
        asyncio.run(run())
    assert len(transport.requests) == 1


def test_a_run_offers_no_strict_tools_again_once_the_server_has_refused_them() -> None:
    call = ParsedResponse(tool_calls=(ToolCall("clock", {}, "c1"),))
    answers = [REFUSED_GRAMMAR, call, ParsedResponse("Noon."), ParsedResponse("Hello.")]
    transport = ScriptedTransport("openai_chat", answers)
    events: list[Any] = []

    async def run() -> None:
        async with Client("openai_chat", "m", base_url="http://b/v1", key="none", transport=transport) as client:
            backend = ApiBackend(client)
            backend.constraint = Constraint()
            agent = Agent(backend, [clock], telemetry=False)
            events.extend([event async for event in agent.run("What time is it?")])
            await agent.ask("Hi")

    asyncio.run(run())
    assert ["strict" in str(body["tools"]) for body in transport.requests] == [True, False, False, True]
    assert len([event for event in events if "refused the strict tools" in str(event)]) == 1


def test_a_run_asks_for_no_grammar_again_once_the_server_has_refused_it() -> None:
    model = Recorded(ProviderError("failed to parse grammar", status=400))
    refusals: dict[Any, str] = {}
    backend = constrained(model.served, Constraint(server="llama_cpp"))
    first = ask(backend, refusals=refusals)[1]
    second = ask(backend, refusals=refusals)[1]
    assert [bool(request) for request in model.requests] == [True, False, False]
    assert first == second
    ask(constrained(model.served, Constraint(server="llama_cpp")), refusals=refusals)
    assert model.requests[-1]


def test_a_request_that_fails_without_the_grammar_too_is_no_refusal_to_remember() -> None:
    errors = [ProviderError("unknown setting", status=400) for _ in range(2)]
    model = Recorded(*errors)
    refusals: dict[Any, str] = {}
    backend = constrained(model.served, Constraint(server="llama_cpp"))
    with pytest.raises(ProviderError, match="unknown setting"):
        ask(backend, refusals=refusals)
    ask(backend, refusals=refusals)
    assert [bool(request) for request in model.requests] == [True, False, True]


@pytest.mark.parametrize(
    ("message", "status", "refused"),
    [
        ("failed to parse grammar", 0, True),
        ("Invalid grammar request", 500, True),
        ("bad rule at line 3", 400, True),
        ("extra field 'ebnf'", 422, True),
        ("not implemented", 501, True),
        ("the request exceeds the available context size, grammar included: 9000 tokens", 400, False),
        ("model 'm' not found", 404, False),
        ("overloaded", 500, False),
    ],
)
def test_a_server_refuses_a_grammar_by_its_status_or_its_words(message: str, status: int, refused: bool) -> None:
    model = Recorded(ProviderError(message, status=status))
    backend = constrained(model.served, Constraint(server="llama_cpp"))
    if refused:
        assert ask(backend)[0] == "Hello."
    else:
        with pytest.raises(ProviderError, match=message[:20]):
            ask(backend)
    assert len(model.requests) == 1 + refused


def test_a_model_that_takes_no_grammar_answers_without_one_and_says_so() -> None:
    model = Recorded()
    _, notes = ask(constrained(model.served, Constraint()))
    assert model.requests == [{}]
    assert [note.where for note in notes] == ["constrain"]


def test_a_model_that_takes_the_grammar_itself_gets_it_there_alone() -> None:
    requests: list[dict[str, Any]] = []

    async def both(
        messages: list[Message], *, grammar: str = "", extra_body: dict[str, Any] | None = None
    ) -> AsyncGenerator[Event]:
        requests.append({"grammar": grammar, "extra_body": extra_body})
        yield ContentDelta("Hello.")

    ask(constrained(both, Constraint(server="vllm")))
    (request,) = requests
    assert "host" in request["grammar"]
    assert request["extra_body"] is None


def test_the_field_of_a_server_needs_a_model_that_takes_additions() -> None:
    async def text(messages: list[Message]) -> AsyncGenerator[Event]:
        yield ContentDelta("Hello.")

    backend = constrained(text, Constraint(server="vllm"))
    assert not backend.takes_grammars
    answer, notes = ask(backend)
    assert answer == "Hello."
    assert [note.where for note in notes] == ["constrain"]


def test_unknown_modes_and_servers_are_refused() -> None:
    with pytest.raises(DefinitionError, match="auto or required"):
        Constraint("always")  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="llama_cpp, vllm, sglang"):
        Constraint(server="other")  # type: ignore[arg-type]
