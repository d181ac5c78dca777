"""Pairing of calls and results, and tool choices."""

import copy
from dataclasses import replace

import pytest

import toolwire
from toolwire import DefinitionError, ImagePart, Message, Notes, TextPart, ToolCall, ToolChoice, ToolResult
from toolwire.providers.request import MISSING_RESULT, ChatRequest, join_answers, pair_results, result_texts

A = ToolCall("a", {}, "1")
B = ToolCall("b", {}, "2")


def says(*parts: object) -> Message:
    return Message("assistant", parts)  # type: ignore[arg-type]


def answers(*results: ToolResult) -> Message:
    return Message("tool", results)


def user(text: str) -> Message:
    return Message("user", (TextPart(text),))


def done(conversation: list[Message]) -> tuple[list[Message], Notes]:
    notes = Notes()
    return list(pair_results(conversation, notes)), notes


@pytest.mark.need(17)
def test_conversation_in_order_is_unchanged() -> None:
    conversation = [
        user("q"),
        says(A, B),
        answers(ToolResult("1", "a", 1), ToolResult("2", "b", 2)),
        says(TextPart("x")),
    ]
    messages, notes = done(conversation)
    assert messages == conversation
    assert not notes


@pytest.mark.mission("D51", "D52")
def test_results_come_in_one_message_in_the_order_of_the_calls() -> None:
    messages, notes = done(
        [says(A, B), answers(ToolResult("2", "b", 2)), answers(ToolResult("1", "a", 1)), user("go on")]
    )
    assert messages == [says(A, B), answers(ToolResult("1", "a", 1), ToolResult("2", "b", 2)), user("go on")]
    assert not notes


def test_user_message_before_the_results_moves_after_them() -> None:
    messages, _ = done([says(A), user("hurry"), answers(ToolResult("1", "a", 1))])
    assert messages == [says(A), answers(ToolResult("1", "a", 1)), user("hurry")]


@pytest.mark.mission("D52", "G7")
@pytest.mark.need(17)
def test_call_without_a_result_gets_an_error() -> None:
    messages, notes = done([says(A, B), answers(ToolResult("2", "b", 2)), says(TextPart("x"))])
    assert messages[1] == answers(ToolResult("1", "a", error=MISSING_RESULT), ToolResult("2", "b", 2))
    assert [note.kind for note in notes] == ["changed"]


def test_calls_at_the_end_stay_open() -> None:
    assert done([user("q"), says(A)])[0] == [user("q"), says(A)]


@pytest.mark.need(17)
def test_result_without_a_call_becomes_text() -> None:
    messages, notes = done([user("q"), answers(ToolResult("9", "z", "found"))])
    assert messages == [user("q"), user("Result of z: found")]
    assert len(notes) == 1


def test_result_with_an_unknown_id_answers_the_only_open_call() -> None:
    messages, notes = done([says(A), answers(ToolResult("other", "", "x"))])
    assert messages == [says(A), answers(ToolResult("1", "a", "x"))]
    assert len(notes) == 1


@pytest.mark.parametrize("count", [1, 3])
def test_results_with_unknown_ids_become_text_unless_each_missing_result_has_one(count: int) -> None:
    strays = [ToolResult(f"other{at}", "z", at) for at in range(count)]
    paired, notes = done([says(A, B), answers(*strays), user("go on")])
    errors = [ToolResult("1", "a", error=MISSING_RESULT), ToolResult("2", "b", error=MISSING_RESULT)]
    assert paired == [says(A, B), answers(*errors), *(user(f"Result of z: {at}") for at in range(count)), user("go on")]
    assert len(notes) == 2 + count


@pytest.mark.mission("G8")
@pytest.mark.need(23)
def test_missing_and_equal_ids_are_repaired_with_their_results() -> None:
    first, second = ToolCall("a", {"n": 1}), ToolCall("a", {"n": 2})
    messages, _ = done([says(first, second), answers(ToolResult("", "a", "one"), ToolResult("", "a", "two"))])
    calls = [part for part in messages[0].parts if isinstance(part, ToolCall)]
    assert len({call.id for call in calls}) == 2
    assert all(call.id for call in calls)
    assert [(part.call_id, part.result) for part in messages[1].parts if isinstance(part, ToolResult)] == [
        (calls[0].id, "one"),
        (calls[1].id, "two"),
    ]
    again, _ = done([says(A), answers(ToolResult("1", "a", 1)), says(A), answers(ToolResult("1", "a", 2))])
    second_call = again[2].parts[0]
    assert isinstance(second_call, ToolCall)
    assert second_call.id != "1"
    assert again[3] == answers(ToolResult(second_call.id, "a", 2))
    assert done([says(first, second)])[0] == done([says(first, second)])[0]


def test_consecutive_messages_of_the_model_are_answered_together() -> None:
    both = answers(ToolResult("1", "a", 1), ToolResult("2", "b", 2))
    assert done([says(A), says(B), both])[0] == [says(A), says(B), both]


