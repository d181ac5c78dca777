"""Models that are asked once more because a call in their answer has a problem, by what a client gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.gateway.gateway_calls import CLIENTS, Got, answer_in, asked, request, run

from toolwire import (
    CallStart,
    Client,
    ContentDelta,
    Event,
    FinishReason,
    ParsedResponse,
    ToolCall,
    Usage,
    parse,
    replay,
)
from toolwire.agent.model_pool import Models
from toolwire.config.tables import Configuration
from toolwire.errors import ConfigurationError, ProviderError
from toolwire.gateway.answer_meter import AnswerMeter
from toolwire.gateway.answer_retries import NOT_PASSED_ON, RetriedUpstream
from toolwire.gateway.app import Gateway
from toolwire.gateway.model_loading import load_models
from toolwire.gateway.model_table import ModelTable, ServedModel
from toolwire.gateway.questions import Answer, Question, Upstream, WrappedUpstream
from toolwire.gateway.upstreams import ApiUpstream, TextUpstream
from toolwire.inspector.inspector import Inspector, InspectorOptions
from toolwire.models.backends import NO_OPTIONS, StreamOptions
from toolwire.providers.request import ChatRequest
from toolwire.testing import ScriptedTransport

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def written(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


GOOD = written("get_weather", '{"city": "Paris"}')
MALFORMED = written("get_weather", '{"city": ')
UNKNOWN = written("get_wether", '{"city": "Paris"}')
INVALID = written("get_weather", '{"city": "Paris", "days": "some"}')
PROBLEMS = {"malformed": MALFORMED, "unknown_tool": UNKNOWN, "invalid_arguments": INVALID}

Answers = Sequence[ParsedResponse | str | ProviderError]


def configuration(**table: Any) -> Configuration:
    profile = {"provider": "vllm", "model": "m", "url": "http://b/v1", "tools": {"definition_format": "hermes"}}
    model = {"profile": "p", "retries": 1, **table}
    return Configuration.model_validate({"profiles": {"p": profile}, "gateway": {"models": {"m": model}}})


def body_of(api: str, *, stream: bool = False) -> tuple[str, dict[str, Any]]:
    """Return a question whose tool has a schema that arguments can violate."""
    path, body = asked(api, stream=stream)
    text = json.dumps(body)
    simple = '{"type": "object", "properties": {"city": {"type": "string"}}}'
    assert simple in text
    return path, json.loads(text.replace(simple, json.dumps(PARAMETERS)))


class Asking:
    """A gateway whose backend gives prepared answers.

    Attributes:
        sent: the bodies that the backend got.
        got: the response of the gateway.
        metrics: the text of its metrics.
        inspector: its inspector.
    """

    def __init__(self, answers: Answers, api: str = "chat", *, stream: bool = False, **table: Any) -> None:
        texts = [ParsedResponse(answer) if isinstance(answer, str) else answer for answer in answers]
        transport = ScriptedTransport("openai_compatible", texts)
        self.inspector = Inspector(InspectorOptions(key="k"))
        self.got = Got()
        self.metrics = ""
        asyncio.run(self._run(transport, configuration(**table), *body_of(api, stream=stream)))
        self.sent: list[dict[str, Any]] = list(transport.requests)

    async def _run(self, transport: ScriptedTransport, config: Configuration, path: str, body: Any) -> None:
        async with Models(transport=transport) as models:
            app = Gateway(await load_models(config, models), inspector=self.inspector)
            self.got = await request(app, path, body)
            self.metrics = (await request(app, "/metrics", method="GET")).body.decode()

    def notes_to_the_model(self) -> str:
        """Return the messages of the second question that the first one does not have."""
        first, second = (sent["messages"] for sent in self.sent)
        assert second[: len(first)] == first
        return json.dumps(second[len(first) :], ensure_ascii=False)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("api", CLIENTS)
def test_a_call_with_a_problem_is_asked_for_once_more(api: str, kind: str, stream: bool) -> None:
    answers = [ParsedResponse(PROBLEMS[kind], usage=Usage(10, 3)), ParsedResponse(GOOD, usage=Usage(20, 5))]
    asking = Asking(answers, api, stream=stream)
    answer = answer_in(api, asking.got.body, stream=stream)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("get_weather", {"city": "Paris"})]
    assert not answer.problems and not answer.content.strip()
    assert answer.usage is not None and (answer.usage.input_tokens, answer.usage.output_tokens) == (30, 8)
    assert len(asking.sent) == 2
    assert f'toolwire_gateway_retries_total{{backend="p",kind="{kind}",model="m"}} 1.0' in asking.metrics
    assert 'toolwire_gateway_tokens_total{backend="p",direction="output",model="m"} 8.0' in asking.metrics
    (exchange,) = asking.inspector.ring
    assert [note.where for note in exchange.notes] == ["retry"]
    assert len(exchange.attempts) == 2
    if not stream:
        assert kind in asking.got.headers["x-toolwire-notes"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("malformed", ["could not be read", "is written like this"]),
        ("unknown_tool", ["get_wether", "get_weather"]),
        ("invalid_arguments", ["are not valid", "/days"]),
    ],
)
def test_the_model_reads_what_is_wrong(kind: str, words: list[str]) -> None:
    told = Asking([PROBLEMS[kind], GOOD]).notes_to_the_model()
    assert [word for word in words if word not in told] == []


def test_a_right_call_beside_a_wrong_one_is_asked_for_again() -> None:
    asking = Asking([f"{GOOD}\n{UNKNOWN}", f"{GOOD}\n{GOOD}"])
    assert NOT_PASSED_ON in asking.notes_to_the_model()
    assert len(answer_in("chat", asking.got.body, stream=False).tool_calls) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "answer",
    [
        "It is warm.",
        GOOD,
        f"Example:\n```\n{GOOD}\n```",
        ParsedResponse(MALFORMED, finish_reason=FinishReason.LENGTH),
        "",
    ],
    ids=["text", "call", "call in a fence", "too long", "empty"],
)
def test_an_answer_whose_calls_have_no_problem_is_the_only_one(answer: Any, stream: bool) -> None:
    asking = Asking([answer, "a second answer"], stream=stream)
    assert len(asking.sent) == 1
    assert b"second" not in asking.got.body


def test_without_the_setting_nothing_is_asked_for_again() -> None:
    asking = Asking([UNKNOWN, GOOD], retries=0)
    assert len(asking.sent) == 1
    assert [call.name for call in answer_in("chat", asking.got.body, stream=False).tool_calls] == ["get_wether"]


def test_a_stream_that_has_begun_with_text_is_not_repeated() -> None:
    asking = Asking([f"I look.\n{UNKNOWN}", GOOD], stream=True)
    assert len(asking.sent) == 1
    answer = answer_in("chat", asking.got.body, stream=True)
    assert answer.content.strip() == "I look."
    assert [call.name for call in answer.tool_calls] == ["get_wether"]


def test_a_whole_answer_that_begins_with_text_is_repeated() -> None:
    asking = Asking([f"I look.\n{UNKNOWN}", GOOD])
    answer = answer_in("chat", asking.got.body, stream=False)
    assert not answer.content
    assert [call.name for call in answer.tool_calls] == ["get_weather"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("second", "name"),
    [
        (ProviderError("the server is gone", status=503), "get_wether"),
        (MALFORMED, "get_wether"),
        ("", "get_wether"),
        (f"{UNKNOWN}\n{UNKNOWN}", "get_wether"),
        (written("get_weathre", '{"city": "Paris"}'), "get_weathre"),
    ],
    ids=["failure", "lost call", "empty", "more faults", "as many faults"],
)
def test_the_better_answer_is_sent(second: Any, name: str, stream: bool) -> None:
    asking = Asking([UNKNOWN, second], stream=stream)
    assert asking.got.status == 200
    assert [call.name for call in answer_in("chat", asking.got.body, stream=stream).tool_calls] == [name]
    assert len(asking.sent) == 2
    (exchange,) = asking.inspector.ring
    read = [event for step in exchange.attempts[-1].steps for event in step.events or ()]
    assert [event.name for event in read if isinstance(event, CallStart)] == [name]  # the page shows the last


def test_two_lost_calls_are_an_error() -> None:
    asking = Asking([MALFORMED, MALFORMED])
    assert asking.got.status == 502
    assert "could not be read" in asking.got.json["error"]["message"]


def test_a_model_is_asked_again_at_most_once() -> None:
    asking = Asking([UNKNOWN, UNKNOWN, GOOD])
    assert len(asking.sent) == 2


def test_settings_of_the_request_count_for_the_second_answer_too() -> None:
    asking = Asking([UNKNOWN, GOOD], "messages")
    assert [sent.get("max_tokens") or sent.get("max_completion_tokens") for sent in asking.sent] == [99, 99]


def native_configuration() -> Configuration:
    profile = {"provider": "vllm", "model": "unknown-model", "url": "http://b/v1"}
    models = {"m": {"profile": "p", "retries": 1}}
    return Configuration.model_validate({"profiles": {"p": profile}, "gateway": {"models": models}})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("call", [ToolCall("get_wether", {"city": "Paris"}, "c1"), None], ids=["native", "in text"])
def test_an_answer_that_would_be_passed_on_is_repeated_too(call: ToolCall | None, stream: bool) -> None:
    first = ParsedResponse("" if call else UNKNOWN, tool_calls=(call,) if call else (), usage=Usage(10, 3))
    good = ToolCall("get_weather", {"city": "Paris"}, "c2")
    transport = ScriptedTransport(
        "openai_compatible", [first, ParsedResponse("", tool_calls=(good,), usage=Usage(20, 5))]
    )
    config = native_configuration()

    async def work() -> Got:
        async with Models(transport=transport) as models:
            path, body = body_of("chat", stream=stream)
            body |= {"logit_bias": {"7": 1}, "stream_options": {"include_usage": True}}
            return await request(Gateway(await load_models(config, models)), path, body)

    answer = answer_in("chat", asyncio.run(work()).body, stream=stream)
    assert [call.name for call in answer.tool_calls] == ["get_weather"]
    assert answer.usage is not None and answer.usage.output_tokens == 8
    assert [sent.get("logit_bias") for sent in transport.requests] == [{"7": 1}, {"7": 1}]
    assert [len(sent["messages"]) for sent in transport.requests] == [1, 4]


def ask_native(answers: Sequence[Any], api: str = "chat", **members: Any) -> tuple[Got, int]:
    """Return the response of a gateway before a server with fields for tools, and the number of its requests."""
    transport = ScriptedTransport("openai_compatible", answers)
    config = native_configuration()

    async def work() -> Got:
        async with Models(transport=transport) as models:
            path, body = body_of(api)
            return await request(Gateway(await load_models(config, models)), path, {**body, **members})

    return asyncio.run(work()), len(transport.requests)


def test_a_right_answer_is_passed_on_as_it_is() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{ "city":"Paris" }'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "an extension": 1}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()
    got, asks = ask_native([(200, body)])
    assert (got.body, asks) == (body, 1)


def test_tokens_of_both_answers_are_estimated_where_the_server_reports_none() -> None:
    got, asks = ask_native([ParsedResponse(UNKNOWN), ParsedResponse(GOOD, usage=Usage(1000, 500))], "messages")
    usage = got.json["usage"]
    assert asks == 2
    assert usage["input_tokens"] > 1000 and usage["output_tokens"] > 500


def test_calls_that_a_provider_has_read_are_not_judged() -> None:
    answer = ParsedResponse("", tool_calls=(ToolCall("get_wether", {}, "c1"),))
    transport = ScriptedTransport("openai_chat", [answer, ParsedResponse("second")])
    upstream = ApiUpstream(Client("openai_chat", "m", key="k", transport=transport), name="cloud")
    got = run(Gateway(ModelTable([ServedModel("m", (RetriedUpstream(upstream),))])), *body_of("messages"))
    assert [call.name for call in answer_in("messages", got.body, stream=False).tool_calls] == ["get_wether"]
    assert len(transport.requests) == 1


@pytest.mark.parametrize("table", [{}, {"calls_in_text": "none"}], ids=["provider", "none"])
def test_a_setting_without_effect_is_refused(table: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    profile = {"provider": "openai_chat", "model": "gpt-6"}
    models = {"m": {"profile": "p", "retries": 1, **table}}
    config = Configuration.model_validate({"profiles": {"p": profile}, "gateway": {"models": models}})

    async def work() -> None:
        async with Models(transport=ScriptedTransport("openai_chat", [])) as opened:
            await load_models(config, opened)

    with pytest.raises(ConfigurationError, match=r"gateway\.models\.m: retries needs a model that writes"):
        asyncio.run(work())


class Writing:
    """A model that writes prepared texts, one for each request; None never ends.

    Attributes:
        requests: the requests so far.
        running: the number of answers that are being written.
        at_once: the highest number of them at the same time.
    """

    model = "writer"
    api = ""
    format = "hermes"

    def __init__(self, *answers: str | None) -> None:
        self.requests: list[ChatRequest] = []
        self.running = self.at_once = 0
        self._answers = answers

    async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
        text = self._answers[len(self.requests)]
        self.requests.append(request)
        self.running += 1
        self.at_once = max(self.running, self.at_once)
        try:
            if text is None:
                yield ContentDelta(" ")
                await asyncio.sleep(3600)
                return
            yield ContentDelta("\n")
            for event in replay(parse(text, format="hermes", tools=request.tools, id_seed=options.id_seed)):
                yield event
        finally:
            self.running -= 1


def writer_app(writer: Writing) -> Gateway:
    return Gateway(ModelTable([ServedModel("m", (RetriedUpstream(TextUpstream(writer)),))]))


class Counted(WrappedUpstream):
    """A backend whose answers are counted.

    Attributes:
        count: the number of answers.
        at_once: the highest number of them that were open at the same time.
    """

    def __init__(self, upstream: Upstream) -> None:
        super().__init__(upstream)
        self.count = self.at_once = self._open = 0

    @asynccontextmanager
    async def open(self, question: Question) -> AsyncGenerator[Answer]:
        self.count += 1
        self._open += 1
        self.at_once = max(self.at_once, self._open)
        try:
            async with self._upstream.open(question) as answer:
                yield answer
        finally:
            self._open -= 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_first_answer_has_ended_before_the_model_is_asked_again(stream: bool) -> None:
    counted = Counted(TextUpstream(Writing(UNKNOWN, GOOD)))
    app = Gateway(ModelTable([ServedModel("m", (RetriedUpstream(counted),))]))
    run(app, *body_of("chat", stream=stream))
    assert (counted.count, counted.at_once) == (2, 1)


def test_ids_of_calls_differ_between_the_answers() -> None:
    writer = Writing(INVALID, GOOD)
    got = run(writer_app(writer), *body_of("chat"))
    (call,) = answer_in("chat", got.body, stream=False).tool_calls
    (shown,) = [part for message in writer.requests[1].messages for part in message.parts if isinstance(part, ToolCall)]
    assert call.id and shown.id and call.id != shown.id


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_client_that_leaves_meanwhile_has_used_the_first_answer(stream: bool) -> None:
    writer = Writing(UNKNOWN, None)
    app = writer_app(writer)
    meters: list[AnswerMeter] = []
    services = app.services
    assert services.metrics is not None
    counted = services.metrics.counted

    def watched(reply: Any, question: Any, served: Any, meter: AnswerMeter) -> Any:
        meters.append(meter)
        return counted(reply, question, served, meter)

    services.metrics.counted = watched  # type: ignore[method-assign]
    run(app, *body_of("chat", stream=stream), leaves_after=5.0)
    (meter,) = meters
    assert writer.running == 0
    assert meter.usage.output_tokens > 0


def test_a_silent_stream_is_kept_alive_and_still_asked_again() -> None:
    class Slow(Writing):
        async def stream(self, request: ChatRequest, options: StreamOptions = NO_OPTIONS, /) -> AsyncGenerator[Event]:
            await asyncio.sleep(25)
            async for event in super().stream(request, options):
                yield event

    got = run(writer_app(Slow(UNKNOWN, GOOD)), *body_of("messages", stream=True))
    assert got.body.count(b"event: ping") == 4
    assert [call.name for call in answer_in("messages", got.body, stream=True).tool_calls] == ["get_weather"]


FREE = {"type": "custom", "name": "apply_patch", "description": "Applies a patch."}
GROUP = {
    "type": "namespace",
    "name": "city",
    "description": "Cities.",
    "tools": [{"type": "function", "name": "weather", "parameters": PARAMETERS}],
}


@pytest.mark.parametrize(
    ("answer", "asks"),
    [
        (written("apply_patch", '{"input": "*** Begin"}'), 1),
        (written("apply_patch", '{"patch": "*** Begin", "n": 1}'), 1),
        (written("city__weather", '{"city": "Paris"}'), 1),
        (written("city__weather", '{"days": 2}'), 2),
    ],
    ids=["text", "text in another parameter", "group", "wrong arguments"],
)
def test_tools_of_coding_agents_are_judged_as_the_model_knows_them(answer: str, asks: int) -> None:
    writer = Writing(answer, written("city__weather", '{"city": "Paris"}'))
    body = {"model": "m", "input": "Weather?", "tools": [FREE, GROUP]}
    got = run(writer_app(writer), "/v1/responses", body)
    assert got.status == 200
    assert len(writer.requests) == asks
    calls = [item for item in got.json["output"] if item["type"] in ("function_call", "custom_tool_call")]
    assert [call["name"] for call in calls] in (["apply_patch"], ["weather"])


@pytest.mark.parametrize(
    "parameters", [{"$ref": "#/nowhere"}, {"type": "object", "pattern": "("}], ids=["reference", "pattern"]
)
def test_arguments_that_cannot_be_checked_are_not_a_fault(parameters: dict[str, Any]) -> None:
    tools = [{"type": "function", "function": {"name": "odd", "parameters": parameters}}]
    answers = [ParsedResponse("", tool_calls=(ToolCall("odd", {"a": 1}, "c"),)), ParsedResponse("second")]
    got, _ = ask_native(answers, tools=tools)
    assert [call.name for call in answer_in("chat", got.body, stream=False).tool_calls] == ["odd"]


def test_two_tools_of_one_name_are_one() -> None:
    _, body = body_of("chat")
    _, asks = ask_native([ParsedResponse(UNKNOWN), ParsedResponse(GOOD)], tools=[*body["tools"], *body["tools"]])
    assert asks == 2
