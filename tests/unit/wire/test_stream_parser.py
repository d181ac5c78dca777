"""parse and StreamParser: options, ids, fallback, and prompts that begin the message."""

import gc
import sys
import weakref
from typing import Any, Literal

import pytest

import toolwire
from toolwire import StreamParser, collect, parse
from toolwire.events import Finish
from toolwire.wire import FORMATS

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
HELD = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "number"}}}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def test_an_unknown_format_suggests_the_nearest_name() -> None:
    with pytest.raises(toolwire.UnknownFormat, match="hermes") as caught:
        parse("x", format="hermez")
    assert isinstance(caught.value, KeyError)
    assert "hermes" in caught.value.suggestions


def test_formats_can_be_given_by_alias_or_as_values() -> None:
    for name in ("hermes", "QWEN25", "qwen3-vl"):
        assert parse(CALL, format=name).tool_calls[0].name == "f"
    assert parse(CALL, format=toolwire.get_format("hermes")).tool_calls[0].format == "hermes"


@pytest.mark.mission("C13", "D48", "D49", "G8")
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


def test_problem_positions_start_at_the_fed_text() -> None:
    read = parse("bad</tool_call>", format="hermes", primed="<tool_call>\n")
    assert read.content == "bad</tool_call>"
    assert read.problems[0].position == 0
    assert parse('{"name": "f", "arguments": {}}', format="hermes", primed="<tool_call>").tool_calls[0].name == "f"


@pytest.mark.parametrize("format", ["hermes", "auto"])
@pytest.mark.parametrize(
    ("primed", "text", "problems"),
    [
        ('```\n<tool_call>{"name": "f", "arguments": {}}</tool_call>', "", []),
        ('```\n<tool_call>{"name": "f", "arguments": {}}</tool_', "call>", [(0, "call>")]),
        ("```\n", '<tool_call>{"name": "f"}</tool_call>', [(0, '<tool_call>{"name": "f"}</tool_call>')]),
        ("<tool_call>bad", "", []),
        ("x <tool_call>{", "5}", [(0, "")]),
    ],
)
def test_problems_contain_only_fed_text(format: str, primed: str, text: str, problems: list[tuple[int, str]]) -> None:
    for pieces in ([text], [*text]):
        parser = StreamParser(format=format, tools=TOOLS, primed=primed)
        events = [event for piece in pieces for event in parser.feed(piece)]
        read = collect([*events, *parser.finish()])
        assert [(problem.position, problem.raw) for problem in read.problems] == problems


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fallback": "some"}, "fallback is 'some'; it can be 'none', 'whole_message' or 'embedded'"),
        ({"repair": "all"}, "repair is 'all'; it can be 'safe' or 'none'"),
        ({"tool_choice": "any"}, "tool_choice is 'any'; it can be 'auto' or 'none'"),
    ],
)
def test_an_option_that_has_none_of_its_values_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StreamParser(**options)


def test_only_text_is_fed() -> None:
    for format in ("auto", "hermes"):
        with pytest.raises(TypeError, match="text must be text, not bytes"):
            StreamParser(format=format).feed(b"x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "reads"),
    [
        ({"format": "auto"}, True),
        ({"format": "hermes"}, False),
        ({"format": "auto", "fallback": "none"}, False),
        ({"format": "hermes", "fallback": "whole_message"}, True),
        ({"format": "hermes", "fallback": "embedded"}, True),
        ({"format": "auto", "repair": "none"}, False),
        ({"format": "auto", "tool_choice": "none"}, False),
    ],
)
def test_calls_without_a_format_are_read_where_the_fallback_is_wanted(options: dict[str, Any], reads: bool) -> None:
    assert bool(parse("f(a=1)", tools=TOOLS, **options).tool_calls) is reads
    amid_prose = parse("I call f(a=1) now.", tools=TOOLS, **options)
    assert bool(amid_prose.tool_calls) is (options.get("fallback") == "embedded")


@pytest.mark.mission("C18", "E8")
def test_finish_returns_events_only_once() -> None:
    parser = StreamParser(format="hermes")
    assert parser.feed("") == ()
    assert isinstance(list(parser.finish())[-1], Finish)
    assert parser.finish() == ()
    with pytest.raises(RuntimeError, match="finish"):
        parser.feed("x")


