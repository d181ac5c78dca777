"""The providers' own clients, pointed at a server that answers in our words: they see exactly the calls that were
encoded, and what they send is read as what was asked."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import FinishReason, ParsedResponse, ReasoningPart, TextPart, ToolCall, replay

pytestmark = pytest.mark.filterwarnings("ignore")  # what the clients themselves warn of


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    """What the clients leave open is collected here, not in the tests of another module."""
    yield
    gc.collect()


Seen = tuple[str, list[tuple[str, str, Any]]]
"""Text and calls, as a client sees them: id, name, arguments."""

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "The weather.", "parameters": PARAMETERS}
QUESTION = [{"role": "user", "content": "Weather?"}]


def response(text: str, *calls: ToolCall) -> ParsedResponse:
    parts = ((ReasoningPart("hm"), TextPart(text)) if text else ()) + calls
    reason = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return ParsedResponse(text, "hm" if text else "", calls, finish_reason=reason, parts=parts)


RESPONSES = {
    "text": response("Only text: ünïcödé 😀."),
    "call": response("", ToolCall("get_weather", {"city": "Paris"}, "callone01")),
    "calls": response(
        "Two.",
        ToolCall("get_weather", {"city": 'a "quoted"\n\\ line'}, "callone01"),
        ToolCall("get_weather", {"city": "東京 🗼", "deep": {"list": [1, 2.5, None, True, {"x": []}]}}, "calltwo02"),
    ),
    "no_arguments": response("", ToolCall("now", {}, "callone01")),
}


def text_of(value: Any) -> str:
    return value or ""


def loaded(text: str | None) -> Any:
    return json.loads(text) if text else {}


def openai_chat(base: str, stream: bool) -> Seen:
    openai = pytest.importorskip("openai")
    return _chat(openai.OpenAI(base_url=f"{base}/v1", api_key="x", max_retries=0), stream)


def _chat(client: Any, stream: bool) -> Seen:
    tools = [{"type": "function", "function": FUNCTION}]
    if stream:
        from openai.lib.streaming.chat import ChatCompletionStreamState

        state = ChatCompletionStreamState()
        for chunk in client.chat.completions.create(model="m", messages=QUESTION, tools=tools, stream=True):
            state.handle_chunk(chunk)
        message = state.current_completion_snapshot.choices[0].message
    else:
        message = client.chat.completions.create(model="m", messages=QUESTION, tools=tools).choices[0].message
    return text_of(message.content), [
        (c.id, c.function.name, loaded(c.function.arguments)) for c in message.tool_calls or ()
    ]


def openai_responses(base: str, stream: bool) -> Seen:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="x", max_retries=0)
    tools = [{"type": "function", "strict": False, **FUNCTION}]
    if stream:
        with client.responses.stream(model="m", input="Weather?", tools=tools) as events:
            for _ in events:
                pass
            got = events.get_final_response()
    else:
        got = client.responses.create(model="m", input="Weather?", tools=tools)
    calls = [item for item in got.output if item.type == "function_call"]
    return got.output_text, [(item.call_id, item.name, loaded(item.arguments)) for item in calls]


def azure(base: str, stream: bool) -> Seen:
    openai = pytest.importorskip("openai")
    return _chat(openai.OpenAI(base_url=f"{base}/openai/v1", api_key="x", max_retries=0), stream)


def azure_deployments(base: str, stream: bool) -> Seen:
    openai = pytest.importorskip("openai")
    return _chat(openai.AzureOpenAI(azure_endpoint=base, api_key="x", api_version="v", max_retries=0), stream)


def anthropic_messages(base: str, stream: bool) -> Seen:
    anthropic = pytest.importorskip("anthropic")
    return _messages(anthropic.Anthropic(base_url=base, api_key="x", max_retries=0), stream)


def anthropic_bedrock(base: str, stream: bool) -> Seen:
    pytest.importorskip("boto3")
    anthropic = pytest.importorskip("anthropic")
    keys = {"aws_access_key": "a", "aws_secret_key": "b", "aws_region": "us-east-1"}
    return _messages(anthropic.AnthropicBedrock(base_url=base, max_retries=0, **keys), stream)


def anthropic_vertex(base: str, stream: bool) -> Seen:
    anthropic = pytest.importorskip("anthropic")
    place = {"region": "us-east5", "project_id": "p", "access_token": "t"}
    return _messages(anthropic.AnthropicVertex(base_url=base, max_retries=0, **place), stream)


def _messages(client: Any, stream: bool) -> Seen:
    tools = [{"name": "get_weather", "description": "The weather.", "input_schema": PARAMETERS}]
    if stream:
        with client.messages.stream(model="m", max_tokens=9, messages=QUESTION, tools=tools) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(model="m", max_tokens=9, messages=QUESTION, tools=tools)
    text = "".join(block.text for block in message.content if block.type == "text")
    return text, [(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"]


def groq(base: str, stream: bool) -> Seen:
    client = pytest.importorskip("groq").Groq(base_url=base, api_key="x", max_retries=0)
    tools = [{"type": "function", "function": FUNCTION}]
    if not stream:
        message = client.chat.completions.create(model="m", messages=QUESTION, tools=tools).choices[0].message
        return text_of(message.content), [
            (c.id, c.function.name, loaded(c.function.arguments)) for c in message.tool_calls or ()
        ]
    text, calls = "", dict[int, list[str]]()
    for chunk in client.chat.completions.create(model="m", messages=QUESTION, tools=tools, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                one = calls.setdefault(call.index, ["", "", ""])
                one[0] = call.id or one[0]
                one[1] += call.function.name or ""
                one[2] += call.function.arguments or ""
    return text, [(id, name, loaded(arguments)) for id, name, arguments in calls.values()]


def gemini(base: str, stream: bool) -> Seen:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="x", http_options={"base_url": base})
    config = {"tools": [{"function_declarations": [FUNCTION]}]}
    asked = {"model": "m", "contents": "Weather?", "config": config}
    answers = client.models.generate_content_stream(**asked) if stream else [client.models.generate_content(**asked)]
    text, calls = "", []
    for answer in answers:
        for part in (
            answer.candidates[0].content.parts or () if answer.candidates and answer.candidates[0].content else ()
        ):
            if part.text and not part.thought:
                text += part.text
            if part.function_call:
                calls.append((part.function_call.id or "", part.function_call.name, part.function_call.args or {}))
    return text, calls


def gemini_interactions(base: str, stream: bool) -> Seen:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="x", http_options={"base_url": base})
    asked = {"model": "m", "input": "Weather?", "tools": [{"type": "function", **FUNCTION}]}
    if not stream:
        steps = client.interactions.create(**asked).steps
        outputs = [block for step in steps if step.type == "model_output" for block in step.content]
        calls = [(step.id, step.name, step.arguments) for step in steps if step.type == "function_call"]
        return "".join(block.text for block in outputs), calls
    text, written = "", dict[int, list[str]]()
    for event in client.interactions.create(**asked, stream=True):
        if event.event_type == "step.start" and event.step.type == "function_call":
            written[event.index] = [event.step.id, event.step.name, ""]
        elif event.event_type == "step.delta" and event.delta.type == "arguments_delta":
            written[event.index][2] += event.delta.arguments
        elif event.event_type == "step.delta" and event.delta.type == "text":
            text += event.delta.text
    return text, [(id, name, loaded(arguments)) for id, name, arguments in written.values()]


def mistral(base: str, stream: bool) -> Seen:
    client = pytest.importorskip("mistralai.client").Mistral(api_key="x", server_url=base)
    tools = [{"type": "function", "function": FUNCTION}]
    asked = {"model": "m", "messages": QUESTION, "tools": tools}

    def shown(content: Any) -> str:
        if isinstance(content, list):
            return "".join(block.text for block in content if block.type == "text")
        return content if isinstance(content, str) else ""

    def called(calls: Any) -> list[tuple[str, str, Any]]:
        return [(c.id, c.function.name, loaded(c.function.arguments)) for c in calls or ()]

    if not stream:
        message = client.chat.complete(**asked).choices[0].message
        return shown(message.content), called(message.tool_calls)
    text, calls = "", dict[int, list[Any]]()
    for event in client.chat.stream(**asked):
        for choice in event.data.choices:
            text += shown(choice.delta.content)
            for call in choice.delta.tool_calls or ():
                one = calls.setdefault(call.index, [call.id, call.function.name, ""])
                one[2] += call.function.arguments if isinstance(call.function.arguments, str) else ""
    return text, [(id, name, loaded(arguments)) for id, name, arguments in calls.values()]


def cohere(base: str, stream: bool) -> Seen:
    with pytest.importorskip("cohere").ClientV2(api_key="x", base_url=base) as client:
        return cohere_answer(client, stream)


def cohere_answer(client: Any, stream: bool) -> Seen:
    tools = [{"type": "function", "function": FUNCTION}]
    asked = {"model": "m", "messages": QUESTION, "tools": tools}
    if not stream:
        message = client.chat(**asked).message
        text = "".join(block.text for block in message.content or () if block.type == "text")
        return text, [(c.id, c.function.name, loaded(c.function.arguments)) for c in message.tool_calls or ()]
    text, calls = "", dict[int, list[str]]()
    for event in client.chat_stream(**asked):
        if event.type == "content-delta":
            text += event.delta.message.content.text or ""
        elif event.type == "tool-call-start":
            call = event.delta.message.tool_calls
            calls[event.index] = [call.id, call.function.name, call.function.arguments or ""]
        elif event.type == "tool-call-delta":
            calls[event.index][2] += event.delta.message.tool_calls.function.arguments or ""
    return text, [(id, name, loaded(arguments)) for id, name, arguments in calls.values()]


def ollama(base: str, stream: bool) -> Seen:
    tools = [{"type": "function", "function": FUNCTION}]
    text, calls = "", []
    with pytest.importorskip("ollama").Client(host=base) as client:
        answers = client.chat(model="m", messages=QUESTION, tools=tools, stream=stream)
        for answer in answers if stream else [answers]:
            text += answer.message.content or ""
            calls += [("", c.function.name, dict(c.function.arguments)) for c in answer.message.tool_calls or ()]
    return text, calls


def bedrock_converse(base: str, stream: bool) -> Seen:
    boto3 = pytest.importorskip("boto3")
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=base, **keys)
    spec = {"name": "get_weather", "description": "The weather.", "inputSchema": {"json": PARAMETERS}}
    asked = {
        "modelId": "m",
        "messages": [{"role": "user", "content": [{"text": "Weather?"}]}],
        "toolConfig": {"tools": [{"toolSpec": spec}]},
    }
    text, calls = "", dict[int, list[str]]()
    if not stream:
        content = client.converse(**asked)["output"]["message"]["content"]
        text = "".join(block.get("text", "") for block in content)
        uses = [block["toolUse"] for block in content if "toolUse" in block]
        return text, [(use["toolUseId"], use["name"], use["input"]) for use in uses]
    for event in client.converse_stream(**asked)["stream"]:
        if "contentBlockStart" in event:
            use = event["contentBlockStart"]["start"]["toolUse"]
            calls[event["contentBlockStart"]["contentBlockIndex"]] = [use["toolUseId"], use["name"], ""]
        elif "contentBlockDelta" in event:
            delta, index = event["contentBlockDelta"]["delta"], event["contentBlockDelta"]["contentBlockIndex"]
            text += delta.get("text", "")
            if "toolUse" in delta:
                calls[index][2] += delta["toolUse"]["input"]
    return text, [(id, name, loaded(arguments)) for id, name, arguments in calls.values()]


CLIENTS: dict[str, Callable[[str, bool], Seen]] = {
    "openai_chat": openai_chat, "openai_responses": openai_responses, "anthropic_messages": anthropic_messages,
    "groq": groq, "gemini": gemini, "mistral": mistral, "cohere": cohere, "ollama": ollama,
    "bedrock_converse": bedrock_converse, "azure": azure, "azure_deployments": azure_deployments,
    "gemini_interactions": gemini_interactions, "anthropic_bedrock": anthropic_bedrock,
    "anthropic_vertex": anthropic_vertex,
}  # fmt: skip
WITHOUT_IDS = ("ollama", "gemini")
"""Clients that show no ids, or APIs where an id is only the provider's to give."""