def test_text_after_a_call_joins_the_message_with_the_call() -> None:
    sorry = says(TextPart("sorry"))
    messages, _ = done([says(A), sorry, user("go on")])
    missing = answers(ToolResult("1", "a", error=MISSING_RESULT))
    assert join_answers(messages) == (says(A, TextPart("sorry")), missing, user("go on"))
    both = answers(ToolResult("1", "a", 1), ToolResult("2", "b", 2))
    assert join_answers([says(A), says(B), both]) == (says(A, B), both)
    assert join_answers([sorry, says(A), both, sorry]) == (sorry, says(A), both, sorry)


@pytest.mark.parametrize("between", [(), (user("hm"),)])
def test_late_result_moves_to_its_call(between: tuple[Message, ...]) -> None:
    late = answers(ToolResult("1", "a", "of a"))
    messages, notes = done([says(A), user("well"), says(B), *between, late])
    assert messages[:4] == [says(A), answers(ToolResult("1", "a", "of a")), user("well"), says(B)]
    assert messages[4:] == ([answers(ToolResult("2", "b", error=MISSING_RESULT)), *between] if between else [])
    assert len(notes) == 1 + len(between)


def test_result_never_answers_another_call() -> None:
    messages, _ = done([says(A, B), answers(ToolResult("1", "a", "one"), ToolResult("1", "a", "two"))])
    assert messages[1] == answers(ToolResult("1", "a", "one"), ToolResult("2", "b", error=MISSING_RESULT))
    assert messages[2] == user("Result of a: two")
    messages, _ = done([says(B), answers(ToolResult("1", "a", "early")), says(A), user("x")])
    assert messages[1] == answers(ToolResult("2", "b", error=MISSING_RESULT))


def test_images_of_a_result_without_a_call_are_kept() -> None:
    image = ImagePart(url="https://example.org/i.png")
    messages, _ = done(
        [user("q"), answers(ToolResult("9", "z", images=(image,)), ToolResult("8", "", "t", None, (image,)))]
    )
    assert messages[1:] == [
        Message("user", (TextPart("Result of z:"), image)),
        Message("user", (TextPart("Result of a tool: t"), image)),
    ]


@pytest.mark.parametrize(
    ("given", "mode", "names"),
    [(None, "auto", ()), ("any", "required", ()), ("none", "none", ()), ("f", "required", ("f",))],
)
def test_tool_choice_is_made_from_a_mode_or_a_name(given: str | None, mode: str, names: tuple[str, ...]) -> None:
    choice = ToolChoice.of(given)
    assert (choice.mode, choice.names) == (mode, names)
    assert ToolChoice.of(choice) is choice


def test_invalid_tool_choice_is_refused() -> None:
    for wrong in ("", 5, ["f"]):
        with pytest.raises(DefinitionError, match="tool choice"):
            ToolChoice.of(wrong)  # type: ignore[arg-type]


def test_pairing_is_linear_in_calls_that_share_an_id() -> None:
    def looked_at(count: int) -> int:
        calls = tuple(CountedCall("f", {"at": at}, "same") for at in range(count))
        results = tuple(ToolResult("same" if at % 2 else "", "f", at) for at in range(count))
        CountedCall.seen = 0
        messages = pair_results([Message("assistant", calls), Message("tool", results)], Notes())
        assert [part.result for part in messages[1].parts if isinstance(part, ToolResult)] == list(range(count))
        return CountedCall.seen

    assert looked_at(400) < 2.5 * looked_at(200)


class CountedCall(ToolCall):
    """A call that counts how often its name is read."""

    seen = 0

    def __getattribute__(self, name: str) -> object:
        if name == "name":
            CountedCall.seen += 1
        return super().__getattribute__(name)


@pytest.mark.parametrize("name", ["bedrock_converse", "anthropic"])
def test_tools_of_earlier_calls_are_defined_where_an_api_requires_them(name: str) -> None:
    history = [
        Message("user", (TextPart("hi"),)),
        Message("assistant", (ToolCall("find", {"q": "x"}, "call_1"), ToolCall("find", {"q": "y"}, "call_2"))),
        Message("tool", (ToolResult("call_1", "find", "a"), ToolResult("call_2", "find", "b"))),
    ]
    notes = Notes()
    body = toolwire.get_api(name).encode_request(history, model="m", max_tokens=5, notes=notes)
    listed = body["toolConfig"]["tools"] if "toolConfig" in body else body["tools"]
    assert [(tool.get("toolSpec") or tool)["name"] for tool in listed] == ["find"]
    assert [str(note) for note in notes if note.where == "tools/find"] != []
    bare = toolwire.get_api("openai_chat").encode_request(history, model="m")
    assert "tools" not in bare, "where no API requires them, nothing is added"