@pytest.mark.need(2)
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
    parser = StreamParser(format="hermes", tools=TOOLS, fallback="whole_message")
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
def test_fallback_does_not_change_other_messages(text: str) -> None:
    read = parse(text, format="hermes", tools=TOOLS, fallback="whole_message")
    assert (read.tool_calls, read.content) == ((), text)


def test_python_in_calls_is_never_evaluated() -> None:
    text = (
        "<tool_call><function=f><parameter=a>__import__('os').system('touch canary')</parameter></function></tool_call>"
    )
    read = parse(text, format="qwen3_coder", tools=TOOLS)
    assert read.tool_calls[0].arguments == {"a": "__import__('os').system('touch canary')"}


ARGUMENTS = {
    "name": "f",
    "parameters": {
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "either": {"type": ["string", "integer"]},
            "list": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
            "o": {"type": "object", "properties": {"x": {"type": "integer"}}},
        },
    },
}


@pytest.mark.parametrize("repair", ["safe", "none"])
@pytest.mark.parametrize("value", ['"either": 5.0', '"list": ["5"]', '"o": "{\'x\': 1}"', '"other": {"q": "5"}'])
def test_long_arguments_are_coerced_the_same_in_pieces(value: str, repair: Literal["safe", "none"]) -> None:
    text = f'[TOOL_CALLS]f[ARGS]{{"s": "{"p" * 100}", {value}}}'
    response = parse(text, format="mistral_args", tools=[ARGUMENTS], repair=repair)
    parser = StreamParser(format="mistral_args", tools=[ARGUMENTS], repair=repair)
    pieces = collect([*(event for c in text for event in parser.feed(c)), *parser.finish()])
    assert (response.tool_calls, response.problems) == (pieces.tool_calls, pieces.problems)


@pytest.mark.need(4)
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", '<tool_call>{"name":"f","arguments":{},"parameters":{"s":"x"}}</tool_call>'),
        ("hermes", '<tool_call>{"name":"f","arguments":null,"parameters":{"s":"x"}}</tool_call>'),
        ("utp_xml", "<tools><name>f</name><arguments>{}</arguments><parameters>{}</parameters></tools>"),
        ("utp_xml", "<tools><name>f</name><s>x</s></tools>"),
        ("pythonic", '[f(s=("abc"))]'),
        ("pythonic", '[f(s="abc""d""")]'),
    ],
)
def test_arguments_with_several_readings_make_no_call(format: str, text: str) -> None:
    for pieces in ([text], list(text)):
        parser = StreamParser(format=format, tools=[ARGUMENTS])
        read = collect([*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()])
        assert (read.tool_calls, read.content) == ((), text)


def test_arguments_may_come_before_the_name() -> None:
    text = '<tool_use><arguments>{"s": "x"}</arguments><name>f</name></tool_use>'
    assert parse(text, format="utp_xml").tool_calls[0].arguments == {"s": "x"}
    text = '<tool_call>{"arguments": {"s": "x"}, "name": "f"}</tool_call>'
    assert parse(text, format="hermes").tool_calls[0].arguments == {"s": "x"}


def test_fallback_does_not_join_text_across_reasoning() -> None:
    text = '{"name": "f", "arguments": {"s": <think>b</think> "c"}}'
    read = parse(text, format="hermes", tools=[ARGUMENTS], fallback="whole_message")
    assert read.tool_calls == ()


def test_a_string_of_json_may_mention_reasoning() -> None:
    text = '{"name": "f", "arguments": {"s": "a <think>b</think> c"}}'
    read = parse(text, format="hermes", tools=[ARGUMENTS], fallback="whole_message")
    assert [call.arguments for call in read.tool_calls] == [{"s": "a <think>b</think> c"}]


def test_fallback_drops_problems_of_the_text_it_reads() -> None:
    text = '{"name": "f", "arguments": {"s": "<tool_call>x"}}'
    read = parse(text, format="hermes", tools=[ARGUMENTS], fallback="whole_message")
    assert (read.tool_calls[0].arguments, read.problems) == ({"s": "<tool_call>x"}, ())


