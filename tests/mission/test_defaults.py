"""What holds where nobody says otherwise, as decided."""

import inspect

import pytest

from toolwire import Tier, ToolExecutor
from toolwire.agent import Budget
from toolwire.session import Session


@pytest.mark.mission("C34")
def test_five_minutes_to_answer() -> None:
    assert inspect.signature(ToolExecutor).parameters["confirm_timeout"].default == 300.0


@pytest.mark.mission("C32")
def test_twenty_rounds() -> None:
    assert Budget().rounds == 20


@pytest.mark.mission("C36")
def test_nothing_is_agreed_to_beforehand() -> None:
    session = Session()
    assert session.tier is Tier.CRAWL
    assert not session.agreed
