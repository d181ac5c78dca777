"""Members that only one API has survive that API: in requests, in answers, and in what is sent back of an answer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.streams import streamed
from tests.unit.providers.conftest import chat_stream, decoded

import toolwire as tw
from toolwire import Message, Notes, ParsedResponse, collect, replay

CALLER = {"caller": {"type": "program", "caller_id": "p"}}
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
CITATION = {"type": "url_citation", "url": "https://x", "title": "X", "start_index": 0, "end_index": 2}
TEXT = {"type": "input_text", "text": "hi"}
CITED = {"type": "output_text", "text": "Hi", "annotations": [CITATION]}
CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
CUSTOM_CALL = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "x"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "sun"}
COMMENTARY = {"role": "assistant", "content": "Let me see.", "phase": "commentary"}
FINAL = {"role": "assistant", "content": "Sun.", "phase": "final_answer"}

CHAT_CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
HI, HELLO = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello"}
CACHED = {"cache_control": {"type": "ephemeral"}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
SAVED = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "sun"}
GIVEN = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}

MESSAGES = [
    ("openai_responses", [COMMENTARY, FINAL]),
    ("openai_responses", [COMMENTARY, {**CALL, **CALLER}, {**OUTPUT, **CALLER}, FINAL]),
    ("openai_responses", [{**CUSTOM_CALL, **CALLER}, {**OUTPUT, "type": "custom_tool_call_output", **CALLER}]),
    ("openai_responses", [{"role": "user", "content": [{**TEXT, **MARK}]}]),
    ("openai_responses", [{"role": "user", "content": [{"type": "input_file", "file_url": "u", "detail": "high"}]}]),
    (
        "openai_responses",
        [{"role": "user", "content": [{"type": "input_image", "detail": "low", "image_url": "u", **MARK}]}],
    ),
    ("openai_responses", [{"role": "assistant", "content": [CITED]}, CALL, OUTPUT]),
    ("openai_responses", [{**COMMENTARY, "content": [CITED]}, FINAL]),
    ("openai_chat", [{**HI, "name": "Ann"}, {**HELLO, "name": "B"}]),
    ("openai_chat", [{"role": "system", "content": "Be brief.", **CACHED}, {**HI, **CACHED}]),
    ("openai_chat", [{**GIVEN, "tool_calls": [{**CHAT_CALL, **CACHED}]}, {**RESULT, **CACHED}]),
    ("openai_chat", [{**GIVEN, "reasoning_signature": ["x"]}, RESULT]),
    ("openai_chat", [{**HELLO, "audio": {"id": "audio_1"}}, HI]),
    ("openai_chat", [{"role": "user", "content": [{**PICTURE, **CACHED}]}]),
    ("openai_chat", [{"role": "user", "content": [{**SAVED, **CACHED}]}]),
    ("mistral", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "He", "prefix": True}]),
    ("ollama", [{**HI, "name": "Ann"}, {**HELLO, "mark": "x"}]),
    ("cohere", [{"role": "user", "content": "hi", "mark": "x"}]),
]  # fmt: skip
"""Messages of requests, by API."""

LISTS = {"openai_responses": "input", "gemini": "contents"}
"""The member of a request that contains its messages, where it is not `messages`."""


def body_of(api: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {LISTS.get(api, "messages"): messages}


@pytest.mark.parametrize(("api", "messages"), MESSAGES)
def test_messages_of_a_request_keep_members_of_their_api(api: str, messages: list[dict[str, Any]]) -> None:
    provider, notes = tw.get_api(api), Notes()
    request = provider.decode_request(body_of(api, messages))
    assert provider.encode_request(request, notes=notes)[LISTS.get(api, "messages")] == messages
    assert not notes


@pytest.mark.parametrize(("api", "messages"), MESSAGES)
def test_other_apis_note_members_that_they_drop(api: str, messages: list[dict[str, Any]]) -> None:
    request = tw.get_api(api).decode_request(body_of(api, messages))
    for name in tw.apis():
        target, notes = tw.get_api(name), Notes()
        body = target.encode_request(request, notes=notes)
        dropped = any(note.kind == "dropped" for note in notes)
        # Cache marks are translated where both have them.
        assert target.kind == tw.get_api(api).kind or dropped or "cache" in str(body), name


def output(*items: dict[str, Any]) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(items)}


def item(content: str | list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    blocks = [{"type": "output_text", "text": content}] if isinstance(content, str) else content
    return {"type": "message", "id": "m", "role": "assistant", "content": blocks, **members}


SOUND = {"id": "audio_1", "data": "UklGRg==", "transcript": "Hi", "expires_at": 9}


def chat(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


ANSWERS = [
    (
        "openai_responses",
        output(item("Let me see.", phase="commentary"), {**CALL, **CALLER}),
        [COMMENTARY, {**CALL, **CALLER}],
    ),
    ("openai_responses", output({**CUSTOM_CALL, **CALLER}), [{**CUSTOM_CALL, **CALLER}]),
    ("openai_responses", output(item([CITED], phase="final_answer")), [{**FINAL, "content": [CITED]}]),
    (
        "openai_responses",
        output(item("Let me see.", phase="commentary"), item("Sun.", id="m2", phase="final_answer")),
        [COMMENTARY, FINAL],
    ),
    ("openai_chat", chat(content=None, images=[PICTURE]), [{**HELLO, "content": "", "images": [PICTURE]}]),
    ("openrouter", chat(content="Hi", annotations=[CITATION]), [{**HELLO, "content": "Hi", "annotations": [CITATION]}]),
    ("openai_chat", chat(content=None, audio=SOUND), [{**HELLO, "content": "", "audio": {"id": "audio_1"}}]),
    (
        "openai_chat",
        chat(content=None, reasoning_signature="x", tool_calls=[CHAT_CALL]),
        [{**GIVEN, "reasoning_signature": "x"}],
    ),
]  # fmt: skip
"""Answers, and the messages that send them back."""


def sent_back(api: str, response: ParsedResponse) -> list[dict[str, Any]]:
    body = tw.get_api(api).encode_request([Message("user", "hi"), Message("assistant", response.parts)])
    messages: list[dict[str, Any]] = body[LISTS.get(api, "messages")]
    return messages[1:]


@pytest.mark.parametrize(("api", "answer", "messages"), ANSWERS)
def test_answers_keep_members_of_their_api(api: str, answer: dict[str, Any], messages: list[dict[str, Any]]) -> None:
    provider = tw.get_api(api)
    response = provider.decode_response(answer)
    again = provider.decode_response(provider.encode_response(response))
    in_pieces = collect(streamed(api, b"".join(provider.encode_stream(replay(response))), 7))
    for read in (response, again, in_pieces):
        assert sent_back(api, read) == messages


@pytest.mark.parametrize(
    ("deltas", "content"),
    [
        ([{"audio": {"id": "a", "transcript": "Hel"}}, {"audio": {"transcript": "lo"}}], "Hello"),
        ([{"content": "Listen:"}, {"audio": {"id": "a", "transcript": "Hello"}}], "Listen:"),
        ([{"audio": {"id": "a", "data": "Uk"}}, {"audio": {"expires_at": 9}}], ""),
    ],
)
def test_the_words_of_a_recording_are_the_content_of_an_answer_without_text(
    deltas: list[dict[str, Any]], content: str
) -> None:
    response = decoded("openai_chat", chat_stream(*deltas, reason="stop"), 1000)
    whole = chat(
        content=deltas[0].get("content"),
        audio={"id": "a", "transcript": "".join(delta.get("audio", {}).get("transcript", "") for delta in deltas)},
    )
    assert (response.content, tw.get_api("openai_chat").decode_response(whole).content) == (content, content)
    notes = Notes()
    tw.get_api("anthropic_messages").encode_response(response, notes=notes)
    assert [note.kind for note in notes] == ["dropped"]


def test_content_that_its_recording_says_is_not_sent_back_twice() -> None:
    api = tw.get_api("openai_chat")
    silent = api.decode_response(chat(content=None, audio=SOUND))
    assert api.encode_response(silent)["choices"][0]["message"]["content"] == ""
    spoken = api.decode_response(chat(content="Listen:", audio=SOUND))
    assert api.encode_response(spoken)["choices"][0]["message"]["content"] == "Listen:"
    assert sent_back("openai_chat", spoken) == [{**HELLO, "content": "Listen:", "audio": {"id": "audio_1"}}]


@pytest.mark.parametrize("size", [1, 1000])
def test_sound_and_images_of_a_stream_are_not_lost(size: int) -> None:
    data = chat_stream(
        {"role": "assistant", "audio": {"id": "audio_1", "transcript": "Hel"}},
        {"audio": {"transcript": "lo", "data": "Uk"}},
        {"audio": {"data": "lG"}},
        {"audio": {"expires_at": 9}},
        {"images": [PICTURE]},
        {"images": [PICTURE]},
        reason="stop",
    )
    response = decoded("openai_chat", data, size)
    members = {"audio": {"id": "audio_1"}, "images": [PICTURE, PICTURE]}
    assert sent_back("openai_chat", response) == [{**HELLO, "content": "", **members}]
    message = tw.get_api("openai_chat").encode_response(response)["choices"][0]["message"]
    assert message["audio"] == {"id": "audio_1", "transcript": "Hello", "data": "UklG", "expires_at": 9}


def test_empty_sound_and_members_of_servers_are_not_sent_back() -> None:
    empty = {"id": "", "data": "", "transcript": "", "expires_at": 0}
    answer = chat(content="Hello", audio=empty, images=[], annotations=None, provider_metadata={"x": 1})
    assert sent_back("openai_chat", tw.get_api("openai_chat").decode_response(answer)) == [HELLO]