@pytest.mark.need(8)
@pytest.mark.parametrize("format", ["qwen3_coder", "kimi_k2", "auto"])
def test_a_marker_mentioned_in_reasoning_stays_reasoning(format: str) -> None:
    text = "<think>I should use <tool_call> or <|tool_call_begin|> for this.</think>Answer"
    read = parse(text, format=format, tools=[ARGUMENTS])
    assert (read.content, read.reasoning, read.problems) == (
        "Answer",
        "I should use <tool_call> or <|tool_call_begin|> for this.",
        (),
    )


def test_a_fence_opens_only_at_a_line_start() -> None:
    assert parse(f"<think>x</think>```\n{CALL}\n```", format="hermes").tool_calls == ()
    assert len(parse(f"{CALL}```\n{CALL}", format="hermes").tool_calls) == 2


def test_parsing_does_not_grow_the_format_cache() -> None:
    from toolwire.wire import compiled_format

    for text in ("```\nnot closed", CALL):
        parse(text, format="auto")
    before = len(compiled_format._compiled)
    for _ in range(20):
        parse("```\nnot closed", format="hermes")
        parse("```\nnot closed", format="auto")
    assert len(compiled_format._compiled) == before


def test_integer_limits_of_the_interpreter_have_no_effect() -> None:
    digits = sys.get_int_max_str_digits()
    try:
        for limit, size in ((640, 1000), (0, 5000)):
            sys.set_int_max_str_digits(limit)
            read = parse('[TOOL_CALLS]f[ARGS]{"a":' + "9" * size + "}", format="mistral_args")
            assert read.tool_calls == ()
            assert read.problems
            text_in_pieces = "<tool_call>" + '{"name": "f", "arguments": {"b": 1, "n": ' + "9" * size + "}}</tool_call>"
            for chunks in ([text_in_pieces], text_in_pieces):
                parser = StreamParser(format="hermes", tools=[HELD])
                events = [event for chunk in chunks for event in parser.feed(chunk)]
                read = collect([*events, *parser.finish()])
                assert read.tool_calls == ()
                assert [problem.kind for problem in read.problems] == ["malformed"]
    finally:
        sys.set_int_max_str_digits(digits)


@pytest.mark.parametrize(
    "members",
    [
        '"arguments": {"s": "x\ud83d"}, "name": "f"',
        '"name": "f", "arguments": {"s": "x\ud83d"}',
        '"name": "f", "arguments": {"s\ud83d": "x"}',
        '"name": "f\ud83d", "arguments": {"s": "x"}',
        '"id": "\ud83d", "name": "f", "arguments": {"s": "x"}',
    ],
)
def test_half_of_a_surrogate_pair_makes_no_call(members: str) -> None:
    text = f"<tool_call>{{{members}}}</tool_call>"
    for chunks in ([text], text):
        parser = StreamParser(format="hermes", tools=[ARGUMENTS])
        read = collect([*(event for chunk in chunks for event in parser.feed(chunk)), *parser.finish()])
        assert read.tool_calls == ()
        assert [problem.kind for problem in read.problems] == ["malformed"]


@pytest.mark.need(40)
@pytest.mark.mission("C25", "B43")
@pytest.mark.parametrize(
    ("format", "text", "example"),
    [
        (
            "hermes",
            '<tool_call>{"name": "f", "arguments": {"a": }}</tool_call>',
            '{"name": "f", "arguments": {"a": 1}}',
        ),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\n1", "<parameter=a>\n1\n</parameter>"),
        ("kimi_k2", "<|tool_call_begin|>", '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}'),
        ("auto", "<tool><tool_name>f</tool_name><arguments><a>", "<arguments>\n  <a>1</a>\n</arguments>"),
    ],
)
def test_a_problem_contains_an_example_call(format: str, text: str, example: str) -> None:
    (problem,) = parse(text, format=format, tools=TOOLS).problems
    assert " A call of f is written like this:\n" in problem.message
    assert example in problem.message
    (problem,) = parse(text, format=format).problems
    assert "is written like this" not in problem.message


def stream(text: str, size: int, **options: Any) -> toolwire.ParsedResponse:
    parser = StreamParser(**options)
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return collect([*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()], raw=text)


@pytest.mark.parametrize("format", ["auto", "bare_json", "openai_json", "autobyteus_json"])
@pytest.mark.parametrize("unit", ['{"function": ', '{"tool": ', '{"tool_calls": [', '[{"tool": '])
def test_deep_wrappers_do_not_raise(format: str, unit: str) -> None:
    assert parse(unit * 3000, format=format, tools=TOOLS).tool_calls == ()


