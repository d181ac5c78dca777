"""What an answer has beside text and calls comes back in its own API, and is carried or noted in every other."""

from typing import Any

import pytest

from toolwire import (
    CitationPart,
    CitedSource,
    FinishReason,
    Message,
    Notes,
    ParsedResponse,
    TextPart,
    Usage,
    collect,
    get_api,
    replay,
)
from toolwire.events import with_cited_texts

APIS = (
    "openai_chat", "openai_responses", "anthropic_messages", "gemini", "gemini_interactions", "bedrock_converse",
    "mistral", "cohere", "ollama",
)  # fmt: skip
URL, TITLE, TEXT = "https://a.example/rain", "Rain", "Ah. Il pleut à Paris. Prends un parapluie."
START, END = 4, 21
STATEMENT = TEXT[START:END]
SHORT_END = len(STATEMENT)


def chat(**members: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": TEXT}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop", **members}]}


def chat_message(**members: Any) -> dict[str, Any]:
    body = chat()
    body["choices"][0]["message"] |= members
    return body


def anthropic(*content: Any, **members: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(content), "stop_reason": "end_turn", **members}


def gemini(**members: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": TEXT}]}
    return {"candidates": [{"index": 0, "content": content, "finishReason": "STOP", **members}]}


ANNOTATION = {"type": "url_citation", "url": URL, "title": TITLE, "start_index": START, "end_index": END}
SEARCHED = {
    "type": "web_search_result_location",
    "url": URL,
    "title": TITLE,
    "cited_text": "It rains in Paris.",
    "encrypted_index": "abc",
}
BYTES = [len(TEXT[:place].encode()) for place in (START, END)]
CITED: dict[str, dict[str, Any]] = {
    "openai_chat": chat_message(
        annotations=[{"type": "url_citation", "url_citation": {k: v for k, v in ANNOTATION.items() if k != "type"}}]
    ),
    "openai_responses": {
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "content": [{"type": "output_text", "text": TEXT, "annotations": [ANNOTATION]}],
            }
        ],
    },
    "anthropic_messages": anthropic(
        {"type": "text", "text": TEXT[:START]},
        {"type": "text", "text": STATEMENT, "citations": [SEARCHED]},
        {"type": "text", "text": TEXT[END:]},
    ),
    "gemini": gemini(
        groundingMetadata={
            "groundingChunks": [{"web": {"uri": URL, "title": TITLE}}],
            "groundingSupports": [
                {
                    "segment": {"startIndex": BYTES[0], "endIndex": BYTES[1], "text": STATEMENT},
                    "groundingChunkIndices": [0],
                }
            ],
        }
    ),
    "gemini_interactions": {
        "status": "completed",
        "steps": [{"type": "model_output", "content": [{"type": "text", "text": TEXT, "annotations": [ANNOTATION]}]}],
    },
    "bedrock_converse": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"text": TEXT[:START]},
                    {
                        "citationsContent": {
                            "content": [{"text": STATEMENT}],
                            "citations": [
                                {
                                    "title": TITLE,
                                    "sourceContent": [{"text": "It rains in Paris."}],
                                    "location": {"web": {"url": URL}},
                                }
                            ],
                        }
                    },
                    {"text": TEXT[END:]},
                ],
            }
        },
        "stopReason": "end_turn",
    },
    "cohere": {
        "finish_reason": "COMPLETE",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": TEXT}],
            "citations": [
                {
                    "start": START,
                    "end": END,
                    "text": STATEMENT,
                    "type": "TEXT_CONTENT",
                    "sources": [
                        {"type": "document", "id": "d", "document": {"id": "d", "url": URL, "title": TITLE}},
                    ],
                }
            ],
        },
    },
}
every_source = pytest.mark.parametrize("source", CITED)
every_target = pytest.mark.parametrize("target", APIS)


def translated(source: str, body: dict[str, Any], target: str) -> tuple[dict[str, Any], Notes]:
    notes = Notes()
    response = get_api(source).decode_response(body)
    return get_api(target).encode_response(response, notes=notes), notes


def streamed(response: ParsedResponse, target: str, notes: Notes | None = None) -> ParsedResponse:
    api = get_api(target)
    decoder = api.stream_decoder()
    data = b"".join(api.encode_stream(replay(response), notes=notes))
    return collect([*decoder.feed(data), *decoder.finish()])


def citations(response: ParsedResponse) -> list[CitationPart]:
    return [part for part in response.parts if isinstance(part, CitationPart)]


def words(notes: Notes) -> set[str]:
    return {word.strip(",") for note in notes for word in note.where.replace("/", " ").split()}


@every_source
def test_sources_of_a_statement_are_parts_of_the_answer(source: str) -> None:
    response = get_api(source).decode_response(CITED[source])
    assert response.content == TEXT
    (part,) = citations(response)
    assert (part.start, part.end) == (START, END)
    assert [(one.url, one.title) for one in part.sources] == [(URL, TITLE)]
    assert response.parts[-1] == part or not isinstance(response.parts[-1], TextPart)


