"""Calls in dialects are read as they were meant, however they are written, split or cut; prose before them counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.laws import check_chunking, pieces

import toolwire
from toolwire.wire.dialects import DIALECTS

TEXT = {"type": "string"}
TOOLS: list[dict[str, Any]] = [
    {
        "name": name,
        "parameters": {
            "type": "object",
            "properties": {"text": TEXT, "count": {"type": "integer"}, "items": {"type": "array"}, "more": {}},
        },
    }
    for name in ("search", "files.read", "move-to", "server__run")
]
AWKWARD = st.sampled_from(
    ["'", '"', "\\", "\n", "(", ")", "[", "]", "{", "}", ",", "=", ":", "```", "</tool_call>", "<tool_call>", "f(a=1)",
     "# x", "é", "🙂", "'''", '"""', "\\n", " ", "a b", "search(text='x')", ""]
)  # fmt: skip
STRINGS = st.lists(st.one_of(AWKWARD, st.text("ab1 .;-", max_size=4)), max_size=4).map("".join)
VALUES = st.one_of(STRINGS, st.integers(-9, 9), st.booleans(), st.none(), st.lists(STRINGS, max_size=2))
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "text": STRINGS,
        "count": st.integers(-(10**6), 10**6),
        "items": st.lists(VALUES, max_size=3),
        "more": st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, max_size=2),
    },
)
Call = tuple[str, dict[str, Any]]
CALLS = st.lists(st.tuples(st.sampled_from([tool["name"] for tool in TOOLS]), ARGUMENTS), min_size=1, max_size=3)


def _python(call: Call) -> str:
    name, arguments = call
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


WRITERS: dict[str, Callable[[list[Call], str], str]] = {
    "python_calls": lambda calls, between: between.join(map(_python, calls)),
    "call_strings": lambda calls, _: repr(list(map(_python, calls))),
    "call_list": lambda calls, _: f"[{', '.join(map(_python, calls))}]",
    "call_objects": lambda calls, _: repr([{"tool": name, "tool_input": arguments} for name, arguments in calls]),
    "name_as_key": lambda calls, between: between.join(_json({name: arguments}) for name, arguments in calls),
    "name_then_json": lambda calls, between: between.join(f"{name}\n{_json(arguments)}" for name, arguments in calls),
}
AROUND = ("{}", "```python\n{}\n```", "```\n{}\n```", "\n\n{}\n", "<|im_start|>{}<|im_end|>", "Tool call: {}")


def test_each_dialect_is_written_here() -> None:
    assert [dialect.name for dialect in DIALECTS] == list(WRITERS)


def _read(text: str) -> list[Call]:
    return [(call.name, call.arguments) for call in toolwire.parse(text, tools=TOOLS).tool_calls]


@pytest.mark.parametrize("dialect", WRITERS)
@settings(max_examples=settings().max_examples * 3)
@given(calls=CALLS, between=st.sampled_from([", ", "; ", "\n", ",\n"]), around=st.sampled_from(AROUND), data=st.data())
def test_calls_are_read_as_they_were_meant(
    dialect: str, calls: list[Call], between: str, around: str, data: st.DataObject
) -> None:
    text = around.replace("{}", WRITERS[dialect](calls, between))
    response = check_chunking(text, [pieces(text, data.draw(st.integers(1, 9)))], tools=TOOLS).response
    assert [(call.name, call.arguments) for call in response.tool_calls] == calls
    assert all("fallback" in call.repairs or call.confidence == 0.9 for call in response.tool_calls)
    # A message that ends early has no other calls than these, and none of them in half.
    cut = data.draw(st.integers(0, len(text)))
    assert all(call in calls for call in _read(text[:cut]))


@pytest.mark.parametrize("dialect", ["python_calls", "name_then_json"])
@given(calls=CALLS, prose=st.sampled_from(["Well, ", "So: ", "I call ", "The answer is "]))
def test_prose_before_calls_makes_them_content(dialect: str, calls: list[Call], prose: str) -> None:
    text = prose + WRITERS[dialect](calls, "\n")
    assert _read(text) == []
    assert toolwire.parse(text, tools=TOOLS).content == text