@pytest.mark.parametrize("format", ["auto", "gemma_tool_code"])
def test_inline_code_ends_at_its_backticks(format: str) -> None:
    text = "```x``````tool_code\nf(i=1)\n```"
    for size in (1, 2, 7, len(text)):
        read = stream(text, size, format=format, tools=TOOLS, fallback="none")
        assert (read.tool_calls, read.content) == ((), text)


@pytest.mark.need(7)
@pytest.mark.parametrize(
    "text",
    [
        "Try it:\n>>> print(1)\n1",
        "Type >>> to start.",
        ">>> config\n{'host': 'x'}\nis what Python prints.",
        "The `functools` module.",
        "functools",
        "The token <|end|> ends a message and <|start|> begins one; <|call|> ends a call.",
        "Thought: this is prose.\nObservation: so is this.",
        "Action: none\n",
        "Here is my thought process: Here is my response: x",
    ],
)
def test_prose_with_markers_is_content_without_problems(text: str) -> None:
    for size in (1, len(text)):
        read = stream(text, size, format="auto", tools=TOOLS)
        assert (read.content, read.tool_calls, read.problems, read.reasoning) == (text, (), (), "")


def test_a_call_beside_a_list_of_calls_is_refused() -> None:
    call = '{"name": "f", "arguments": {"a": 1}}'
    read = parse(f'{{"tool_calls": [{call}], "name": "f", "arguments": {{"a": 2}}}}', format="openai_json", tools=TOOLS)
    assert [only_call.arguments for only_call in read.tool_calls] == [{"a": 1}]
    (only_call,) = parse(f'{{"tool_calls": [{call}],}}', format="openai_json", tools=TOOLS).tool_calls
    assert only_call.repairs == ("trailing_comma",)
    (only_call,) = parse(f"{call}; thanks", format="bare_json", tools=TOOLS).tool_calls
    assert only_call.raw == call


def test_calls_after_a_made_up_observation_are_ignored() -> None:
    for start in ("", "Thought: I look.\n", "Thought: x\nAction: nobody\nAction Input: {}\n"):
        text = f'{start}Observation: it is 5\nThought: so\nAction: f\nAction Input: {{"a": 1}}'
        assert parse(text, format="react", tools=TOOLS).tool_calls == ()
    assert parse(
        'Thought: x\nAction: f\nAction Input: {"a": 1}\nObservation: 5', format="react", tools=TOOLS
    ).tool_calls


def test_a_call_that_the_prompt_began_is_announced() -> None:
    parser = StreamParser(format="hermes", tools=TOOLS, primed='<tool_call>\n{"name": "f", "arguments": {')
    events = [*parser.feed('"a": 1}}'), *parser.feed("</tool_call>"), *parser.finish()]
    assert isinstance(events[0], toolwire.CallStart)
    assert "".join(event.text for event in events if isinstance(event, toolwire.ArgumentsDelta)) == '{"a": 1}'
    assert collect(events).tool_calls[0].raw == '"a": 1}}</tool_call>'


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("glm4", "<tool_call>f<arg_key>\ud800</arg_key><arg_value>x</arg_value></tool_call>"),
        ("qwen3_coder", "<function=f>\n<parameter=\ud800>\nx\n</parameter>\n</function>"),
        (
            "deepseek_dsml",
            '<｜DSML｜invoke name="f"><｜DSML｜parameter name="\ud800">x</｜DSML｜parameter></｜DSML｜invoke>',
        ),
        ("autobyteus_xml", '<tool name="f"><arguments><arg name="\ud800">x</arg></arguments></tool>'),
    ],
)
def test_half_of_a_surrogate_pair_in_a_parameter_name_is_refused(format: str, text: str) -> None:
    read = parse(text, format=format)
    assert read.tool_calls == ()
    assert [problem.kind for problem in read.problems] == ["malformed"]


def test_a_pseudo_tool_makes_no_call() -> None:
    text = 'Action:\n```json\n[{"tool_name": "directly-answer", "parameters": {}}]\n```'
    read = parse(text, format="cohere_json")
    assert (read.tool_calls, read.problems, read.content) == ((), (), "")
    for cut in range(len(text)):
        read = parse(text[:cut], format="cohere_json")
        assert (read.tool_calls, read.incomplete) == ((), ())


