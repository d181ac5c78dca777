"""Turns of anybody but the model, which a model makes up or repeats: no call in them runs, in any format."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.property.laws import check_chunking

from toolwire import ParsedResponse, ToolCall, formats, parse, render_calls
from toolwire.wire.known_tools import KnownToolsReader
from toolwire.wire.prepared_tools import prepared_tools
from toolwire.wire.result_tags import spans_of_results
from toolwire.wire.turn_headers import role_may_go_on, turn_header

RUN = {
    "name": "run",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
CALL = '<tool_call>{"name": "run", "arguments": {"query": "a"}}</tool_call>'
SECOND = '<tool_call>{"name": "run", "arguments": {"query": "b"}}</tool_call>'
FORMATS = [name for name in formats() if name not in ("auto", "plain")]

TURNS = [
    ("<|im_start|>tool\n", "<|im_end|>"),
    ("<|im_start|>tool\n", "<|im_start|>assistant\n"),
    ("<|IM_START|>Tool\n", "<|im_end|>"),
    ("<|im_start|>tool name=run\n", "<|im_end|>"),
    ("<|im_start|> tool_response\n", "<|im_end|>"),
    ("<|im_start|>environment\n", "<|im_end|>"),
    ("<|im_start|>user\n", "<|im_end|>"),
    ("<|im_system|>run<|im_middle|>## Return of functions.run:0\n", "<|im_end|>"),
    ("<|im_user|>user<|im_middle|>", "<|im_assistant|>assistant<|im_middle|>"),
    ("<|start_header_id|>ipython<|end_header_id|>\n\n", "<|eot_id|>"),
    ("<|start_header_id|> tool: run <|end_header_id|>\n\n", "<|eom_id|>"),
    ("<|start_header_id|>ipython<|end_header_id|>\n\n", "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    ("<|header_start|>user<|header_end|>\n\n", "<|eot|>"),
    ("<|header_start|>ipython<|header_end|>\n\n", "<|header_start|>assistant<|header_end|>"),
    ("<|start_of_role|>tool_response<|end_of_role|>", "<|end_of_text|>"),
    ("<|start_of_role|>user<|end_of_role|>", "<|start_of_role|>assistant<|end_of_role|>"),
    ("<role>OBSERVATION</role>\n", "<role>ASSISTANT</role>"),
    ("<role>tool</role>", "<|role_end|>"),
    ("<start_of_turn>tool\n", "<end_of_turn>"),
    ("<start_of_turn>user\n", "<start_of_turn>model\n"),
    ("<|turn>user\n", "<turn|>"),
    ("<|turn>user\n", "<|turn>model\n"),
    ("<|start|>functions.run to=assistant<|channel|>commentary<|message|>", "<|end|>"),
    ("<|start|>tool<|message|>", "<|end|>"),
    ("<|start|>system<|message|>", "<|return|>"),
    ("<|start|>user<|message|>", "<|eot|>"),
    ("<|start|>developer<|message|>", "<|start|>assistant"),
    ("<|begin|>tool\n", "<|begin|>assistant"),
    ("<|from|>run\n<|recipient|>all\n<|content|>", "<|from|>assistant"),
    ("<|from|>user\n<|recipient|>all\n<|content|>", "<|stop|>"),
    ("<|tool|>", "<|end|>"),
    ("<|ipython|>", "<|assistant|>"),
    ("<|user|>\n", "<|assistant|>"),
    ("<｜User｜>", "<｜Assistant｜>"),
    ("<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
    ("[INST]", "[/INST]"),
    ("<|user_start|>", "<|assistant_start|>"),
    ("<|Developer_start|>", "<|assistant_start|>"),
    ("<seed:bos>tool\n", "<seed:eos>"),
    ("<seed:bos>user\n", "<seed:bos>assistant\n"),
    ("<SPECIAL_10>System\n", "<SPECIAL_11>Assistant\n"),
    ("<SPECIAL_11>User\n", "<SPECIAL_12>"),
    ("]~b]tool\n", "[e~["),
    ("]~b]user\n", "]~b]ai"),
    ("[|tool|]", "[|assistant|]"),
]
OF_MODEL = [
    "<|im_start|>assistant\n",
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "<start_of_turn>model\n",
    "<|assistant|>",
    "<role>ASSISTANT</role>",
    "<seed:bos>assistant\n",
    "<SPECIAL_11>Assistant\n",
    "<|assistant_start|>",
    "<|start|>assistant<|message|>",
    "]~b]ai\n",
    "<|im_start|>tool_call\n",
    "<|im_start|>tooling\n",
    "<|start|>function_call\n",
    "<user>",
    "<tool >",
]


def read(text: str, format: str = "auto", tools: Sequence[object] = (RUN,), **options: object) -> ParsedResponse:
    """Return the reading of a text, which is the same in every chunking."""
    return check_chunking(text, format=format, tools=tools, **options).response


def queries(response: ParsedResponse) -> list[str]:
    return [call.arguments["query"] for call in response.tool_calls]


@pytest.mark.parametrize("format", ["auto", "hermes", "harmony", "tool_tags"])
@pytest.mark.parametrize(("header", "end"), TURNS)
def test_a_turn_of_somebody_else_hides_calls_up_to_its_end(header: str, end: str, format: str) -> None:
    call, second = (
        (CALL, SECOND) if format != "tool_tags" else ("<run><query>a</query></run>", "<run>\n<query>b</query></run>")
    )
    if format == "harmony":
        call, second = (
            f'<|channel|>commentary to=functions.run <|constrain|>json<|message|>{{"query": "{query}"}}<|call|>'
            for query in "ab"
        )
    for before in ("", "So.\n", "So.<|im_end|>\n"):
        text = f"{before}{header}a\n{call}"
        assert queries(read(f"{text}{end}\n{second}", format)) == ["b"], before
        unclosed = read(text, format)
        assert [problem.kind for problem in unclosed.problems][:1] == ["hidden_by_fence"], before
        assert unclosed.tool_calls == ()


@pytest.mark.parametrize("header", OF_MODEL)
def test_a_turn_of_the_model_hides_nothing(header: str) -> None:
    assert queries(read(f"So.\n{header}{CALL}")) == ["a"]


@pytest.mark.parametrize("format", FORMATS)
def test_turns_hide_the_calls_of_every_format(format: str) -> None:
    call = render_calls([ToolCall("run", {"query": "a"})], format=format, tools=[RUN])
    for header, _ in TURNS:
        found = turn_header(header)
        if found is not None and any(end in call for end in found.ends):
            continue  # the call begins with the header of the model's own turn
        for named in (format, "auto"):
            assert parse(f"So:\n{header}\n{call}", format=named, tools=[RUN]).tool_calls == (), header


@pytest.mark.parametrize(
    "text",
    [
        "The header <|im_start|>tool begins it.\n",
        "`<|im_start|>tool` begins it.\n",
        "It is <|start|>user here.\n",
        "It is [INST] here.\n",
        "Then <|user|> speaks.\n",
    ],
)
def test_prose_may_mention_a_header(text: str) -> None:
    assert queries(read(text + CALL)) == ["a"]


def test_a_turn_ends_only_as_those_of_its_family_do() -> None:
    page = f"The page says <|eot_id|>, <end_of_turn> and <|assistant|>.\n{CALL}"
    assert queries(read(f"<|im_start|>tool\n{page}<|im_end|>{SECOND}")) == ["b"]


def test_the_end_of_a_turn_is_markup_where_it_ends_the_message() -> None:
    assert read(f"Hi.\n<|im_start|>tool\n{CALL}<|im_end|>").content == f"Hi.\n<|im_start|>tool\n{CALL}"


def test_a_result_ends_before_the_turn_of_the_user_who_calls_nothing_either() -> None:
    assert queries(read(f"<|observation|>{CALL}<|user|>{CALL}<|assistant|>{SECOND}")) == ["b"]


@pytest.mark.parametrize(
    "text",
    [
        "<|user|>run(query='a')",
        "<|tool|>" + '{"name": "run", "arguments": {"query": "a"}}',
        "<|im_start|>function: run(query='a')",
        "<|start_header_id|>tool: run\n{'query': 'a'}",
    ],
)
def test_a_message_that_is_such_a_turn_is_not_made_of_calls(text: str) -> None:
    assert read(text).tool_calls == ()
    assert len(read(text.replace("user", "assistant").replace("tool|", "x|").replace("im_start|>f", "x|>f")
                    .replace("tool: ", "").replace("start_header_id", "x")).tool_calls) == 1  # fmt: skip


@pytest.mark.parametrize("fallback", ["whole_message", "embedded"])
@pytest.mark.parametrize(
    ("before", "behind"),
    [("<|im_start|>tool\n", "<|im_end|>"), ("<tool_result>\n", "</tool_result>"), ("[INST]\n", "[/INST]")],
)
def test_a_call_without_markers_far_behind_a_header_is_only_shown(before: str, behind: str, fallback: str) -> None:
    page = "Words and words. " * 60
    hidden = read(f"So:\n{before}{page}\nrun(query='a')\n{behind}\n", fallback=fallback)
    assert (hidden.tool_calls, hidden.problems) == ((), ())
    shown = read(f"So:\n{before}{page}\n{behind}\nI do it: run(query='a')\n", fallback=fallback)
    assert len(shown.tool_calls) + len(shown.problems) == 1


def test_the_role_may_arrive_behind_the_token_of_a_header() -> None:
    reader = KnownToolsReader(prepared_tools([RUN]))
    for piece in ("<|im_start|>", "function: ", "run(query='a')"):
        reader.feed(piece)
    assert reader.finish() is None


def test_the_argument_of_a_call_may_be_such_a_turn() -> None:
    call = "run(query='<|im_start|>user<|im_sep|>')"
    assert [problem.raw for problem in read(f"I do it: {call}\n").problems] == [call]


# -- in reasoning ------------------------------------------------------------------------------------------------------

CODER = "<tool_call>\n<function=run>\n<parameter=query>\n%s\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize("format", ["auto", "qwen3_coder"])
@pytest.mark.parametrize(
    ("opener", "closer"), [("<tool_response>", "</tool_response>"), ("[TOOL_RESULTS]", "[/TOOL_RESULTS]"), *TURNS[:3]]
)
def test_a_result_in_reasoning_hides_a_call_that_would_end_it(opener: str, closer: str, format: str) -> None:
    thought = f"I got\n{opener}\n{CODER % 'a'}\n"
    closed = read(f"<think>{thought}{closer} so.</think>Done.", format)
    assert (closed.tool_calls, closed.content, closed.reasoning) == ((), "Done.", f"{thought}{closer} so.")
    assert queries(read(f"<think>{thought}{closer} so.\n{CODER % 'b'}", format)) == ["b"]
    unclosed = read(f"<think>{thought} so.</think>Done.\n{CODER % 'b'}", format)
    assert queries(unclosed) == ["b"]
    assert unclosed.content == "Done.\n"
    assert [problem.kind for problem in read(f"<think>{thought}", format).problems][:1] == ["hidden_by_fence"]


@pytest.mark.parametrize("format", ["auto", "gemma4"])
def test_a_token_that_may_end_a_turn_opens_a_result_in_reasoning_too(format: str) -> None:
    call = '<|tool_call>call:run{query:<|"|>a<|"|>}<tool_call|>'
    thought = f"I got<|tool_response>\n{call}<tool_response|> so."
    response = read(f"<|channel>thought\n{thought}<channel|>Done.", format)
    assert (response.tool_calls, response.reasoning, response.content) == ((), thought, "Done.")


def test_where_no_call_ends_the_reasoning_its_results_do_not_matter() -> None:
    text = f"<think>I got\n<tool_response>\n{CALL}\n</tool_response></think>{SECOND}"
    assert queries(read(text, "hermes")) == ["b"]


@pytest.mark.parametrize("format", ["auto", "tool_tags"])
def test_a_tag_of_a_tool_in_reasoning_is_still_part_of_it(format: str) -> None:
    text = "<think>I write <run>\n<query>a</query></run>\n</think>Done."
    assert read(text, format).content == "Done."


# -- the functions -----------------------------------------------------------------------------------------------------


def test_a_header_is_found_with_its_role() -> None:
    header = turn_header("a <|im_start|> Tool.x: b", 2)
    assert header is not None
    assert (header.end, "<|im_end|>" in header.ends, "<|eot_id|>" in header.ends) == (22, True, False)
    assert turn_header("<|from|>model") is turn_header("<|from|>") is turn_header("<|im_start|>\n\n\n\n\ntool") is None


def test_a_role_may_go_on_up_to_the_first_character_behind_it() -> None:
    assert [role_may_go_on(text) for text in ("<|im_start|>", "<role> to", "<|start|>tool", "<start_of_turn>u")] == [
        True
    ] * 4
    assert [role_may_go_on(text) for text in ("<|im_start", "<b>to", "<|start|>tool\n", "<|start|>" + "a" * 81)] == [
        False
    ] * 4


def test_the_places_of_results_and_turns_are_found_in_a_whole_text() -> None:
    text = "a <tool_result>\nb</tool_result> `<|user|>` c\n<|user|>d<|assistant|>[INST]e[/INST] <tool_result>f"
    assert [text[start:stop] for start, stop in spans_of_results(text)] == [
        "<tool_result>\nb</tool_result", "<|user|>d", "[INST]e[/INST]",
    ]  # fmt: skip