def test_texts_of_results_are_those_of_results_and_of_messages_of_tools() -> None:
    messages = [
        user("question"),
        Message("tool", (TextPart("plain"), ToolResult("c", "f", "result"))),
        Message("user", (ToolResult("d", "g", {"a": 1}), TextPart("comment"))),
    ]
    assert result_texts(messages) == ("plain", "result", ToolResult("d", "g", {"a": 1}).text)


def test_each_tool_that_only_another_provider_runs_is_noted() -> None:
    claude, notes = toolwire.get_api("anthropic_messages"), Notes()
    tools = ({"type": "file_search"}, {"googleSearch": {}}, {})
    request = ChatRequest((user("q"),), provider="openai_responses", provider_tools=tools)
    assert "tools" not in claude.encode_request(request, notes=notes, max_tokens=9)
    assert [(note.where, note.message) for note in notes] == [
        (f"tools/{name}", "only openai_responses runs this tool") for name in ("file_search", "googleSearch", "")
    ]


def test_a_tool_choice_that_is_not_offered_lists_the_tools_that_are() -> None:
    tools = [toolwire.ToolDefinition(name) for name in ("one", "two")]
    api = toolwire.get_api("openai_chat")
    for offered, shown in ((tools, "one, two"), ([], "none")):
        with pytest.raises(DefinitionError, match=f"names 'three', which is not offered; offered are: {shown}$"):
            api.encode_request([user("q")], tools=offered, tool_choice="three")


@pytest.mark.parametrize("name", toolwire.apis())
def test_a_required_call_without_tools_is_noted(name: str) -> None:
    notes = Notes()
    toolwire.get_api(name).encode_request([user("q")], tool_choice="required", notes=notes)
    assert [note.message for note in notes if note.where == "tool_choice"] == [
        "no tool is offered, so none can be required"
    ]


def test_an_answer_has_no_time_where_none_is_passed() -> None:
    body = toolwire.get_api("openai_chat").encode_response(toolwire.ParsedResponse("a"))
    assert (body["created"], body["model"]) == (0, "unknown")


def test_one_name_too_many_does_not_hide_the_tools_behind_it() -> None:
    api, notes = toolwire.get_api("openai_chat"), Notes()
    spelled = api.names.fit("a.b")
    tools = [toolwire.ToolDefinition(name) for name in ("a.b", spelled, "c")]
    body = api.encode_request([user("q")], tools=tools, notes=notes)
    assert [tool["function"]["name"] for tool in body["tools"]] == [spelled, "c"]
    assert [note.where for note in notes if note.kind == "quarantined"] == [spelled]


def test_a_tool_of_the_provider_can_be_chosen_by_its_name() -> None:
    tool = {"type": "web_search_20250305", "name": "web_search"}
    request = toolwire.get_api("anthropic_messages").decode_request(
        {
            "model": "m",
            "max_tokens": 9,
            "messages": [],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": "web_search"},
        }
    )
    body = toolwire.get_api("anthropic_messages").encode_request(request)
    assert (body["tools"], body["tool_choice"]["name"]) == ([tool], "web_search")


def test_a_failed_answer_without_a_word_for_that_is_noted() -> None:
    notes = Notes()
    failed = toolwire.ParsedResponse("a", finish_reason=toolwire.FinishReason.ERROR)
    toolwire.get_api("openai_chat").encode_response(failed, notes=notes)
    assert "changed finish_reason: openai_chat has no word for an answer that failed" in map(str, notes)


@pytest.mark.parametrize("name", toolwire.apis())
def test_equal_tools_of_two_requests_have_one_definition(name: str) -> None:
    """What is derived from a definition is derived once for a whole conversation."""
    api = toolwire.get_api(name)
    lookup = toolwire.ToolDefinition(
        "lookup", "Looks it up.", {"type": "object", "properties": {"q": {"type": "string"}}}
    )

    def read(tool: toolwire.ToolDefinition) -> tuple[toolwire.ToolDefinition, ...]:
        body = api.encode_request([user("hm")], tools=[tool], model="m")
        definitions = api.decode_request(copy.deepcopy(body)).tools
        assert [definition.name for definition in definitions] == ["lookup"]
        return definitions

    first, again, changed = read(lookup), read(lookup), read(replace(lookup, description="Looks it up in a book."))
    assert again[0] is first[0]
    assert "in a book" in changed[0].description
    assert "in a book" not in first[0].description


def test_a_tool_that_is_changed_after_a_request_is_read_as_it_is_then() -> None:
    api = toolwire.get_api("anthropic")
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    body = {"messages": [{"role": "user", "content": "hm"}], "tools": [{"name": "lookup", "input_schema": schema}]}
    before = api.decode_request(body).tools[0]
    schema["properties"]["limit"] = {"type": "integer"}  # type: ignore[index]
    after = api.decode_request(body).tools[0]
    assert list(before.parameters["properties"]) == ["q"]
    assert list(after.parameters["properties"]) == ["q", "limit"]
