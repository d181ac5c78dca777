"""A pytest plug-in that has vLLM's replays of whole answers read by Toolwire's unified parser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolwire
from toolwire.errors import UnknownFormat

_outcomes: dict[str, str] = {}


def _swapped(original: Any) -> type | None:
    from tests.parser.engine.replay_harness import MockTokenizer
    from toolwire_vllm.unified_parser import parser_class
    from vllm.parser.engine.parser_engine_config import ParserState

    engine = original
    if getattr(original, "tool_parser_cls", None) is not None and not hasattr(original, "parser_engine_config"):
        engine = original.tool_parser_cls._parser_engine_cls
    name = engine(MockTokenizer(vocab={}, tokens=[]), None).parser_engine_config.name
    try:
        base: Any = parser_class(toolwire.get_format(name).name)
    except UnknownFormat:
        return None

    class Swapped(base):  # type: ignore[misc]
        skip_tool_parsing = False  # vLLM's parsers read reasoning alone then

        def __init__(self, tokenizer: Any, tools: Any = None, **keywords: Any) -> None:
            super().__init__(tokenizer, tools, **keywords)
            # These tests pass no prompt. The state that vLLM's own parser assumes then is part of its description.
            state = engine(tokenizer, None, **keywords).parser_engine_config.initial_state
            self._is_open = state == ParserState.REASONING

        def _options(self, request: Any) -> Any:
            options = super()._options(request)
            return {**options, "only": "reasoning"} if self.skip_tool_parsing else options

    return Swapped


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Replace the classes that tests are run with."""
    swapped: dict[Any, type | None] = {}
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        original = parameters.get("parser_cls")
        if original is None:
            continue
        if original not in swapped:
            swapped[original] = _swapped(original)
        if swapped[original] is not None:
            parameters["parser_cls"] = swapped[original]
            item.user_properties.append(("toolwire", True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    """Record the outcome of each test."""
    report: Any = yield
    if call.when == "call" or report.outcome != "passed":
        kind = "reached" if ("toolwire", True) in item.user_properties else "other"
        _outcomes[item.nodeid] = f"{report.outcome}\t{kind}"
    return report


def pytest_sessionfinish() -> None:
    """Write the results."""
    lines = [f"{outcome}\t{test}\n" for test, outcome in _outcomes.items()]
    Path(os.environ["TOOLWIRE_RESULTS"]).write_text("".join(lines), "utf-8")
