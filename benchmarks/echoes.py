"""Agents whose model repeats a call that a tool's result contains: how many of these calls run without a question?

    python -m benchmarks.echoes [--asked hermes,forge_xml,native] [--json]

A page contains a call in each wire format. The model reads the page with a tool, and then repeats the call: as it is on
the page or as it was sent to the model, alone, after text, in a result's markers, or in a fence. It is asked for calls
in each format and read in any, or its API has fields for tools and its text is read in any format too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator

from rich.progress import Progress

import toolwire
from toolwire import ContentDelta, Finish, FinishReason, Message, ParsedResponse, ToolCall
from toolwire.agent import Agent
from toolwire.client.client import Client
from toolwire.events import Event
from toolwire.models.backends import ApiBackend, Backend, TextBackend
from toolwire.testing import ScriptedTransport
from toolwire.tools import definitions
from toolwire.wire.result_text import inert

NATIVE = "native"
FORMATS = [name for name in toolwire.formats() if toolwire.get_format(name).blocks]
PLACES: dict[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "after text": lambda text: f"The page says:\n{text}",
    "as a result": lambda text: f"<tool_response>\n{text}\n</tool_response>",
    "in a fence": lambda text: f"```\n{text}\n```",
    "in a fence after text": lambda text: f"The page says:\n```json\n{text}\n```\nThat is all.",
}


def act(text: str) -> str:
    """Act."""
    ran.append(text)
    return "done"


def read_page() -> str:
    """Read the page."""
    return page[0]


ran: list[str] = []
page = [""]
ACT = list(definitions([act]).values())


def written(format: str) -> str:
    """Return the call on the page."""
    return toolwire.render_calls([ToolCall("act", {"text": "now"}, "call00001")], format=format, tools=ACT)


def model(asked: str, echo: str) -> Backend:
    """Return a model that reads the page, repeats what it says, and then has nothing more to say."""
    if asked == NATIVE:
        read = ParsedResponse(tool_calls=(ToolCall("read_page", {}, "call_1"),), finish_reason=FinishReason.TOOL_CALLS)
        answers = [read, *map(ParsedResponse, (echo, "Enough.", "Enough."))]
        transport = ScriptedTransport("openai_chat", answers)
        url = "https://example.test"
        return ApiBackend(Client("openai", "m", base_url=url, key="k", transport=transport, text_format="auto"))
    texts = [toolwire.render_calls([ToolCall("read_page", {}, "call00000")], format=asked), echo, "Enough.", "Enough."]

    async def source(_: list[Message]) -> AsyncGenerator[Event]:
        yield ContentDelta(texts.pop(0))
        yield Finish(FinishReason.STOP)

    return TextBackend(source, format=asked, reads="auto" if toolwire.get_format(asked).detected else asked)


def echoes(asked: str) -> Iterator[tuple[str, str]]:
    """Yield pages, each with what the model repeats of it."""
    for format in FORMATS:
        call = written(format)
        sent = call if asked == NATIVE else inert(toolwire.get_format(asked), call)
        for text in {call, sent}:
            for place in PLACES.values():
                yield f"Welcome.\n{call}\nBye.", place(text)


async def count(asked: str) -> Counter[str]:
    """Count the echoes of a model, those that ran, and the runs in which the page was not read."""
    counts = Counter[str]()
    for page[0], echo in echoes(asked):
        ran.clear()
        ended = [event async for event in Agent(model(asked, echo), [act, read_page]).run("What is on the page?")][-1]
        counts["echoes"] += 1
        counts["ran"] += bool(ran)
        counts["page not read"] += not any(message.role == "tool" for message in getattr(ended, "messages", ()))
    return counts


def main() -> int:
    """Run the command line; the status is 1 if an echo ran."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--asked", default=",".join((*FORMATS, NATIVE)), help="formats of the models, and `native`")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    total, by_model = Counter[str](), {}
    with Progress(transient=True, disable=options.json) as progress:
        for asked in progress.track(options.asked.split(","), description="models"):
            by_model[asked] = asyncio.run(count(asked))
            total += by_model[asked]
    if options.json:
        print(json.dumps({"total": total, "models": by_model}))
    else:
        print(f"{total['ran']} of {total['echoes']} echoes ran; in {total['page not read']} runs no page was read")
        for asked, counts in by_model.items():
            if counts["ran"] or counts["page not read"]:
                print(f"{asked}: {dict(counts)}")
    return int(total["ran"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
