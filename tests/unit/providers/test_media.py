"""Images, documents, recordings and videos in every API: written and read, or in words where there is no place."""

import base64
import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from toolwire import (
    DefinitionError,
    FilePart,
    ImagePart,
    Message,
    Notes,
    OpaquePart,
    TextPart,
    ToolCall,
    ToolResult,
    apis,
    get_api,
)

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n...").decode()
PAGES = base64.b64encode(b"%PDF-1.7 ...").decode()
SOUND = base64.b64encode(b"RIFF\x00\x00\x00\x00WAVEfmt ").decode()
FILM = base64.b64encode(b"\x00\x00\x00\x18ftypmp42").decode()
MEDIA: dict[str, ImagePart | FilePart] = {
    "image": ImagePart(PIXEL, "image/png"),
    "image_url": ImagePart(url="https://example.org/a.png", media_type="image/png"),
    "pdf": FilePart(PAGES, "application/pdf", name="Report"),
    "pdf_url": FilePart(url="https://example.org/a.pdf", media_type="application/pdf"),
    "text": FilePart.of_text("Snow: 3 cm", name="Notes"),
    "audio": FilePart(SOUND, "audio/wav"),
    "video": FilePart(FILM, "video/mp4"),
}
IMAGES = {"image", "image_url"}
OPENAI = IMAGES | {"pdf", "text", "audio"}
NATIVE = {
    "openai_chat": OPENAI,
    "azure": OPENAI,
    "azure_deployments": OPENAI,
    "openrouter": OPENAI,
    "vllm": IMAGES | {"audio"},
    "llama_cpp": IMAGES | {"audio"},
    "openai_responses": IMAGES | {"pdf", "pdf_url", "text"},
    "anthropic_messages": IMAGES | {"pdf", "pdf_url", "text"},
    "anthropic_bedrock": IMAGES | {"pdf", "pdf_url", "text"},
    "anthropic_vertex": IMAGES | {"pdf", "pdf_url", "text"},
    "bedrock_converse": {"image", "pdf", "text", "audio", "video"},
    "gemini": set(MEDIA),
    "gemini_openapi": set(MEDIA),
    "gemini_interactions": set(MEDIA) - {"text"},
    "mistral": IMAGES | {"pdf", "pdf_url", "audio"},
    "ollama": {"image"},
}
"""The kinds that each API takes in a message of the user; images alone for those that are not listed."""
IN_RESULTS = {
    "openai_responses": NATIVE["openai_responses"],
    **dict.fromkeys(("anthropic_messages", "anthropic_bedrock", "anthropic_vertex"), NATIVE["anthropic_messages"]),
    "bedrock_converse": NATIVE["bedrock_converse"] - {"audio"},
    "gemini": set(MEDIA),
    "gemini_openapi": set(MEDIA),
    "gemini_interactions": IMAGES,
    "ollama": {"image"},
}
"""The kinds that each API takes within a result; all others follow it in a message of the user."""
CALL = ToolCall("look", {}, "call12345")
ASKED = (Message("user", "Look."), Message("assistant", (CALL,)))
every_api = pytest.mark.parametrize("api", apis())
every_kind = pytest.mark.parametrize("kind", MEDIA)


def about_media(notes: Notes) -> list[str]:
    return [note.kind for note in notes if note.where.split()[0] in ("image", "document", "audio", "video")]


def content_of(part: Any) -> tuple[str, str, str]:
    """Return the data, the URL and the kind of a medium."""
    assert isinstance(part, ImagePart | FilePart)
    return part.data, part.url, "image" if isinstance(part, ImagePart) else part.kind


def in_words(kind: str) -> tuple[str, str]:
    """Return the text that stands for a kind of media, and the kind of its note."""
    match kind:
        case "image_url" | "pdf_url":
            return "https://example.org/a.", "changed"
        case "text":
            return "Snow: 3 cm", "changed"
    return "it cannot be shown here", "dropped"


@every_kind
@every_api
def test_each_api_takes_what_it_knows_and_gets_words_for_the_rest(api: str, kind: str) -> None:
    notes = Notes()
    message = Message("user", ["Look at this.", MEDIA[kind]])
    body = get_api(api).encode_request([message], notes=notes, model="m")
    back = get_api(api).decode_request(json.loads(json.dumps(body))).messages[-1]
    if kind in NATIVE.get(api, IMAGES):
        assert about_media(notes) == []
        # The name, and the type of what an address leads to, have no place in some APIs.
        assert [content_of(part) for part in back.parts if not isinstance(part, TextPart)] == [content_of(MEDIA[kind])]
    else:
        words, note = in_words(kind)
        assert about_media(notes) == [note]
        assert words in back.text
        assert {type(part) for part in back.parts} == {TextPart}