def test_a_pseudo_tool_with_something_to_say_stays_content() -> None:
    for members in ('"parameters": {"a": 1}', '"parameter": {"a": 1}', '"parameters": {}, "answer": "Paris"'):
        text = f'Action: ```json\n[{{"tool_name": "directly-answer", {members}}}]\n```'
        read = parse(text, format="cohere_json")
        assert (read.tool_calls, read.content) == ((), text)


def test_tool_choice_none_reads_no_calls() -> None:
    text = f"<think>x</think>{CALL}"
    for format in ("hermes", "auto"):
        read = parse(text, format=format, tools=TOOLS, tool_choice="none", fallback="whole_message")
        assert (read.tool_calls, read.content, read.reasoning) == ((), CALL, "x")
    for text in (
        "<|START_THINKING|>x<|END_THINKING|><|START_RESPONSE|>y<|END_RESPONSE|>",
        "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>y<|return|>",
        "[THINK]x[/THINK]y",
        "◁think▷x◁/think▷y",
    ):
        read = parse(text, tool_choice="none")
        assert (read.content, read.reasoning) == ("y", "x")
    bare = '{"name": "f", "arguments": {"a": 1}}'
    assert parse(bare, format="hermes", tools=TOOLS, fallback="whole_message").tool_calls
    assert not parse(bare, format="hermes", tools=TOOLS, fallback="whole_message", tool_choice="none").tool_calls
    with pytest.raises(ValueError, match="tool_choice is 'required'"):
        parse(text, tool_choice="required")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pieces", "at"),
    [(['{"name": "f", "arguments": {"', 'a"', ": 1}}"], 1), (['{"name": "f", "arguments": {"z"', ": {}", "}}"], 2)],
)
def test_a_call_without_markers_is_announced_once_it_cannot_be_a_definition(pieces: list[str], at: int) -> None:
    parser = StreamParser(format="bare_json", tools=TOOLS)
    starts = [any(isinstance(event, toolwire.CallStart) for event in parser.feed(piece)) for piece in pieces]
    assert starts.index(True) == at


@pytest.mark.parametrize("size", [1, 1000, 100_000])
@pytest.mark.parametrize(
    ("format", "before", "after", "kind"),
    [
        ("qwen3_coder", "<function=f><parameter=a>\n1\n</parameter>", "</function>", "truncated"),
        ("forge_xml", "<tool><tool_name>f</tool_name><arguments><a>1</a>", "</arguments></tool>", "malformed"),
    ],
)
def test_a_closing_marker_counts_only_before_at_most_4000_blanks(
    format: str, before: str, after: str, kind: str, size: int
) -> None:
    for blanks, counts in ((4000, True), (4001, False)):
        text = before + " " * blanks + after
        parser = StreamParser(format=format, tools=TOOLS)
        events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
        response = collect([*events, *parser.finish()])
        assert len(response.tool_calls) == counts
        assert [problem.kind for problem in response.problems] == ([] if counts else [kind])


@pytest.mark.parametrize("format", ["hermes", "auto"])
@pytest.mark.parametrize(
    ("opening", "closing", "closes"),
    [("```", "```", True), ("```", "````", True), ("````", "```", False), ("~~~~", "~~~", False), ("```", "``", False)],
)
def test_a_fence_at_the_end_of_the_text_is_closed_by_as_many_characters(
    format: str, opening: str, closing: str, closes: bool
) -> None:
    response = parse(f"{opening}\n{CALL}\n{closing}", format=format, tools=TOOLS, fallback="none")
    assert response.tool_calls == ()
    assert [problem.kind for problem in response.problems] == ([] if closes else ["hidden_by_fence"])


@pytest.mark.parametrize(
    "text", ['Like {"name": "f", "arguments": {"a": 1}}', 'So\n[{"name": "f", "arguments": {"a": 1}}] is it']
)
def test_json_behind_prose_is_not_detected_as_a_call(text: str) -> None:
    read = parse(text, tools=TOOLS)
    assert (read.tool_calls, read.content) == ((), text)


EAGER = [wire.name for wire in FORMATS if wire.ends_reasoning and wire.markers and not wire.spans[0].prose]


