"""Bedrock Converse: requests, answers and binary streams."""

import base64
from typing import Any

import pytest
from tests.streams import streamed
from tests.unit.providers.conftest import GET_WEATHER, USER

import toolwire
from toolwire import (
    FilePart,
    ImagePart,
    Message,
    Notes,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    collect,
    replay,
)
from toolwire.events import CallEnd
from toolwire.providers.bedrock_converse import for_boto3
from toolwire.providers.framing import AwsEventStream, aws_event

API = toolwire.get_api("bedrock_converse")
CALL = ToolCall("get_weather", {"city": "Paris"}, "tooluse_1")
ANSWER = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                {"reasoningContent": {"redactedContent": "eHg="}},
                {"text": "Looking."},
                {"toolUse": {"toolUseId": "s1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Paris"}}},
                {"toolUse": {"toolUseId": "tooluse_2", "name": "get_weather", "input": {}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12},
}


def encoded(*messages: Message, **options: Any) -> dict[str, Any]:
    return API.encode_request(messages, **options)


def test_request_contains_tools_and_tool_choice() -> None:
    notes = Notes()
    body = encoded(
        Message("system", (TextPart("be brief"),)), Message("user", (TextPart("hi"),)),
        tools=[GET_WEATHER], tool_choice="required", parallel=False,
        max_tokens=9, temperature=0.5, model="m", notes=notes,
    )  # fmt: skip
    spec = {"name": "get_weather", "inputSchema": {"json": GET_WEATHER.parameters}, "description": "The weather."}
    assert body == {
        "modelId": "m",
        "system": [{"text": "be brief"}],
        "messages": [{"role": "user", "content": [{"text": "hi"}]}],
        "toolConfig": {"tools": [{"toolSpec": spec}], "toolChoice": {"any": {}}},
        "inferenceConfig": {"maxTokens": 9, "temperature": 0.5},
    }
    assert [note.where for note in notes] == ["parallel"]
    request = API.decode_request(body)
    assert (request.tools, request.tool_choice.mode, request.max_tokens) == ((GET_WEATHER,), "required", 9)
    named = encoded(tools=[GET_WEATHER], tool_choice="get_weather")
    assert API.decode_request(named).tool_choice.name == "get_weather"
    assert encoded(tools=[GET_WEATHER], tool_choice="get_weather")["toolConfig"]["toolChoice"] == {
        "tool": {"name": "get_weather"}
    }
    assert "toolChoice" not in encoded(tools=[GET_WEATHER], tool_choice="none", notes=notes)["toolConfig"]
    assert len(notes) == 2


def test_results_of_a_turn_are_one_message() -> None:
    body = encoded(
        USER,
        Message("assistant", (CALL, ToolCall("b", {}, "tooluse_2"), ToolCall("c", {}, "tooluse_3"))),
        Message("tool", (ToolResult("tooluse_1", "get_weather", {"t": 20}, images=(ImagePart("aGk=", "image/png"),)),)),
        Message("tool", (ToolResult("tooluse_2", "b", error="no"), ToolResult("tooluse_3", "c", ""))),
        Message("user", (TextPart("and?"),)),
    )
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    image = {"image": {"format": "png", "source": {"bytes": "aGk="}}}
    assert body["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "tooluse_1", "content": [{"json": {"t": 20}}, image], "status": "success"}},
        {"toolResult": {"toolUseId": "tooluse_2", "content": [{"text": "no"}], "status": "error"}},
        {"toolResult": {"toolUseId": "tooluse_3", "content": [{"text": " "}], "status": "success"}},
        {"text": "and?"},
    ]
    again = API.decode_request(body).messages[2].parts
    assert again[:2] == (
        ToolResult("tooluse_1", "get_weather", {"t": 20}, images=(ImagePart("aGk=", "image/png"),)),
        ToolResult("tooluse_2", "b", error="no"),
    )


def test_response_is_decoded_and_encoded() -> None:
    response = API.decode_response(ANSWER)
    assert (response.content, response.reasoning, response.finish_reason) == ("Looking.", "hm", "tool_calls")
    assert [(call.id, call.arguments) for call in response.tool_calls] == [
        ("tooluse_1", {"city": "Paris"}),
        ("tooluse_2", {}),
    ]
    assert [type(part) for part in response.parts] == [
        ReasoningPart, ReasoningPart, TextPart, OpaquePart, ToolCall, ToolCall,
    ]  # fmt: skip
    assert API.encode_response(response)["output"] == ANSWER["output"]
    sent_back = encoded(USER, Message("assistant", response.parts))["messages"][1:]
    assert sent_back == [ANSWER["output"]["message"]]  # type: ignore[index]


def test_bytes_of_boto3_are_read_as_base64() -> None:
    content = [{"reasoningContent": {"redactedContent": b"xx"}}]
    response = API.decode_response(
        {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}
    )
    assert API.encode_response(response)["output"]["message"]["content"] == [
        {"reasoningContent": {"redactedContent": "eHg="}}
    ]