@every_kind
@every_api
def test_media_of_a_result_are_part_of_it_or_follow_it(api: str, kind: str) -> None:
    notes = Notes()
    media = MEDIA[kind]
    result = (
        ToolResult("call12345", "look", "Seen.", images=(media,))
        if isinstance(media, ImagePart)
        else ToolResult("call12345", "look", "Seen.", files=(media,))
    )
    body = get_api(api).encode_request([*ASKED, Message("tool", (result,))], notes=notes, model="m")
    back = get_api(api).decode_request(json.loads(json.dumps(body))).messages
    read = next(part for message in back for part in message.parts if isinstance(part, ToolResult))
    following = [part for part in back[-1].parts if isinstance(part, ImagePart | FilePart)]
    text = json.dumps(body, ensure_ascii=False)
    if kind in IN_RESULTS.get(api, ()):
        assert about_media(notes) == []
        assert [part.as_url for part in read.media] == [media.as_url]
        assert read.result == "Seen."
    elif kind in NATIVE.get(api, IMAGES) and api != "bedrock_converse":
        assert about_media(notes) == []
        assert [part.as_url for part in following] == [media.as_url]
    else:
        words, note = in_words(kind)
        assert about_media(notes) == [note]
        assert words in text
        assert not read.media and not following


@every_kind
@every_api
def test_a_result_of_media_alone_has_a_text_that_says_so_or_none(api: str, kind: str) -> None:
    media = MEDIA[kind]
    images, files = ((media,), ()) if isinstance(media, ImagePart) else ((), (media,))
    result = ToolResult("call12345", "look", images=images, files=files)
    body = get_api(api).encode_request([*ASKED, Message("tool", (result,))], model="m")
    assert '"null"' not in json.dumps(body)


OWNED = {"uri": "s3://a/b", "bucketOwner": "123456789012"}


def decoded(api: str, block: dict[str, Any]) -> Any:
    """Return the part that a block of a user's message is read as."""
    content = {"parts": [block]} if api == "gemini" else {"content": [block]}
    key = "contents" if api == "gemini" else "input" if api == "openai_responses" else "messages"
    messages = get_api(api).decode_request({"model": "m", key: [{"role": "user", **content}]}).messages
    return messages[0].parts[0]


OWN_MEDIA: list[tuple[str, dict[str, Any]]] = [
    ("openai_chat", {"type": "file", "file": {"file_id": "file-1"}}),
    ("openai_chat", {"type": "input_audio", "input_audio": {"data": SOUND, "format": "pcm16"}}),
    ("groq", {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PAGES}"}}),
    ("openai_responses", {"type": "input_file", "file_id": "file-1"}),
    ("anthropic_messages", {"type": "document", "source": {"type": "file", "file_id": "f"}}),
    ("anthropic_messages", {"type": "document", "source": {"type": "content", "content": "x"}}),
    ("bedrock_converse", {"document": {"format": "txt", "name": "n", "source": {"text": "x"}}}),
    ("bedrock_converse", {"video": {"format": "mp4", "source": {"s3Location": OWNED}}}),
    ("gemini", {"fileData": {"fileUri": "https://youtu.be/x"}}),
    ("mistral", {"type": "file", "file_id": "f"}),
    ("mistral", {"type": "input_audio", "input_audio": "https://x/a.mp3"}),
]  # fmt: skip
"""Media that only one API can name, such as a file in its own store."""


@pytest.mark.parametrize(("api", "block"), OWN_MEDIA)
def test_media_that_only_one_api_can_name_pass_it_unchanged(api: str, block: dict[str, Any]) -> None:
    part = decoded(api, block)
    assert isinstance(part, OpaquePart)
    body = get_api(api).encode_request([Message("user", ["x", part])], model="m")
    assert json.dumps(block)[1:-1] in json.dumps(body)


MEDIA_WITH_OWN_MEMBERS: list[dict[str, Any]] = [
    {"inlineData": {"mimeType": "video/mp4", "data": FILM}, "videoMetadata": {"fps": 2}},
    {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "mediaResolution": {"level": "HIGH"}},
    {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "a.png"}},
    {"fileData": {"fileUri": "https://x/a.pdf", "mimeType": "application/pdf", "shade": 1}},
]


@pytest.mark.parametrize("block", MEDIA_WITH_OWN_MEMBERS)
def test_media_of_gemini_with_members_of_its_own_come_back_unchanged(block: dict[str, Any]) -> None:
    part = decoded("gemini", block)
    assert isinstance(part, ImagePart | FilePart)
    body = get_api("gemini").encode_request([Message("user", [part])], model="m")
    assert body["contents"][0]["parts"] == [block]