@every_source
def test_they_come_back_as_they_were_in_their_own_api(source: str) -> None:
    def cited(body: dict[str, Any]) -> dict[str, Any]:
        match source:
            case "openai_responses":
                return {"content": [{**block, "logprobs": None} for block in body["output"][0]["content"]]}
            case "anthropic_messages":
                return {"content": body["content"]}
            case "gemini":
                return {"grounding": body["candidates"][0]["groundingMetadata"]}
            case "gemini_interactions":
                return {"steps": body["steps"]}
            case "bedrock_converse":
                return {"content": body["output"]["message"]["content"]}
            case "openai_chat":
                return {"annotations": body["choices"][0]["message"]["annotations"]}
        return {"citations": body["message"]["citations"]}

    body, notes = translated(source, CITED[source], source)
    assert cited(body) == cited(CITED[source])
    assert not notes
    again = streamed(get_api(source).decode_response(CITED[source]), source)
    assert cited(get_api(source).encode_response(again)) == cited(CITED[source])


@every_source
@every_target
def test_other_apis_have_them_or_a_note(source: str, target: str) -> None:
    response = get_api(source).decode_response(CITED[source])
    body, notes = translated(source, CITED[source], target)
    if target in ("mistral", "ollama"):
        assert "citation" in words(notes) or "annotations" in str(body)
        return
    (part,) = citations(get_api(target).decode_response(body))
    assert (part.start, part.end) == (START, END)
    assert part.sources[0].url == URL
    (again,) = citations(streamed(response, target))
    assert (again.start, again.end, again.sources) == (part.start, part.end, part.sources)
    quote = citations(response)[0].sources[0].quote
    assert part.sources[0].quote == quote or "quote" in words(notes)


@every_source
def test_a_request_has_only_sources_that_its_own_api_gave(source: str) -> None:
    parts = get_api(source).decode_response(CITED[source]).parts
    for target in APIS:
        notes = Notes()
        body = get_api(target).encode_request([Message("user", "Rain?"), Message("assistant", parts)], notes=notes)
        if target != source:
            assert URL not in str(body), target
            assert "citation" in words(notes), target
    if source not in ("gemini", "gemini_interactions"):  # their requests have no place for sources
        assert URL in str(get_api(source).encode_request([Message("user", "Rain?"), Message("assistant", parts)]))


def test_text_is_divided_where_statements_begin_and_end() -> None:
    overlapping = (
        CitationPart((), 0, 4),
        CitationPart((), 2, 6),
        CitationPart((), None, None),
        CitationPart((), 9, 99),
    )
    parts = with_cited_texts((TextPart("abcd"), TextPart("efgh"), *overlapping))
    assert "".join(part.text for part in parts if isinstance(part, TextPart)) == "abcdefgh"
    assert [part for part in parts if isinstance(part, CitationPart) and part.end in (4, 6)] == list(overlapping[:2])
    assert parts.index(overlapping[0]) < parts.index(overlapping[1]) < parts.index(TextPart("gh"))
    assert set(overlapping) <= set(parts)


PROBABILITIES = {"content": [{"token": "Ah", "logprob": -0.5, "bytes": [65, 104], "top_logprobs": []}]}
MEMBERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "logprobs": ("openai_chat", chat(logprobs=PROBABILITIES), "logprobs"),
    "executed": ("groq", chat_message(executed_tools=[{"type": "search", "output": "x"}]), "executed_tools"),
    "container": ("anthropic_messages", anthropic({"type": "text", "text": TEXT}, container={"id": "c"}), "container"),
    "stop": ("anthropic_messages", anthropic({"type": "text", "text": TEXT}, stop_sequence="#"), "stop_sequence"),
    "paused": (
        "anthropic_messages",
        {**anthropic({"type": "text", "text": TEXT}), "stop_reason": "pause_turn"},
        "stop_reason",
    ),
    "average": ("gemini", gemini(avgLogprobs=-0.25), "avgLogprobs"),
    "pages": ("gemini", gemini(urlContextMetadata={"urlMetadata": [{"retrievedUrl": URL}]}), "urlContextMetadata"),
    "conversation": ("openai_responses", {**CITED["openai_responses"], "conversation": {"id": "c"}}, "conversation"),
    "trace": ("bedrock_converse", {**CITED["bedrock_converse"], "trace": {"guardrail": {"a": 1}}}, "trace"),
    "choices": ("openai_chat", {"choices": [*chat()["choices"], {**chat()["choices"][0], "index": 1}]}, "choices"),
    "cohere": ("cohere", {**CITED["cohere"], "logprobs": [{"text": "Ah"}]}, "logprobs"),
    "ollama": ("ollama", {"message": {"content": TEXT}, "done": True, "logprobs": [{"token": "Ah"}]}, "logprobs"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_members_that_are_not_read_come_back_and_are_noted_elsewhere(name: str) -> None:
    source, body, member = MEMBERS[name]
    own, notes = translated(source, body, source)
    assert not notes

    def values(data: Any) -> Any:
        if isinstance(data, dict):
            yield from (value for key, value in data.items() if key == member)
            for inner in data.values():
                yield from values(inner)
        elif isinstance(data, list):
            for inner in data:
                yield from values(inner)

    assert next(values(own)) == next(values(body)) or member == "choices"
    assert len(own.get("choices", ())) == len(body.get("choices", ()))
    for target in APIS:
        if get_api(target).kind != get_api(source).kind:
            assert member in words(translated(source, body, target)[1]), target


@pytest.mark.parametrize("name", MEMBERS)
def test_requests_do_not_contain_members_of_answers(name: str) -> None:
    source, body, member = MEMBERS[name]
    parts = get_api(source).decode_response(body).parts
    for target in APIS:
        written = get_api(target).encode_request([Message("user", "Rain?"), Message("assistant", parts)])
        assert f"'{member}'" not in str(written), target


@pytest.mark.parametrize("name", [name for name in MEMBERS if name != "choices"])
def test_streams_keep_them_too(name: str) -> None:
    source, body, member = MEMBERS[name]
    response = get_api(source).decode_response(body)
    if source not in ("bedrock_converse", "cohere"):  # the end of their streams has no place for them
        again = get_api(source).encode_response(streamed(response, source))
        assert member in str(again)
    notes = Notes()
    streamed(response, "mistral" if source != "mistral" else "ollama", notes)
    assert member in words(notes)


def test_log_probabilities_of_a_stream_are_joined() -> None:
    api = get_api("openai_chat")
    decoder = api.stream_decoder()
    events = [
        event
        for text in ("Ah", ".")
        for event in decoder.feed(
            {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [{"token": text}]}}]}
        )
    ]
    events += decoder.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = api.encode_response(collect([*events, *decoder.finish()]))
    assert body["choices"][0]["logprobs"] == {"content": [{"token": "Ah"}, {"token": "."}]}


