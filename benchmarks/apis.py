"""How fast streamed tool calls are decoded: every API, beside `json.loads` of the same events and the official clients.

    python benchmarks/apis.py              # a call of 1 MB, in pieces of 16 characters
    python benchmarks/apis.py --quick      # 100 KB
    python benchmarks/apis.py --check      # exit status 1 if a target is missed

Columns: the events of the stream; milliseconds of `json.loads` of each event (for binary frames: of each payload);
our decoder's time in times of that (target 5), from bytes to events; the same for the official client's own
accumulator where there is one, from parsed events to its message; and the time of twice the text in times of the
text's (target 2.3). Both take turns, and the least of five counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

import texts

import toolwire
from toolwire import ArgumentsDelta, CallEnd, CallStart, Event, Finish, FinishReason, ToolCall
from toolwire.providers.framing import AwsEventStream, JsonLines, ServerSentEvents
from toolwire.text.json_text import json_text

PIECE = 16
LIMIT, GROWTH = 5.0, 2.3
NAMES = (
    "openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse", "mistral", "cohere", "groq",
    "ollama",
)  # fmt: skip


def events(size: int) -> list[Event]:
    """A call with this much source code, as it would be streamed."""
    value = (texts.SOURCE * (size // len(texts.SOURCE) + 1))[:size]
    call = ToolCall("write_file", {"path": "a.py", "content": value}, "call00001")
    text = json_text(call.arguments)
    pieces = [ArgumentsDelta(0, text[at : at + PIECE]) for at in range(0, len(text), PIECE)]
    return [CallStart(0, call.name, call.id), *pieces, CallEnd(0, call, True), Finish(FinishReason.TOOL_CALLS)]


def frames(name: str, data: bytes) -> list[Any]:
    """The events of a stream, decoded."""
    framing = {"bedrock_converse": AwsEventStream, "ollama": JsonLines}.get(name, ServerSentEvents)()
    return [frame.value for frame in [*framing.feed(data), *framing.finish()]]


def least(work: Callable[[], object], rounds: int = 5) -> float:
    """Seconds of the fastest of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return best


def decode(name: str, data: bytes) -> None:
    """Read a whole stream as a network would give it."""
    decoder = toolwire.get_api(name).stream_decoder()
    calls = 0
    for at in range(0, len(data), 4096):
        for event in decoder.feed(data[at : at + 4096]):
            calls += isinstance(event, CallEnd) and event.complete
    for event in decoder.finish():
        calls += isinstance(event, CallEnd) and event.complete
    if calls != 1:
        raise SystemExit(f"{name}: the call was not read")


def official(name: str, values: list[Any]) -> Callable[[], object] | None:
    """The official client's accumulator over these events, if it has one and is installed."""
    try:
        if name in ("openai_chat", "groq"):
            from openai.lib.streaming.chat import ChatCompletionStreamState
            from openai.types.chat import ChatCompletionChunk

            def chat() -> None:
                state = ChatCompletionStreamState()
                for value in values:
                    state.handle_chunk(ChatCompletionChunk.construct(**value))

            return chat
        if name == "anthropic_messages":
            import pydantic
            from anthropic.lib.streaming._messages import accumulate_event
            from anthropic.types import RawMessageStreamEvent

            adapter: Any = pydantic.TypeAdapter(RawMessageStreamEvent)

            def messages() -> None:
                snapshot: Any = None
                buffers: dict[int, bytes] = {}
                for value in values:
                    event = adapter.validate_python(value)
                    snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)

            return messages
    except ImportError:
        pass
    return None


def measure(name: str, size: int) -> dict[str, float]:
    """One row."""
    api = toolwire.get_api(name)
    data = b"".join(api.encode_stream(events(size)))
    values = frames(name, data)
    written = [json.dumps(value) for value in values]

    def loads() -> None:
        for text in written:
            json.loads(text)

    reference, mine = float("inf"), float("inf")
    for _ in range(5):
        reference = min(reference, least(loads, 1))
        mine = min(mine, least(lambda: decode(name, data), 1))
    double = b"".join(api.encode_stream(events(2 * size)))
    row = {"events": len(values), "loads": reference * 1000, "toolwire": mine / reference}
    theirs = official(name, values)
    row["official"] = float("nan") if theirs is None else timed(theirs) / reference
    row["growth"] = least(lambda: decode(name, double), 3) / mine
    return row


def timed(work: Callable[[], object]) -> float:
    """Seconds of one run: some accumulators need minutes."""
    return least(work, 1)


def main(arguments: Iterable[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apis", nargs="*", metavar="API", help="only these")
    parser.add_argument("--quick", action="store_true", help="a tenth of the text")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a target is missed")
    options = parser.parse_args(None if arguments is None else list(arguments))
    size = 100_000 if options.quick else 1_000_000
    missed: list[str] = []
    print(f"{'API':20}{'events':>8}{'loads ms':>10}{'toolwire':>10}{'official':>10}{'growth':>8}")
    for name in options.apis or NAMES:
        row = measure(name, size)
        shown = "" if row["official"] != row["official"] else f"{row['official']:.1f}"
        print(
            f"{name:20}{row['events']:8.0f}{row['loads']:10.1f}{row['toolwire']:10.2f}{shown:>10}{row['growth']:8.2f}"
        )
        if row["toolwire"] > LIMIT:
            missed.append(f"{name}: {row['toolwire']:.2f} > {LIMIT}")
        if row["growth"] > GROWTH:
            missed.append(f"{name}: grows {row['growth']:.2f} > {GROWTH}")
    for line in missed:
        print("missed by", line)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