@every_api
@pytest.mark.parametrize("block", MEDIA_WITH_OWN_MEMBERS)
def test_members_of_media_are_noted_in_every_other_api_and_the_media_are_kept(block: dict[str, Any], api: str) -> None:
    if get_api(api).kind == "gemini":
        return
    part, notes = decoded("gemini", block), Notes()
    get_api(api).encode_request([Message("user", ["Look.", part])], model="m", notes=notes)
    own = {path.partition(".")[2] or path for path in part.extra.data}
    assert [note.where.partition(".")[2] or note.where for note in notes if note.message == "only gemini has it"] == [
        *own
    ]
    alone = Notes()
    get_api(api).encode_request([Message("user", ["Look.", replace(part, extra=None)])], model="m", notes=alone)
    assert [note for note in notes if note.message != "only gemini has it"] == list(alone)


@every_api
@pytest.mark.parametrize(("source", "block"), OWN_MEDIA)
def test_media_that_only_one_api_can_name_are_noted_in_every_other(
    source: str, block: dict[str, Any], api: str
) -> None:
    if get_api(api).kind == get_api(source).kind:
        return  # it may have the same store; see the tests around this one
    notes = Notes()
    body = get_api(api).encode_request([Message("user", ["Look.", decoded(source, block)])], model="m", notes=notes)
    assert json.dumps(block)[1:-1] not in json.dumps(body)
    assert [note.kind for note in notes if f"only {get_api(source).kind} understands it" in note.message] == ["dropped"]


@every_api
@pytest.mark.parametrize("source", NATIVE)
@every_kind
def test_media_of_every_api_are_kept_in_every_other_or_become_words_with_a_note(
    kind: str, source: str, api: str
) -> None:
    if kind not in NATIVE[source]:
        return
    body = get_api(source).encode_request([Message("user", ["Look at this.", MEDIA[kind]])], model="m")
    notes = Notes()
    request = get_api(source).decode_request(json.loads(json.dumps(body)))
    written = json.dumps(get_api(api).encode_request(request, notes=notes), ensure_ascii=False)
    if kind in NATIVE.get(api, IMAGES):
        assert about_media(notes) == []
        assert any(content and content in written for content in (MEDIA[kind].data, MEDIA[kind].url, "Snow: 3 cm"))
    else:
        words, note = in_words(kind)
        assert about_media(notes) == [note]
        assert words in written


@pytest.mark.parametrize(
    ("source", "block", "api"),
    [
        *[
            ("openai_chat", {"type": "file", "file": {"file_id": "file-1"}}, api)
            for api in ("groq", "deepseek", "vllm")
        ],
        *[
            ("anthropic_messages", {"type": type, "source": {"type": "file", "file_id": "f"}}, api)
            for type in ("document", "image")
            for api in ("anthropic_bedrock", "anthropic_vertex")
        ],
        ("anthropic_messages", {"type": "container_upload", "file_id": "f"}, "anthropic_bedrock"),
    ],
)
def test_a_file_in_the_store_of_one_provider_is_not_sent_to_another_of_the_same_shape(
    source: str, block: dict[str, Any], api: str
) -> None:
    notes = Notes()
    body = get_api(api).encode_request([Message("user", [decoded(source, block)])], model="m", notes=notes)
    assert "file_id" not in json.dumps(body)
    assert "it cannot be shown here" in json.dumps(body["messages"])
    assert any(f"{block['type']}: only {source} understands it" in str(note) for note in notes)


@pytest.mark.parametrize("api", ["azure", "openai_compatible"])
def test_a_file_in_the_store_of_a_provider_stays_where_there_may_be_one(api: str) -> None:
    block = {"type": "file", "file": {"file_id": "file-1"}}
    body = get_api(api).encode_request([Message("user", ["x", decoded("openai_chat", block)])], model="m")
    assert block in body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("api", "block", "lost"),
    [
        (
            "anthropic_messages",
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                "title": "t",
                "citations": {"enabled": True},
            },
            "citations",
        ),
        (
            "bedrock_converse",
            {"document": {"format": "md", "name": "t", "source": {"bytes": PAGES}, "context": "c"}},
            "context",
        ),
    ],
)
def test_members_of_documents_that_one_api_has_return_to_it_and_are_noted_elsewhere(
    api: str, block: dict[str, Any], lost: str
) -> None:
    part = decoded(api, block)
    assert isinstance(part, FilePart)
    assert part.name == "t"
    assert block in get_api(api).encode_request([Message("user", ["x", part])], model="m")["messages"][0]["content"]
    notes = Notes()
    get_api("gemini").encode_request([Message("user", [part])], notes=notes)
    assert [note.where for note in notes] == [lost]