def test_bytes_of_boto3_at_any_depth_are_read_as_base64() -> None:
    block = {"guardContent": {"image": {"format": "png", "source": {"bytes": b"hi"}}, "more": [b"a", {"x": b"b"}]}}
    (message,) = API.decode_request({"messages": [{"role": "user", "content": [block]}]}).messages
    expected = {"image": {"format": "png", "source": {"bytes": "aGk="}}, "more": ["YQ==", {"x": "Yg=="}]}
    assert message.parts == (OpaquePart({"guardContent": expected}, "bedrock_converse"),)


@pytest.mark.parametrize("size", [1, 31, 10_000])
def test_stream_is_decoded_in_any_split(size: int) -> None:
    response = API.decode_response(ANSWER)
    data = b"".join(API.encode_stream(replay(response)))
    again = collect(streamed(API, data, size))
    assert again == response
    parts = [part for part in response.parts if not isinstance(part, OpaquePart)]
    assert list(again.parts) == parts


def test_stream_keeps_tools_that_the_provider_ran() -> None:
    use = {"toolUseId": "s1", "name": "nova_code_interpreter", "type": "server_tool_use"}
    data = aws_event({"contentBlockIndex": 0, "start": {"toolUse": use}}, "contentBlockStart")
    data += aws_event(
        {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"x":1}'}}, "p": "abc"}, "contentBlockDelta"
    )
    data += aws_event({"contentBlockIndex": 0}, "contentBlockStop")
    data += aws_event({"contentBlockIndex": 1, "delta": {"text": "2"}}, "contentBlockDelta")
    data += aws_event({"stopReason": "end_turn"}, "messageStop")
    response = collect(streamed(API, data))
    assert response.parts == (
        OpaquePart({"toolUse": {**use, "input": {"x": 1}}}, "bedrock_converse"),
        TextPart("2"),
    )
    assert not response.tool_calls


def test_errors_become_problems() -> None:
    data = aws_event({"contentBlockIndex": 0, "delta": {"text": "a"}}, "contentBlockDelta")
    data += aws_event({"message": "slow down"}, "throttlingException")
    response = collect(streamed(API, data))
    assert (response.content, response.finish_reason) == ("a", "error")
    assert [problem.kind for problem in response.problems] == ["provider_error"]
    assert [problem.kind for problem in API.decode_response({"message": "no"}).problems] == ["provider_error"]
    for content in (5, [5], [{"toolUse": {}}], [{"toolUse": 5}]):
        body = {**ANSWER, "output": {"message": {"content": content}}}
        assert not API.decode_response(body).tool_calls


JPEG = base64.b64encode(b"\xff\xd8\xff\xe0" + bytes(20)).decode()
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


@pytest.mark.parametrize(
    ("image", "form"),
    [
        (ImagePart(JPEG), "jpeg"),
        (ImagePart(PNG), "png"),
        (ImagePart(base64.b64encode(b"RIFF\x00\x00\x00\x00WEBPVP8 ").decode()), "webp"),
        (ImagePart(base64.b64encode(b"GIF89a").decode()), "gif"),
        (ImagePart(PNG, "image/jpg"), "jpeg"),
        (ImagePart(url=f"data:image/jpg;base64,{JPEG}"), "jpeg"),
        (ImagePart(url=f"data:;base64,{PNG}"), "png"),
        (ImagePart(PNG, "IMAGE/PNG; charset=binary"), "png"),
    ],
)
def test_image_format_is_detected_from_its_media_type_or_first_bytes(image: ImagePart, form: str) -> None:
    notes = Notes()
    body = API.encode_request([Message("user", (image,))], notes=notes)
    assert body["messages"][0]["content"] == [{"image": {"format": form, "source": {"bytes": image.data}}}]
    assert not notes


@pytest.mark.parametrize("image", [ImagePart("AAAA"), ImagePart(base64.b64encode(b"BM123456").decode())])
def test_unsupported_image_is_noted(image: ImagePart) -> None:
    for message in (Message("user", (image,)), Message("tool", (ToolResult("1", "f", images=(image,)),))):
        notes = Notes()
        API.encode_request([message], notes=notes)
        assert "image" in [note.where for note in notes]


def test_images_of_ollama_keep_their_kind() -> None:
    body = {"messages": [{"role": "user", "content": "see", "images": [JPEG]}]}
    request = toolwire.get_api("ollama").decode_request(body)
    assert API.encode_request(request)["messages"][0]["content"][1]["image"]["format"] == "jpeg"
    claude = toolwire.get_api("anthropic_messages").encode_request(request)
    assert claude["messages"][0]["content"][1]["source"]["media_type"] == "image/jpeg"


