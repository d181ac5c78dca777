"""The arguments that `inspect eval` passes to a model of Toolwire."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.errors import ConfigurationError
from toolwire.evaluation.inspect_model import InspectModel


def test_arguments_choose_the_way_in_which_a_model_is_asked() -> None:
    choice = InspectModel("m", format="hermes", constrain="auto", url="http://127.0.0.1:1", timeout="5").asked.choice
    assert (choice.format, choice.constrain, choice.url) == ("hermes", "auto", "http://127.0.0.1:1")


def test_no_grammar_is_named_as_in_the_command() -> None:
    assert InspectModel("m.gguf", constrain="none").asked.choice.constrain == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"formt": "hermes"}, "no argument 'formt'; did you mean format"),
        ({"x": 1}, "no argument 'x'; it has format, constrain, prompt, api, url, key_env, timeout"),
        ({"constrain": "yes"}, "constrain is none, auto or required, not 'yes'"),
        ({"timeout": "abc"}, "timeout is a number of seconds, not 'abc'"),
        ({"timeout": "nan"}, "timeout is a number of seconds, not 'nan'"),
        ({"timeout": -1}, "timeout is a number of seconds, not -1"),
    ],
    ids=["misspelt", "unknown", "constrain", "timeout", "nan", "negative"],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        InspectModel("m.gguf", **arguments)
