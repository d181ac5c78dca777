"""Sentences that explain tools in a prompt, as data: which ones a model follows best is measured, not guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolwire._surface import check_type
from toolwire.errors import ConfigurationError
from toolwire.text.suggest import closest, did_you_mean


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """The sentences around the definitions of tools and the example of a call.

    Attributes:
        name: its name, for options and reports.
        before_tools: text before the definitions.
        before_example: text between the definitions and the example.
        after_example: text behind the example, such as rules; "" for none.
    """

    name: str
    before_tools: str
    before_example: str
    after_example: str = ""

    def __post_init__(self) -> None:
        """Check the types."""
        for attribute in ("name", "before_tools", "before_example", "after_example"):
            check_type(attribute, getattr(self, attribute), str, "text")


BRIEF: Final = PromptStyle(
    "brief",
    before_tools="You can call these tools:",
    before_example="To call a tool, write one call in this form and then stop; its result comes in the next message. "
    "A call looks like this:",
)
# Small models write a result of their own in place of a call, and one call in place of several, unless rules forbid it.
RULES: Final = PromptStyle(
    "rules",
    before_tools="You can call these tools:",
    before_example="To call a tool, write:",
    after_example="Rules:\n"
    "1. If a tool fits the question, reply only with calls in this form. Do not answer the question yourself, and do "
    "not invent a result.\n"
    "2. If the question asks for several things, make one call for each, one after another.\n"
    "3. If no tool fits the question, reply in plain words and make no call.",
)
# A plain request makes small models call less often where no tool fits, and the smallest more often where one does.
FUNCTIONS: Final = PromptStyle(
    "functions",
    before_tools="# Tools\n\nTo help the user, you can call one or more of these functions:",
    before_example="Return each function call in this form:",
    after_example="If a function fits the request, return only function calls, one for each thing that is asked, and "
    "nothing else. If no function fits, answer in plain words.",
)
PROMPT_STYLES: Final = {style.name: style for style in (RULES, BRIEF, FUNCTIONS)}
"""The styles by their names; docs/explanation/effect.md says what models made of them."""
DEFAULT_STYLE: Final = RULES.name


def get_style(style: str | PromptStyle) -> PromptStyle:
    """Return a style by its name; a style is returned as it is.

    Raises:
        ConfigurationError: there is no such style; the message lists them.
    """
    check_type("style", style, (str, PromptStyle), "the name of a style, or a PromptStyle")
    if isinstance(style, PromptStyle):
        return style
    if style not in PROMPT_STYLES:
        suggestion = did_you_mean(closest(style, PROMPT_STYLES))
        raise ConfigurationError(
            f"there is no prompt style {style!r:.60}{suggestion}; there are {', '.join(PROMPT_STYLES)}"
        )
    return PROMPT_STYLES[style]
