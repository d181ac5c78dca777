"""Models in this process for tests of evaluations: they answer by a function, and count how often they are asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from toolwire.errors import ProviderError
from toolwire.events import Finish
from toolwire.messages import FinishReason

PARIS = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
TOOL = {
    "name": "get_weather",
    "description": "Return the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class CountedModel:
    """A model whose answer to a question is a text, an exception, or None for a model that never finishes."""

    def __init__(self, answer: Callable[[str], str | Exception | None]) -> None:
        self.answer = answer
        self.prompts: list[list[Mapping[str, str]]] = []

    def stream(
        self, messages: Sequence[Mapping[str, str]], *, max_tokens: int = 9, temperature: float = 0.0, grammar: str = ""
    ) -> Iterator[str | Finish]:
        self.prompts.append(list(messages))
        answer = self.answer(messages[-1]["content"])
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            yield "Let me"
            with contextlib.suppress(TimeoutError):
                asyncio.run(asyncio.wait_for(asyncio.Event().wait(), 5))
            return
        yield answer
        yield Finish(FinishReason.STOP)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> CountedModel:
    """A model in place of those on this machine."""
    model = CountedModel(lambda question: PARIS)
    monkeypatch.setattr("toolwire.evaluation.inspect_model.load_shared", lambda name: model)
    return model


def refused(_: str) -> Exception:
    return ProviderError("the server is down")
