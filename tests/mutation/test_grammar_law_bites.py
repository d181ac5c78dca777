"""Law L7 fails for broken grammars: each test breaks one thing and expects one part of the law to fail.

The parts of the law are checked with llguidance, over all formats in which they mean something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.property.nodes import walk

import toolwire
from toolwire.grammars import element_rules, format_rules, free_text, value_rules
from toolwire.grammars.algebra import choice
from toolwire.grammars.message_rules import MessageRules
from toolwire.grammars.prose import prose
from toolwire.grammars.text_match import match_text
from toolwire.grammars.value_types import NumberValue, StringValue
from toolwire.messages import ToolCall
from toolwire.wire import syntax
from toolwire.wire.formats import FORMATS
from toolwire.wire.syntax import WireFormat

pytest.importorskip("llguidance", exc_type=ImportError)

Check = Callable[[], None]
Patch = Callable[[pytest.MonkeyPatch], None]
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOL = toolwire.ToolDefinition("get_weather", parameters=PARAMETERS)
LAX = toolwire.ToolDefinition(
    "get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "string"}}}
)
MINIMAL = ToolCall("get_weather", {"city": "Paris"})
WITH_CALLS = [wire for wire in FORMATS if wire.blocks]


def _allows(wire: WireFormat, text: str, tool_choice: str) -> bool:
    return match_text(toolwire.grammar([TOOL], format=wire, tool_choice=tool_choice), text).complete


def _written(wire: WireFormat, call: ToolCall, tool: toolwire.ToolDefinition = TOOL) -> str:
    return toolwire.render_calls([call], format=wire, tools=[tool]).removeprefix(wire.primed)


def _formats_with(*kinds: type) -> Iterator[WireFormat]:
    return (wire for wire in WITH_CALLS if any(isinstance(node, kinds) for node in walk(wire.blocks[:1])))


# -- the parts of the law --------------------------------------------------------------------------------------------


def rendered_calls_are_accepted() -> None:
    for wire in WITH_CALLS:
        for call in (MINIMAL, ToolCall("get_weather", {"city": "Paris", "days": 3})):
            assert _allows(wire, _written(wire, call), "required"), wire.name


def wrong_types_are_rejected() -> None:
    wrong = ToolCall("get_weather", {"city": "Paris", "days": "three"})
    for wire in _formats_with(syntax.JsonCall, syntax.Args):
        assert not _allows(wire, _written(wire, wrong, LAX), "required"), wire.name


def text_contains_no_call() -> None:
    for wire in WITH_CALLS:
        if wire.markers and wire.at == "anywhere" and not wire.primed:
            assert _allows(wire, "Let me see.", "none"), wire.name
            assert not _allows(wire, f"Let me see.\n{_written(wire, MINIMAL)}", "none"), wire.name


def calls_are_required() -> None:
    for wire in WITH_CALLS:
        assert not _allows(wire, "Let me see.", "required"), wire.name


# -- what can be broken ----------------------------------------------------------------------------------------------


def optional_arguments_are_required(patch: pytest.MonkeyPatch) -> None:
    for module in (value_rules, format_rules, element_rules):
        patch.setattr(module, "optional", lambda part: part)


def numbers_may_be_text(patch: pytest.MonkeyPatch) -> None:
    value = value_rules.ValueRules.value

    def broken(self: Any, values: Any) -> Any:
        written = value(self, values)
        return choice([written, self.text(StringValue())]) if isinstance(values, NumberValue) else written

    patch.setattr(value_rules.ValueRules, "value", broken)


def text_may_contain_markers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(free_text, "prose", lambda markers, banned=(): prose((), ()))


def text_is_always_allowed(patch: pytest.MonkeyPatch) -> None:
    root: Any = MessageRules.root
    patch.setattr(MessageRules, "root", property(lambda self: choice([root.fget(self), self.free_text])))


BREAKAGES = [
    pytest.param(optional_arguments_are_required, rendered_calls_are_accepted, id="optional-arguments"),
    pytest.param(numbers_may_be_text, wrong_types_are_rejected, id="types-of-arguments"),
    pytest.param(text_may_contain_markers, text_contains_no_call, id="markers-in-text"),
    pytest.param(text_is_always_allowed, calls_are_required, id="required-calls"),
]
CHECKS = (rendered_calls_are_accepted, wrong_types_are_rejected, text_contains_no_call, calls_are_required)


@pytest.mark.parametrize("check", [pytest.param(check, id=check.__name__) for check in CHECKS])
def test_the_law_holds_for_unbroken_grammars(check: Check) -> None:
    check()


@pytest.mark.parametrize(("broken", "check"), BREAKAGES)
def test_the_law_fails_for_broken_grammars(broken: Patch, check: Check) -> None:
    with pytest.MonkeyPatch.context() as patch:
        broken(patch)
        with pytest.raises(AssertionError):
            check()
    check()