def types_of(api: str, stream: bool) -> str:
    if not stream:
        return "application/json"
    if "bedrock" in api:
        return "application/vnd.amazon.eventstream"
    return "application/x-ndjson" if api == "ollama" else "text/event-stream"


@pytest.mark.need(21)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("api", CLIENTS)
def test_a_client_sees_what_was_encoded(api: str, name: str, stream: bool) -> None:
    known, wanted = toolwire.get_api(api), RESPONSES[name]
    asked: list[toolwire.ChatRequest] = []

    def answer(one: Asked) -> Answer:
        asked.append(known.decode_request(json.loads(one.body)))
        body = (
            b"".join(known.encode_stream(replay(wanted), model="m"))
            if stream
            else json.dumps(known.encode_response(wanted, model="m")).encode()
        )
        return Answer(body, content_type=types_of(api, stream))

    with serving(answer) as base:
        text, calls = CLIENTS[api](base, stream)
    assert text == wanted.content
    expected: Iterator[tuple[str, str, Any]] = (
        ("" if api in WITHOUT_IDS else call.id, call.name, call.arguments) for call in wanted.tool_calls
    )
    assert [("" if api in WITHOUT_IDS else id, called, arguments) for id, called, arguments in calls] == list(expected)
    (request,) = asked
    (tool,) = request.tools
    assert (tool.name, tool.description) == ("get_weather", "The weather.")
    assert json.loads(json.dumps(tool.parameters).lower())["properties"]["city"]["type"] == "string"
    assert [part for message in request.messages for part in message.parts] == [TextPart("Weather?")]
