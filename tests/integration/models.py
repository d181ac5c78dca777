"""A model behind an API on loopback that says what a test says, asked by commands in this process."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.integration.servers import Answer, Asked, serving

import toolwire
from toolwire import FinishReason, ParsedResponse, ToolCall

API = toolwire.get_api("openai_chat")


def calling(*calls: ToolCall, content: str = "", reasoning: str = "") -> ParsedResponse:
    return ParsedResponse(content, reasoning, tool_calls=calls, finish_reason=FinishReason.TOOL_CALLS)


@dataclass
class Scripted:
    """A server.

    Attributes:
        url: its address.
        asked: the bodies of requests.
    """

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def options(self) -> list[str]:
        """What leads a command there."""
        return ["--base-url", self.url, "--model", "m"]

    def said(self, at: int) -> list[str]:
        """The texts of the messages of a request."""
        return [str(message.get("content") or "") for message in self.asked[at]["messages"]]


@contextmanager
def scripted(*answers: ParsedResponse | Callable[[dict[str, Any]], ParsedResponse]) -> Iterator[Scripted]:
    """A server that answers so, one after the other; the last for ever."""
    made = Scripted()

    def answer(request: Asked) -> Answer:
        body = json.loads(request.body)
        made.asked.append(body)
        one = answers[min(len(made.asked), len(answers)) - 1]
        response = one if isinstance(one, ParsedResponse) else one(body)
        stream = b"".join(API.encode_stream(toolwire.replay(response), model="m"))
        return Answer(stream, content_type="text/event-stream")

    with serving(answer) as url:
        made.url = url
        yield made
