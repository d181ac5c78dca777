"""A pytest plug-in that puts Toolwire's parsers of tool calls in the place of vLLM's own.

A test counts as reaching Toolwire if it has a parser read something. The results are written to the file that the
environment variable TOOLWIRE_RESULTS names, one test per line: its outcome and its id.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolwire
from toolwire import ToolDefinition
from toolwire.errors import DefinitionError, UnknownFormat

_IDENTIFIER = re.compile(r"\b[a-zA-Z_][\w.-]{1,60}\b")
_reached: set[str] = set()
_outcomes: dict[str, str] = {}


def _current_test() -> str:
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]


def _named_tools() -> list[ToolDefinition]:
    """Return a definition for each identifier in the file of the current test.

    Most tests pass no tools, and a call without markers is recognized by the name of its tool.
    """
    path = Path(_current_test().partition("::")[0])
    tools = []
    for name in sorted(set(_IDENTIFIER.findall(path.read_text("utf-8")))):
        try:
            tools.append(ToolDefinition(name))
        except DefinitionError:
            continue
    return tools


def _swapped(original: type, format: str) -> type:
    from toolwire_vllm.tool_parser import parser_class

    adapter: Any = parser_class(format)
    markers = toolwire.get_format(format).markers

    def extract_tool_calls(self: Any, model_output: str, request: Any) -> Any:
        _reached.add(_current_test())
        return adapter.extract_tool_calls(self, model_output, request)

    def extract_tool_calls_streaming(self: Any, *arguments: Any, **keywords: Any) -> Any:
        _reached.add(_current_test())
        return adapter.extract_tool_calls_streaming(self, *arguments, **keywords)

    def options(self: Any, request: Any) -> Any:
        keywords = adapter._options(self, request)
        if not (markers or keywords["tools"]):
            keywords["tools"] = _named_tools()
        return keywords

    members = {
        "structural_tag_model": original.structural_tag_model,  # type: ignore[attr-defined]
        "supports_required_and_named": original.supports_required_and_named,  # type: ignore[attr-defined]
        "extract_tool_calls": extract_tool_calls,
        "extract_tool_calls_streaming": extract_tool_calls_streaming,
        "_options": options,
        "__module__": original.__module__,
    }
    return type(original.__name__, (adapter,), members)


def pytest_configure(config: Any) -> None:
    """Replace the classes, before tests import them."""
    from vllm.tool_parsers import ToolParserManager

    replaced: dict[type, type] = {}
    places = sorted(ToolParserManager.lazy_parsers.items())
    # All of them are imported before any is replaced, because some derive from others.
    originals = {name: getattr(importlib.import_module(module), cls) for name, (module, cls) in places}
    for name, (module, class_name) in places:
        try:
            format = toolwire.get_format(name).name
        except UnknownFormat:
            continue
        original = originals[name]
        if original not in replaced:
            replaced[original] = _swapped(original, format)
            setattr(sys.modules[module], class_name, replaced[original])
        ToolParserManager.tool_parsers[name] = replaced[original]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    """Record the outcome of each test."""
    report: Any = yield
    if call.when == "call" or report.outcome != "passed":
        outcome = f"x{report.outcome}" if hasattr(report, "wasxfail") else report.outcome
        if "XPASS(strict)" in str(report.longrepr):  # vLLM's own parser is expected to fail here
            outcome = "xpassed"
        if _outcomes.get(item.nodeid, "passed") == "passed":
            _outcomes[item.nodeid] = outcome
    return report


def pytest_sessionfinish() -> None:
    """Write the results."""
    lines = [
        f"{outcome}\t{'reached' if test in _reached else 'other'}\t{test}\n" for test, outcome in _outcomes.items()
    ]
    Path(os.environ["TOOLWIRE_RESULTS"]).write_text("".join(lines), "utf-8")
