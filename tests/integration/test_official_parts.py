"""Messages with images, documents, recordings and videos are what the providers' own clients accept."""

from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.unit.providers.test_media import ASKED, IN_RESULTS, MEDIA, NATIVE

from toolwire import FilePart, ImagePart, Message, ToolResult, get_api
from toolwire.providers.bedrock_converse import for_boto3

every_kind = pytest.mark.parametrize("kind", MEDIA)


def body(api: str, kind: str) -> dict[str, Any]:
    """Return a request with a medium in the user's message and in a result."""
    media = MEDIA[kind]
    images = (media,) if isinstance(media, ImagePart) else ()
    files = (media,) if isinstance(media, FilePart) else ()
    result = ToolResult("call12345", "look", "Seen.", images=images, files=files)
    messages = [Message("user", ["Look at this.", media]), *ASKED, Message("tool", (result,))]
    return get_api(api).encode_request(messages, model="m")


def exhausted(value: Any) -> Any:
    """Return a validated value with every lazy iterable in it read, which validates its items."""
    if isinstance(value, dict):
        return {key: exhausted(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [exhausted(item) for item in value]


def types_of(blocks: Any) -> set[str]:
    return {block["type"] for block in blocks}


@every_kind
def test_openai_chat(kind: str) -> None:
    types = pytest.importorskip("openai.types.chat")
    messages = body("openai_chat", kind)["messages"]
    adapter = TypeAdapter(types.ChatCompletionContentPartParam)
    # Members that the validation does not know would be missing in what it returns.
    assert [adapter.validate_python(block) for block in messages[0]["content"]] == messages[0]["content"]
    expected = {"image": "image_url", "image_url": "image_url", "audio": "input_audio", "pdf": "file", "text": "file"}
    assert types_of(messages[0]["content"]) == {"text", expected.get(kind, "text")}


@every_kind
def test_openai_responses(kind: str) -> None:
    types = pytest.importorskip("openai.types.responses")
    request = body("openai_responses", kind)
    adapter = TypeAdapter(types.ResponseInputItemParam)
    assert [exhausted(adapter.validate_python(item)) for item in request["input"]] == request["input"]
    media = "input_image" if kind in ("image", "image_url") else "input_file"
    expected = media if kind in NATIVE["openai_responses"] else "input_text"
    assert (
        types_of(request["input"][0]["content"]) == types_of(request["input"][-1]["output"]) == {"input_text", expected}
    )


@every_kind
def test_anthropic(kind: str) -> None:
    types = pytest.importorskip("anthropic.types")
    messages = body("anthropic_messages", kind)["messages"]
    adapter = TypeAdapter(types.ImageBlockParam | types.DocumentBlockParam | types.TextBlockParam)
    blocks = [*messages[0]["content"], *messages[-1]["content"][0]["content"]]
    assert [adapter.validate_python(block) for block in blocks] == blocks
    media = "image" if kind in ("image", "image_url") else "document"
    expected = media if kind in NATIVE["anthropic_messages"] else "text"
    assert types_of(messages[0]["content"]) == {"text", expected}
    assert types_of(messages[-1]["content"][0]["content"]) == {"text", expected}


@every_kind
def test_gemini(kind: str) -> None:
    types = pytest.importorskip("google.genai.types")
    contents = [types.Content.model_validate(content) for content in body("gemini", kind)["contents"]]
    in_message, in_result = contents[0].parts[1], contents[-1].parts[0].function_response.parts[0]
    for part in (in_message, in_result):
        blob = part.file_data if "url" in kind else part.inline_data
        assert blob.mime_type == MEDIA[kind].media_type


@every_kind
def test_bedrock(kind: str) -> None:
    session = pytest.importorskip("botocore.session").get_session()
    shape = session.get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    validator = pytest.importorskip("botocore.validate").ParamValidator()
    request = for_boto3({**body("bedrock_converse", kind), "modelId": "m"})
    assert validator.validate(request, shape).generate_report() == ""
    key = "image" if kind.startswith("image") else MEDIA[kind].kind  # type: ignore[union-attr]
    results = request["messages"][-1]["content"][0]["toolResult"]["content"]
    assert any(key in block for block in request["messages"][0]["content"]) == (kind in NATIVE["bedrock_converse"])
    assert any(key in block for block in results) == (kind in IN_RESULTS["bedrock_converse"])


@every_kind
def test_mistral(kind: str) -> None:
    request = pytest.importorskip("mistralai.client.models").ChatCompletionRequest
    validated = request.model_validate(body("mistral", kind))
    chunk = validated.messages[0].content[1]
    names = {"image": "ImageURLChunk", "image_url": "ImageURLChunk", "audio": "AudioChunk"}
    default = "DocumentURLChunk" if kind in NATIVE["mistral"] else "TextChunk"
    assert type(chunk).__name__ == names.get(kind, default)


@every_kind
def test_cohere(kind: str) -> None:
    types = pytest.importorskip("cohere")
    for message in body("cohere", kind)["messages"]:
        TypeAdapter(types.ChatMessageV2).validate_python(message)


@every_kind
def test_ollama(kind: str) -> None:
    types = pytest.importorskip("ollama._types")
    first, *_, last = body("ollama", kind)["messages"]
    for message in (first, last):
        images = message.pop("images", [])
        parsed = types.Message(**message, images=[types.Image(value=data) for data in images])
        assert parsed.model_dump()["images"] == images  # which is what the client would send
        assert bool(images) == (kind == "image")