def test_bedrock_gets_names_that_it_accepts_once_each_and_text_beside_them() -> None:
    notes = Notes()
    page = FilePart(PAGES, "application/pdf", name="Q3/report_v2.pdf")
    result = ToolResult("call12345", "look", files=(page,))
    messages = [Message("user", [page, FilePart(PAGES, "application/pdf")]), *ASKED, Message("tool", (result,))]
    written = get_api("bedrock_converse").encode_request(messages, notes=notes)["messages"]
    first = written[0]["content"]
    assert [block["document"]["name"] for block in first[:2]] == ["Q3 report v2 pdf", "Document"]
    assert written[-1]["content"][0]["toolResult"]["content"][0]["document"]["name"] == "Q3 report v2 pdf (2)"
    assert "text" in first[2]
    assert about_media(notes) == ["changed"] * 3
    alone = get_api("bedrock_converse").encode_request([Message("user", [page])], notes=notes)["messages"]
    assert alone[0]["content"][1] == {"text": "Document: Q3 report v2 pdf"}
    assert notes[-1].kind == "added"


@pytest.mark.parametrize("inside", [False, True], ids=["block", "result"])
def test_a_name_is_made_unique_in_the_request_and_not_in_the_conversation(inside: bool) -> None:
    document = {"document": {"format": "pdf", "name": "t", "source": {"bytes": PAGES}, "unknown": {"a": 1}}}
    block = {"toolResult": {"toolUseId": "call12345", "content": [document]}} if inside else document
    own = [Message("user", ["x", OpaquePart(copy.deepcopy(block), "bedrock_converse")]) for _ in range(2)]
    before = copy.deepcopy(own)
    written = [get_api("bedrock_converse").encode_request(own, model="m")["messages"] for _ in range(2)]
    assert "'name': 't (2)'" in str(written[0])
    assert written[0] == written[1]
    assert own == before


def test_bedrock_takes_addresses_in_its_own_store() -> None:
    film = FilePart(url="s3://bucket/a.mp4", media_type="video/mp4")
    body = get_api("bedrock_converse").encode_request([Message("user", ["Look.", film])])
    assert body["messages"][0]["content"][1] == {
        "video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://bucket/a.mp4"}}}
    }
    assert get_api("bedrock_converse").decode_request(body).messages[0].parts[1] == film


def test_a_file_of_another_type_becomes_words_where_a_list_of_types_is_closed() -> None:
    archive = FilePart("AAAA", "application/zip", name="a.zip")
    for api in ("anthropic_messages", "bedrock_converse"):
        notes = Notes()
        body = get_api(api).encode_request([Message("user", ["Look.", archive])], notes=notes)
        assert "Document a.zip (application/zip): it cannot be shown here." in json.dumps(body)
        assert about_media(notes) == ["dropped"]


def test_media_of_a_model_are_left_out_with_a_note_where_it_cannot_have_sent_them() -> None:
    for api in ("openai_chat", "openai_responses", "mistral", "ollama", "cohere"):
        notes = Notes()
        get_api(api).encode_request(
            [Message("user", "Sing."), Message("assistant", ["La.", MEDIA["audio"]])], notes=notes
        )
        assert about_media(notes) == ["dropped"], api


def test_a_result_without_a_call_becomes_a_message_with_its_media() -> None:
    stray = ToolResult("x", "look", files=(FilePart(PAGES, "application/pdf"),))
    body = get_api("anthropic_messages").encode_request([Message("user", "Hi."), Message("tool", (stray,))])
    assert "Result of look:" in json.dumps(body)
    assert body["messages"][-1]["content"][-1]["type"] == "document"


EMPTY_IMAGES = {
    "openai_chat": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]}]},
    "openai_responses": {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": ""}]}]},
    "anthropic_messages": {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}],
            }
        ]
    },
    "ollama": {"messages": [{"role": "user", "content": "Look!", "images": [""]}]},
    "mistral": {"messages": [{"role": "user", "content": [{"type": "document_url", "document_url": ""}]}]},
}


@pytest.mark.parametrize("api", EMPTY_IMAGES)
def test_an_empty_image_or_document_is_refused(api: str) -> None:
    with pytest.raises(DefinitionError, match=r"not a request of .*an empty (Image|File)Part shows a model nothing"):
        get_api(api).decode_request(EMPTY_IMAGES[api])


def test_mistral_reads_the_address_of_a_recording() -> None:
    def read(address: str) -> object:
        block = {"type": "input_audio", "input_audio": address}
        (message,) = get_api("mistral").decode_request({"messages": [{"role": "user", "content": [block]}]}).messages
        return message.parts[0]

    assert read(f"data:audio/wav;base64,{SOUND}") == FilePart(SOUND, "audio/wav")
    assert isinstance(read("https://example.org/a.mp3"), OpaquePart), "only its kind would say that it is a recording"