@every_target
def test_token_counts_without_a_place_are_noted(target: str) -> None:
    response = ParsedResponse("Hi.", usage=Usage(10, 8, 4, 3))
    for notes, again in _both(response, target):
        counts = again.usage or Usage()
        for name in ("cached_tokens", "reasoning_tokens"):
            assert (getattr(counts, name) > 0) != (name in words(notes)), name


def _both(response: ParsedResponse, target: str) -> list[tuple[Notes, ParsedResponse]]:
    whole, stream = Notes(), Notes()
    body = get_api(target).encode_response(response, notes=whole)
    return [(whole, get_api(target).decode_response(body)), (stream, streamed(response, target, stream))]


def test_the_program_that_made_a_call_of_anthropic() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}, "caller": caller}
    body = {**anthropic(call), "stop_reason": "tool_use"}
    own, notes = translated("anthropic_messages", body, "anthropic_messages")
    assert (own["content"], list(notes)) == ([call], [])
    response = get_api("anthropic_messages").decode_response(body)
    assert get_api("anthropic_messages").encode_response(streamed(response, "anthropic_messages"))["content"] == [call]
    for target in APIS:
        if target != "anthropic_messages":
            assert "caller" in words(translated("anthropic_messages", body, target)[1]), target


def test_a_response_that_has_not_begun_is_no_answer() -> None:
    response = get_api("openai_responses").decode_response({"object": "response", "status": "queued", "output": []})
    assert response.finish_reason is FinishReason.ERROR


def test_reasoning_that_is_only_in_the_details() -> None:
    details = [{"type": "reasoning.summary", "summary": "It may rain."}]
    response = get_api("openrouter").decode_response(chat_message(reasoning=None, reasoning_details=details))
    assert response.reasoning == "It may rain."


def test_each_note_is_written_once() -> None:
    body = CITED["gemini"]
    _, notes = translated("gemini", body, "ollama")
    assert len(notes) == len({note.where for note in notes})


def test_sources_of_a_document_are_kept_by_the_api_that_can_find_it() -> None:
    place = {"type": "char_location", "document_index": 0, "document_title": "Rules", "start_char_index": 0,
             "end_char_index": 4, "cited_text": "Rain"}  # fmt: skip
    body = anthropic({"type": "text", "text": "Yes.", "citations": [place]})
    assert translated("anthropic_messages", body, "anthropic_messages")[0]["content"] == body["content"]
    (part,) = citations(get_api("anthropic_messages").decode_response(body))
    assert part.sources == (CitedSource("", "Rules", "Rain"),)
    assert {"citation", "document_index"} <= words(translated("anthropic_messages", body, "openai_responses")[1])


def test_a_space_between_two_statements_with_sources_is_kept() -> None:
    places = (("https://a.example", 0, 9), ("https://b.example", 10, 21))
    cited = [{"url": url, "title": "t", "start_index": start, "end_index": end} for url, start, end in places]
    annotations = [{"type": "url_citation", "url_citation": each} for each in cited]
    message = {"content": "It rains. It is cold.", "annotations": annotations}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    answer = get_api("openai_chat").decode_response({"choices": [choice]})
    body = get_api("anthropic_messages").encode_response(answer)
    assert "".join(block["text"] for block in body["content"]) == "It rains. It is cold."