def test_formats_whose_models_call_in_open_reasoning_let_a_call_end_it() -> None:
    assert {
        *("deepseek_dsml", "deepseek_v4_1", "gemma4", "glm4", "inkling", "kimi_k2", "mimo", "minimax_m2", "plamo3"),
        *("qwen3_coder", "seed_oss"),
    } <= set(EAGER)


@pytest.mark.parametrize("name", EAGER)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_call_ends_reasoning_that_was_left_open(name: str, size: int) -> None:
    wire = toolwire.get_format(name)
    call = toolwire.render_calls([toolwire.ToolCall("f", {"a": 1})], format=name, tools=TOOLS)
    for format in (name, *(["auto"] if wire.detected else [])):
        for started, before in ((True, "Let me see. "), (False, f"{wire.spans[0].open}Let me see. ")):
            text = before + call
            parser = StreamParser(format=format, tools=TOOLS, reasoning_started=started, primed="")
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            response = collect([*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()])
            assert [made.arguments for made in response.tool_calls] == [{"a": 1}], (format, started)
            assert response.reasoning.strip() == "Let me see."
            assert not response.content.strip()


@pytest.mark.parametrize("format", ["glm4", "gemma4", "auto"])
def test_an_opener_that_reasoning_only_mentions_does_not_end_it(format: str) -> None:
    text = "I could write <tool_call> or <|tool_call>, or\n```tool_code\nprint(f(a=1))\n```\nor not."
    response = toolwire.parse(text, format=format, tools=TOOLS, reasoning_started=True)
    assert (response.tool_calls, response.content, response.reasoning) == ((), "", text)
    # Nothing is behind the reasoning, so the call that it shows may have been meant.
    assert {problem.kind for problem in response.problems} <= {"call_in_prose"}


@pytest.mark.parametrize("format", ["auto", "hermes", "qwen3_coder", "forge_xml"])
@pytest.mark.parametrize("size", [4, 10_000])
def test_a_parser_is_freed_without_the_garbage_collector(format: str, size: int) -> None:
    tools = [{"name": "write_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}]
    calls = [toolwire.ToolCall("write_file", {"path": "a.py"})]
    text = "Well. " + toolwire.render_calls(calls, format="hermes" if format == "auto" else format, tools=tools)
    gc.collect()
    gc.disable()
    try:
        parser = toolwire.StreamParser(format=format, tools=tools, fallback="whole_message")
        events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
        response = toolwire.collect([*events, *parser.finish()])
        freed = weakref.ref(parser._reader)
        del parser
        assert freed() is None
        assert len(response.tool_calls) == 1
    finally:
        gc.enable()


def test_a_wrong_part_to_read_is_refused() -> None:
    with pytest.raises(ValueError, match="only is 'text'; it can be 'calls' or 'reasoning'"):
        StreamParser(only="text")  # type: ignore[arg-type]


def test_reasoning_alone_of_any_format() -> None:
    text = "<|START_THINKING|>Hm</|START_THINKING|><|END_THINKING|> a <think>b</think><tool_call>"
    response = parse(text, only="reasoning")
    assert response.reasoning == "Hm</|START_THINKING|>"
    assert response.content == " a <think>b</think><tool_call>"


def test_reasoning_that_the_prompt_began_in_this_text() -> None:
    response = parse("Hm</think>a", format="hermes", only="reasoning", primed="<think>\n")
    assert (response.reasoning, response.content) == ("Hm", "a")


def test_a_cut_call_that_ends_the_reasoning_is_left_to_the_next_parser() -> None:
    text = "<think>Hm\n<tool_call>\n<function=f>\n<parameter=a>\n1"
    response = parse(text, format="qwen3_coder", only="reasoning")
    assert response.reasoning.strip() == "Hm"
    assert response.content == text[text.index("<tool_call>") :]
    assert response.finish_reason == "stop" and not response.incomplete


def test_the_text_of_a_mentioned_call_is_not_repeated() -> None:
    response = parse("<think>a <tool_call> b</think>c", format="qwen3_coder", only="reasoning")
    assert (response.reasoning, response.content) == ("a <tool_call> b", "c")


def test_a_marker_of_the_prompt_does_not_become_content() -> None:
    assert parse("Hello", format="harmony", only="reasoning").content == "Hello"
