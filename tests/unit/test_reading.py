"""parse and StreamParser: options, ids, fallback, what is primed."""

import pytest

import toolwire
from toolwire import StreamParser, collect, parse
from toolwire.events import Finish

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def test_an_unknown_format_names_the_nearest() -> None:
    with pytest.raises(toolwire.UnknownFormat, match="hermes") as caught:
        parse("x", format="hermez")
    assert isinstance(caught.value, KeyError)
    assert "hermes" in caught.value.suggestions


def test_aliases_and_formats_as_values() -> None:
    for name in ("hermes", "QWEN25", "qwen3-vl"):
        assert parse(CALL, format=name).tool_calls[0].name == "f"
    assert parse(CALL, format=toolwire.get_format("hermes")).tool_calls[0].format == "hermes"


def test_ids_depend_on_the_seed_the_index_and_the_name() -> None:
    first, second = parse(CALL + CALL, format="hermes").tool_calls
    assert first.id != second.id
    assert parse(CALL, format="hermes").tool_calls[0].id == first.id
    assert parse(CALL, format="hermes", id_seed="turn 2").tool_calls[0].id != first.id
    assert first.fingerprint == second.fingerprint


def test_repair_none_makes_no_repair() -> None:
    for text in (CALL[:-12], CALL.replace('"a": 1', '"a": 1,'), CALL.replace("1", '"1"')):
        assert parse(text, format="hermes", tools=TOOLS).tool_calls[0].repairs
        strict = parse(text, format="hermes", tools=TOOLS, repair="none")
        assert strict.tool_calls == ()
        assert strict.problems


def test_positions_count_from_the_text_that_was_fed() -> None:
    read = parse("bad</tool_call>", format="hermes", primed="<tool_call>\n")
    assert read.content == "bad</tool_call>"
    assert read.problems[0].position == 0
    assert parse('{"name": "f", "arguments": {}}', format="hermes", primed="<tool_call>").tool_calls[0].name == "f"


def test_a_stream_ends_once() -> None:
    parser = StreamParser(format="hermes")
    assert parser.feed("") == ()
    assert isinstance(list(parser.finish())[-1], Finish)
    assert parser.finish() == ()
    with pytest.raises(RuntimeError, match="finish"):
        parser.feed("x")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "f", "arguments": {"a": 1}}',
        '```json\n{"name": "f", "arguments": {"a": 1}}\n```',
        f"```\n{CALL}\n```",
        "[f(a=1)]",
        '<think>hm</think>\n{"name": "f", "arguments": {"a": 1}}',
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_fallback_reads_a_message_that_is_only_a_call(text: str, size: int) -> None:
    parser = StreamParser(format="hermes", tools=TOOLS, fallback=("bare_json", "pythonic"))
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    read = collect([*events, *parser.finish()])
    assert [(call.name, call.arguments) for call in read.tool_calls] == [("f", {"a": 1})]
    assert "fallback" in read.tool_calls[0].repairs
    assert read.tool_calls[0].confidence < 1
    assert (read.content.strip(), read.problems, read.finish_reason) == ("", (), "tool_calls")
    assert parse(text, format="hermes", tools=TOOLS).tool_calls == ()


@pytest.mark.parametrize(
    "text",
    [
        'It is {"name": "f", "arguments": {"a": 1}}',
        '{"name": "f", "arguments": {"a": 1}} and so on',
        '{"name": "unknown", "arguments": {}}',
        "[1](https://example.org)",
        "```python\nprint(1)\n```",
    ],
)
def test_fallback_leaves_other_messages_alone(text: str) -> None:
    read = parse(text, format="hermes", tools=TOOLS, fallback=("bare_json", "pythonic"))
    assert (read.tool_calls, read.content) == ((), text)


def test_nothing_of_a_call_in_text_is_evaluated() -> None:
    text = (
        "<tool_call><function=f><parameter=a>__import__('os').system('touch canary')</parameter></function></tool_call>"
    )
    read = parse(text, format="qwen3_coder", tools=TOOLS)
    assert read.tool_calls[0].arguments == {"a": "__import__('os').system('touch canary')"}
