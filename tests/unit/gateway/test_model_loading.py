"""Errors in the tables of the gateway's models name their place."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolwire.agent.model_pool import Models
from toolwire.client.transport import HttpTransport
from toolwire.config.tables import Configuration, load_configuration
from toolwire.errors import ConfigurationError
from toolwire.gateway.model_loading import load_models

GOOD = {"provider": "openai_compatible", "model": "m", "url": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            'profile = "a"\ncalls_in_text = "hermess"',
            r"calls_in_text: unknown wire format 'hermess'; did you mean hermes",
        ),
        ('profile = "a"\nshares = { a = 1 }', "a model has a profile or shares, not both"),
    ],
)
def test_a_wrong_value_is_reported_with_its_line(line: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "g.toml"
    file.write_text(f'[profiles.a]\nmodel = "m"\n\n[gateway.models.x]\n{line}\n')
    with pytest.raises(ConfigurationError, match=rf"g\.toml:\d: gateway\.models\.x.*{message}"):
        load_configuration(file)


@pytest.mark.parametrize("value", ["none", "auto", "hermes"])
def test_formats_of_calls_in_text_are_known(value: str) -> None:
    table = {"profiles": {"a": GOOD}, "gateway": {"models": {"a": {"calls_in_text": value}}}}
    assert Configuration.model_validate(table).gateway.models["a"].calls_in_text == value


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"provider": "vllm"}, "^profiles.bad: the profile names no model"),
        ({**GOOD, "constrain": "auto"}, "^profiles.bad: constrain needs"),
        ({**GOOD, "url": "localhost:8000"}, "^profiles.bad: base_url must begin with"),
    ],
)
def test_a_profile_that_cannot_be_opened_is_named_beside_others(bad: dict[str, Any], message: str) -> None:
    async def load(**profiles: dict[str, Any]) -> None:
        async with Models(transport=HttpTransport()) as models:
            await load_models(Configuration.model_validate({"profiles": profiles}), models)

    with pytest.raises(ConfigurationError, match=message):
        asyncio.run(load(good=GOOD, bad=bad))
    with pytest.raises(ConfigurationError, match=message.replace("profiles.bad: ", "")):
        asyncio.run(load(bad=bad))
