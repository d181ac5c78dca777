"""Ids and names as an API takes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolwire
from toolwire.providers.identifiers import WORD_64, Alphabet, own_names

NINE = Alphabet("a-zA-Z0-9", 9, least=9)
GOOGLE = Alphabet("a-zA-Z0-9_.:-", 64, first="a-zA-Z_")


def test_accepted_names_are_unchanged() -> None:
    assert WORD_64.fit("get_weather") == "get_weather"
    assert NINE.fit("D681PevKs") == "D681PevKs"
    assert GOOGLE.fit("a.b:c") == "a.b:c"


@pytest.mark.need(36)
def test_other_names_keep_their_accepted_characters() -> None:
    fitted = WORD_64.fit("files.read")
    assert fitted.startswith("files_read_")
    assert WORD_64.takes(fitted)
    assert GOOGLE.fit("9lives").startswith("_9lives_")
    assert own_names(WORD_64, ["files.read", "plain"]) == {fitted: "files.read"}


@pytest.mark.need(20, 23, 36)
@given(st.text(max_size=200), st.text(max_size=200))
def test_every_text_fits_and_stays_unique(one: str, two: str) -> None:
    for alphabet in (WORD_64, NINE, GOOGLE, Alphabet(r"\x21-\x7e", 40)):
        fitted = alphabet.fit(one)
        assert alphabet.takes(fitted)
        assert alphabet.fit(fitted) == fitted
        assert (fitted == alphabet.fit(two)) == (one == two) or two == fitted


@pytest.mark.parametrize("most", range(1, 40))
@pytest.mark.parametrize("first", ["", "a-z"])
def test_a_spelling_is_never_too_long(most: int, first: str) -> None:
    alphabet = Alphabet("a-zA-Z0-9_", most, first=first)
    for text in ("call_0123456789" * 5, "é" * 50, "1" * 50):
        assert len(alphabet.fit(text)) <= most


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse"])
def test_names_of_the_reader_s_own_tools_remain(api: str) -> None:
    provider, name = toolwire.get_api(api), "files/read"
    tools = [{"name": name, "parameters": {"type": "object", "properties": {}}}]
    response = toolwire.ParsedResponse(
        tool_calls=(toolwire.ToolCall(name, {}, "call_1"),), finish_reason=toolwire.FinishReason.TOOL_CALLS
    )
    notes = toolwire.Notes()
    body = provider.encode_response(response, tools=tools, notes=notes)
    assert [call.name for call in provider.decode_response(body).tool_calls] == [name] and not notes
    decoder = provider.stream_decoder()
    pieces = provider.encode_stream(toolwire.replay(response), tools=tools)
    events = [event for piece in pieces for event in decoder.feed(piece)] + list(decoder.finish())
    assert [call.name for call in toolwire.collect(events).tool_calls] == [name]
    (other,) = provider.decode_response(provider.encode_response(response)).tool_calls
    assert other.name.startswith("files_read_")  # a reader that knows no such tool gets a name of its API
