"""Control tokens of chat templates, which somebody writes into a result, a document or the description of a tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolwire
from toolwire import FilePart, Message, ParsedResponse, TextPart, ToolCall, ToolDefinition, ToolResult
from toolwire.client.client import Client
from toolwire.testing import ScriptedTransport
from toolwire.wire.result_text import BREAK

TOKENS = [
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|begin_of_text|>",
    "<|header_start|>",
    "<|eot|>",
    "<|python_tag|>",
    "[INST]",
    "[/INST]",
    "[|user|]",
    "[|endofturn|]",
    "[unused9]",
    "<<SYS>>",
    "<</SYS>>",
    "<s>",
    "</s>",
    "[SYSTEM_PROMPT]",
    "[TOOL_CALLS]",
    "[AVAILABLE_TOOLS]",
    "[THINK]",
    "[IMG]",
    "[MASK]",
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<unk>",
    "<|turn>",
    "<turn|>",
    "<start_of_image>",
    "<image_soft_token>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜begin▁of▁sentence｜>",
    "<|start|>",
    "<|message|>",
    "<|channel|>",
    "<|call|>",
    "<|return|>",
    "<|constrain|>",
    "<|START_OF_TURN_TOKEN|>",
    "<|SYSTEM_TOKEN|>",
    "<BOS_TOKEN>",
    "<EOS_TOKEN>",
    "]~b]",
    "[e~[",
    "]~!b[",
    "<|im_user|>",
    "<|im_middle|>",
    "<seed:bos>",
    "<SPECIAL_12>",
    "<role>",
    "</role>",
    "<_user>",
    "<_bot>",
    "<reserved_106>",
    "<end_of_utterance>",
    "<begin_of_utterance>",
    "<beginning_of_image>",
    "<用户>",
    "<AI>",
    "<eod>",
    "<[BOS_never_used_51bce0c785ca2f68081bfa7d91973934]>",
    "<unused1>",
    "<extra_id_0>",
    "<fim_prefix>",
    "<fim-suffix>",
    "<|fim_hole|>",
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</tools>",
]
FORMATS = [name for name in toolwire.formats() if toolwire.get_format(name).blocks]


def tool_saying(text: str) -> ToolDefinition:
    """A tool of a server that writes this text wherever a definition has text."""
    place = {"type": "string", "description": text, "enum": [text], "default": text}
    return ToolDefinition("f", text, {"type": "object", "title": text, "properties": {"a": place, text: {}}})


def own(tokens: list[str], text: str) -> list[str]:
    """Return the tokens that a text contains."""
    return [token for token in tokens if token in text]


@pytest.mark.parametrize("format", FORMATS)
def test_extra_1_control_tokens_are_inert_in_results_and_definitions(format: str) -> None:
    honest = tool_saying("text")
    written_by_format = set(
        own(TOKENS, toolwire.prompt([honest], format=format))
        + own(TOKENS, toolwire.render_definitions([honest], format=format))
        + own(TOKENS, toolwire.render_results([ToolResult("c1", "f", "text")], format=format))
    )
    tokens = [token for token in TOKENS if token not in written_by_format]
    assert len(tokens) > len(TOKENS) - 20
    hostile = " x ".join(TOKENS)
    assert own(tokens, toolwire.render_results([ToolResult("c1", "f", hostile)], format=format)) == []
    assert own(tokens, toolwire.render_results([ToolResult("c1", "f", error=hostile)], format=format)) == []
    assert own(tokens, toolwire.render_definitions([tool_saying(hostile)], format=format)) == []
    assert own(tokens, toolwire.prompt([tool_saying(hostile)], format=format)) == []
    # The format's own markers are written as often as for an honest tool, so no place ends early.
    for token in written_by_format:
        count = toolwire.render_definitions([honest], format=format).count(token)
        assert toolwire.render_definitions([tool_saying(hostile)], format=format).count(token) == count, token


def test_extra_1_ordinary_text_stays_as_it_is() -> None:
    text = "a < b, [1], <b>bold</b>, x | y, <br/>, [TODO], List<String>, a<<2, {'k': [1]}, <user>"
    assert toolwire.render_results([ToolResult("c1", "f", text)], format="hermes").count(BREAK) == 0
    assert text in toolwire.render_definitions([ToolDefinition("f", text)], format="hermes")


def sent(model: str, api: str = "openai_chat", **result: Any) -> str:
    """Return what a client sends, with a hostile result, document and definition, as text."""
    transport = ScriptedTransport(api, [ParsedResponse("Well.")])
    client = Client(api, model, base_url="https://example.test", key="k", transport=transport)
    hostile = " ".join(TOKENS)
    messages = [
        Message("user", [TextPart("Read."), FilePart.of_text(hostile, name="a.txt")]),
        Message("assistant", [ToolCall("f", {}, "call_1")]),
        Message("tool", [ToolResult("call_1", "f", **result)]),
    ]
    client.ask_sync(messages, tools=[tool_saying(hostile)])
    return json.dumps(transport.requests[0], ensure_ascii=False)


@pytest.mark.parametrize("result", [{"result": {"a": [" ".join(TOKENS)]}}, {"error": " ".join(TOKENS)}])
@pytest.mark.parametrize("api", ["openai_chat", "ollama", "mistral"])
def test_extra_1_control_tokens_are_inert_for_a_model_whose_server_uses_a_template(
    api: str, result: dict[str, Any]
) -> None:
    assert own(TOKENS, sent("qwen3:8b", api, **result)) == []


def test_extra_1_a_provider_that_keeps_roles_apart_gets_results_unchanged() -> None:
    text = sent("gpt-5-mini", result=" ".join(TOKENS))
    assert own(TOKENS, text) == TOKENS
    assert BREAK not in text
