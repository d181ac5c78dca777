"""Paths of endpoints: the name of a model stays inside its place."""

import pytest

from toolwire import ConfigurationError
from toolwire.client.endpoints import with_model


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gpt-5", "/model/gpt-5/converse"),
        ("../../keys?x=1#y", "/model/..%2F..%2Fkeys%3Fx%3D1%23y/converse"),
        ("a.b", "/model/a.b/converse"),
        ("...", "/model/.../converse"),
        ("%2e%2e", "/model/%252e%252e/converse"),
    ],
)
def test_a_name_is_one_part_of_a_path(model: str, path: str) -> None:
    assert with_model("/model/{model}/converse", model) == path


@pytest.mark.parametrize("model", [".", ".."])
def test_a_name_that_leads_to_another_path_is_refused(model: str) -> None:
    with pytest.raises(ConfigurationError, match="is a relative path, and not the name of a model"):
        with_model("/model/{model}/converse", model)
    assert with_model("/chat/completions", model) == "/chat/completions"