def test_for_boto3_returns_bytes() -> None:
    hidden = {"reasoningContent": {"redactedContent": "eHg="}}
    call = ToolCall("f", {"bytes": "eHg="}, "1")
    document = {"document": {"format": "pdf", "name": "d", "source": {"bytes": "eHg="}}}
    body = API.encode_request(
        [
            Message("user", (ImagePart(PNG), OpaquePart(document, "bedrock_converse"))),
            Message("assistant", (ReasoningPart("", "", "bedrock_converse", hidden), call)),
            Message("tool", (ToolResult("1", "f", {"bytes": "eHg="}, images=(ImagePart(JPEG),)),)),
        ],
        tools=[ToolDefinition("f", parameters={"type": "object", "properties": {"bytes": {"type": "string"}}})],
    )
    user, model, result = for_boto3(body)["messages"]
    assert user["content"][0]["image"]["source"]["bytes"] == base64.b64decode(PNG)
    assert model["content"][0]["reasoningContent"]["redactedContent"] == b"xx"
    assert model["content"][1]["toolUse"]["input"] == {"bytes": "eHg="}
    shown = result["content"][0]["toolResult"]["content"]
    assert shown[0] == {"json": {"bytes": "eHg="}}
    assert shown[1]["image"]["source"]["bytes"] == base64.b64decode(JPEG)
    assert for_boto3(body)["toolConfig"] == body["toolConfig"]
    again = API.decode_request(for_boto3(body))
    assert API.encode_request(again) == body


def test_text_with_citations_is_content() -> None:
    cited = {"content": [{"text": "Tea is "}, {"text": "green."}], "citations": [{"title": "On tea"}]}
    body = {"output": {"message": {"content": [{"citationsContent": cited}]}}, "stopReason": "end_turn"}
    assert API.decode_response(body).content == "Tea is green."


def test_bytes_of_boto3_are_base64_in_every_depth() -> None:
    image = {"image": {"format": "png", "source": {"bytes": b"abc"}}}
    request = API.decode_request({"messages": [{"role": "user", "content": [image]}]})
    assert request.messages[0].parts == (ImagePart("YWJj", media_type="image/png"),)


def test_a_strict_tool_is_read_as_one() -> None:
    schema = {"json": {"type": "object", "properties": {}}}
    tools = [
        {"toolSpec": {"name": name, "inputSchema": schema, **strict}}
        for name, strict in (
            ("a", {"strict": True}),
            ("b", {"strict": False}),
            ("c", {"strict": "yes"}),
            ("d", {}),
        )
    ]
    request = API.decode_request({"messages": [], "toolConfig": {"tools": tools}})
    assert [tool.annotations for tool in request.tools] == [{"strict": True}, {"strict": False}, {}, {}]


def test_a_call_of_a_stream_ends_with_its_block() -> None:
    decoder = API.stream_decoder()
    start = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t1", "name": "get_weather"}}}
    events = decoder.feed(aws_event(start, "contentBlockStart"))
    events += decoder.feed(
        aws_event({"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}}, "contentBlockDelta")
    )
    assert not any(isinstance(event, CallEnd) for event in events)
    assert [type(event) for event in decoder.feed(aws_event({"contentBlockIndex": 0}, "contentBlockStop"))] == [CallEnd]


def test_a_stream_ends_with_its_totals() -> None:
    data = b"".join(API.encode_stream(toolwire.replay(toolwire.ParsedResponse("a", usage=toolwire.Usage(5, 7, 2)))))
    usage = {"inputTokens": 3, "outputTokens": 7, "totalTokens": 12, "cacheReadInputTokens": 2}
    *frames, last = AwsEventStream().feed(data)
    names = ["messageStart", "contentBlockDelta", "contentBlockStop", "messageStop"]
    assert [frame.event for frame in frames] == names
    assert (last.event, last.value) == ("metadata", {"usage": usage, "metrics": {"latencyMs": 0}})


FORMATS = {
    "audio": {"wav": "wav", "mpeg": "mp3", "aac": "aac", "flac": "flac", "ogg": "ogg", "opus": "opus", "mp4": "m4a"},
    "video": {"x-matroska": "mkv", "quicktime": "mov", "mp4": "mp4", "webm": "webm", "x-flv": "flv", "mpeg": "mpeg"},
    "document": {"pdf": "pdf"},
}
MORE = {"video/x-ms-wmv": "wmv", "video/3gpp": "three_gp", "audio/webm": "webm", "text/markdown": "md"}


@pytest.mark.parametrize(
    ("media_type", "form"),
    [
        *(
            (f"{'application' if kind == 'document' else kind}/{name}", form)
            for kind, forms in FORMATS.items()
            for name, form in forms.items()
        ),
        *MORE.items(),
    ],
)
def test_files_have_the_names_of_their_formats(media_type: str, form: str) -> None:
    notes = Notes()
    part = FilePart("YWJj", media_type=media_type, name="a")
    body = API.encode_request([Message("user", (TextPart("q"), part))], notes=notes)
    block = next(block for block in body["messages"][0]["content"] if "text" not in block)
    (written,) = block.values()
    assert written["format"] == form
    assert API.decode_request(body).messages[0].parts[1].media_type == media_type  # type: ignore[union-attr]
    assert not notes
