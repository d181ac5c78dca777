"""A scripted model of text that calls a tool for two cities at once, and answers when it has read both results."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

from toolwire.models import Client
from toolwire.testing import ScriptedTransport

PIECES = (
    'Let me look. <tool_call>{"name": "get_weather", "argu',
    'ments": {"city": "Pa',
    'ris"}}</tool_call>\n<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}',
    "</tool_call>",
)
ANSWER = "It rains in both."


def get_weather(city: str) -> str:
    """Return the weather in a city.

    Args:
        city: the name of the city.
    """
    return f"rain in {city}"


class WeatherModel:
    """The model.

    Args:
        waits: whether it waits after the name of the first call until `named` is set: a test that sees the name before
            the arguments sets it.
        end: the pieces of its answer to the results.

    Attributes:
        prompts: the messages of all requests so far.
        named: see `waits`.
    """

    def __init__(self, *, waits: bool = False, end: tuple[str, ...] = (ANSWER,)) -> None:
        self.prompts: list[list[dict[str, str]]] = []
        self.named = threading.Event()
        self._waits = waits
        self._end = end

    def __call__(self, messages: list[dict[str, str]]) -> Iterator[str]:
        self.prompts.append(messages)
        last = messages[-1]["content"]
        if "rain in Paris" in last and "rain in Rome" in last:
            yield from self._end
            return
        yield PIECES[0]
        if self._waits and not self.named.wait(60):
            raise TimeoutError("the name of the call did not arrive before its arguments")
        yield from PIECES[1:]


def fail(messages: Any) -> str:
    raise ValueError("out of memory")


def fail_in_the_middle(messages: Any) -> Iterator[str]:
    yield "It is "
    raise ValueError("out of memory")


def cut_off(messages: Any) -> Iterator[str]:
    """Answer with a call that ends inside its arguments, as at the maximum number of tokens."""
    yield '<tool_call>{"name": "get_weather", "arguments": {"city": "Par'


def invented_turns(messages: Any) -> Iterator[str]:
    """Answer with a call, a result that the model makes up, and two calls that follow from it."""
    first, *others = (f'<tool_call>{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}' for city in "PQR")
    yield f"{first}</tool_call>\nObserva"
    yield f"tion: rain\n{'</tool_call>'.join(others)}"
    yield "</tool_call>"


def cut_off_behind_invented_turns(messages: Any) -> Iterator[str]:
    """Answer with a call, a result that the model makes up, a call that follows from it and one that is cut off."""
    yield from invented_turns(messages)
    yield from cut_off(messages)


class EndlessModel:
    """A model that writes until it is stopped.

    Attributes:
        stopped: set when it has been stopped.
    """

    def __init__(self) -> None:
        self.stopped = threading.Event()

    async def __call__(self, messages: Any) -> AsyncIterator[str]:
        try:
            while True:
                yield "more "
                await asyncio.sleep(0)
        finally:
            self.stopped.set()


def native_model(*answers: Any) -> Client:
    """Return a client of a server with fields for tools, which gives these answers."""
    transport = ScriptedTransport("openai_compatible", answers)
    return Client("openai_compatible", "m", base_url="http://127.0.0.1:9", transport=transport)


def json_in_a_fence(messages: list[dict[str, str]]) -> Iterator[str]:
    """Answer with the JSON that a schema in the prompt asks for, in a code fence, as small models do."""
    assert '"population"' in messages[0]["content"]
    yield "``"
    yield '`json\n{"city": "Paris", '
    yield '"population": 2100000}\n'
    yield "```\n"
