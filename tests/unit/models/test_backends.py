"""Models of text: a conversation as text, calls read from what comes."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence

import pytest

import toolwire
from toolwire import (
    ChatRequest,
    ContentDelta,
    Event,
    Finish,
    FinishReason,
    Message,
    ProviderError,
    TextPart,
    ToolCall,
    ToolResult,
    collect,
)
from toolwire.messages import ImagePart, ReasoningPart
from toolwire.models.backends import StreamOptions, TextBackend, text_messages, text_of
from toolwire.models.process_sources import local_source
from toolwire.text.identity_cache import IdentityCache
from toolwire.tools import as_definition


@toolwire.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


TOOLS = (as_definition(add),)
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


def backend(*pieces: str, reason: FinishReason = FinishReason.STOP, seen: list[str] | None = None) -> TextBackend:
    async def source(messages: list[Message], **_: object) -> AsyncGenerator[Event]:
        for piece in pieces:
            if seen is not None:
                seen.append(piece)
            yield ContentDelta(piece)
        yield Finish(reason)

    return TextBackend(source, format="hermes", model="scripted")


def answer(
    model: TextBackend, tools: Sequence[object] = TOOLS, *, parallel: bool | None = None
) -> toolwire.ParsedResponse:
    async def main() -> list[Event]:
        messages = (Message("user", "?"),)
        request = ChatRequest(messages=messages, tools=tuple(tools), parallel=parallel)  # type: ignore[arg-type]
        return [event async for event in model.stream(request, StreamOptions(id_seed="run.1"))]

    return collect(asyncio.run(main()))


def test_calls_are_read_from_text_in_pieces() -> None:
    response = answer(backend(*("I add. " + CALL)))
    assert response.content.strip() == "I add."
    (call,) = response.tool_calls
    assert call.arguments == {"a": 1, "b": 2}
    assert response.finish_reason is FinishReason.TOOL_CALLS


@pytest.mark.mission("E7")
def test_without_tools_markers_are_text() -> None:
    assert answer(backend(CALL), tools=()).content == CALL


def test_what_a_model_makes_up_behind_a_call_stops_it() -> None:
    seen = list[str]()
    response = answer(backend(CALL, "\n", "The result is certainly forty-two, ", "and so on", seen=seen))
    assert len(response.tool_calls) == 1
    assert "and so on" not in seen


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_request_for_one_call_stops_the_model_behind_it(size: int) -> None:
    text = f"I add. {CALL}\n{CALL}\nDone."
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    for parallel, count, content in ((False, 1, "I add."), (None, 2, "I add. Done.")):
        seen: list[str] = []
        response = answer(backend(*pieces, seen=seen), parallel=parallel)
        assert (len(response.tool_calls), response.finish_reason) == (count, FinishReason.TOOL_CALLS)
        assert " ".join(response.content.split()) == content
        assert not response.problems and response.usage is not None
        assert len(seen) < len(pieces) or parallel is None or size > 1


@pytest.mark.parametrize("size", [1, 10_000])
def test_broken_call_is_not_the_only_call_of_a_request(size: int) -> None:
    text = f'<tool_call>{{"name": "add", "arguments": {{"a": oops}}}}</tool_call>\n{CALL}\n{CALL}'
    response = answer(backend(*(text[at : at + size] for at in range(0, len(text), size))), parallel=False)
    assert [call.arguments for call in response.tool_calls] == [{"a": 1, "b": 2}]
    assert len(response.incomplete) == 1


@pytest.mark.parametrize("separator", ["\n", ", "])
@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH])
def test_a_request_for_one_call_gets_one_without_markers_too(separator: str, reason: FinishReason) -> None:
    text = separator.join(("add(a=1, b=2)", "add(a=3, b=4)"))
    text = f"[{text}]" if separator == ", " else text
    response = answer(backend(*text, reason=reason), parallel=False)
    assert [call.arguments for call in response.tool_calls] == [{"a": 1, "b": 2}]
    is_whole = reason is FinishReason.STOP
    assert (response.finish_reason, response.content) == (FinishReason.TOOL_CALLS if is_whole else reason, "")
    if is_whole:
        assert len(answer(backend(*text)).tool_calls) == 2


def test_an_answer_that_broke_off_behind_its_only_call_says_so() -> None:
    response = answer(backend("add(a=1, b=2)", reason=FinishReason.ERROR), parallel=False)
    assert (len(response.tool_calls), response.finish_reason) == (1, FinishReason.ERROR)


def test_problems_behind_the_only_call_without_markers_are_reported() -> None:
    text = "<think>Adding.</think>\nadd(a=1, b=2)\nadd(a=3, b=4)\n<tool_call>{"
    alone, several = (answer(backend(text), parallel=parallel) for parallel in (False, None))
    assert (len(alone.tool_calls), len(several.tool_calls)) == (1, 2)
    assert alone.problems == several.problems != ()


def test_a_cut_answer_says_so() -> None:
    response = answer(backend(CALL[:40], reason=FinishReason.LENGTH))
    assert response.finish_reason is FinishReason.LENGTH
    assert not response.tool_calls
    assert [call.name for call in response.incomplete] == ["add"]


@pytest.mark.need(17)
def test_a_conversation_as_text() -> None:
    image = ImagePart("iVBORw0KGgo=", "image/png")
    messages = [
        Message("system", "Be brief."),
        Message("user", (TextPart("Add"), image)),
        Message("assistant", (ReasoningPart("hm"), TextPart("I add."), ToolCall("add", {"a": 1, "b": 2}, "1"))),
        Message("tool", (ToolResult("1", "add", 3),)),
        Message("user", "And now?"),
        Message("assistant", "Three."),
    ]
    made = text_messages(messages, format="hermes", tools=TOOLS)
    assert [message.role for message in made] == ["system", "user", "assistant", "user", "assistant"]
    assert made[1].parts == (TextPart("Add"), image)
    text = made[2].parts[0]
    assert isinstance(text, TextPart)
    assert text.text.startswith("I add.")
    assert toolwire.parse(text.text, format="hermes", tools=TOOLS).tool_calls[0].arguments == {"a": 1, "b": 2}
    result = made[3].parts[0]
    assert isinstance(result, TextPart)
    assert "3" in result.text
    assert result.text.endswith("And now?")


@pytest.mark.parametrize("ids", [("toolu_1", "call_2"), ("functions.add:3", "functions.add:4")])
def test_results_name_the_ids_that_the_calls_have_in_the_text(ids: tuple[str, str]) -> None:
    memo = IdentityCache()
    calls = tuple(ToolCall("add", {"a": number, "b": 2}, id) for number, id in enumerate(ids))
    results = tuple(ToolResult(id, "add", "a sum") for id in ids)
    messages = [Message("user", "Add"), Message("assistant", calls), Message("tool", results)]
    for _ in range(2):  # the second time from the cache
        _, asked, answered = text_messages(messages, format="kimi_k2", tools=TOOLS, memo=memo)
        written = toolwire.parse(text_of(asked), format="kimi_k2", tools=TOOLS).tool_calls
        assert text_of(answered) == "\n".join(f"## Return of {call.id}\na sum" for call in written)


def test_a_turn_without_text_is_no_turn() -> None:
    messages = [Message("user", "Add"), Message("assistant", (ReasoningPart("hm"),)), Message("user", "Well?")]
    (turn,) = text_messages(messages, format="hermes")
    assert text_of(turn) == "Add\n\nWell?"


class Slow:
    """A model that writes in a thread."""

    def __init__(self, error: Exception | None = None) -> None:
        self.closed = False
        self.error = error
        self.asked: list[Mapping[str, str]] = []

    def stream(self, messages: Sequence[Mapping[str, str]], /, **_: object) -> Generator[str | Finish]:
        self.asked = list(messages)
        try:
            if self.error is not None:
                raise self.error
            while True:
                yield "word "
        finally:
            self.closed = True


def test_a_model_in_this_process_is_stopped_when_nobody_listens() -> None:
    model = Slow()

    async def main() -> None:
        stream = local_source(model)([Message("system", "s"), Message("user", "u")])
        assert await anext(stream) == ContentDelta("word ")
        await stream.aclose()
        while not model.closed:  # its thread notices at its next word
            await asyncio.sleep(0)

    asyncio.run(main())
    assert [one["role"] for one in model.asked] == ["system", "user"]


def test_what_goes_wrong_in_its_thread_is_raised_here() -> None:
    async def main() -> None:
        async for _ in local_source(Slow(ProviderError("too long")))([Message("user", "u")]):
            raise AssertionError("nothing comes")

    with pytest.raises(ProviderError, match="too long"):
        asyncio.run(main())
