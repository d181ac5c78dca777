"""Translate a stream of one provider's API to another's while it arrives.

    curl -N https://api.openai.com/v1/chat/completions ... | python examples/translate_stream.py
    python examples/translate_stream.py --sample
    python examples/translate_stream.py --source gemini --target openai_chat < recorded.sse

It reads standard input and writes standard output, piece by piece. `--sample` translates a small answer instead.
Losses, such as a stream that broke off, are lines on standard error. `toolwire convert` does the same for requests,
responses and recorded streams.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator

from toolwire import Event, Notes, ParsedResponse, StreamDecoder, ToolCall, get_api, replay

SAMPLE = ParsedResponse("I look it up.", tool_calls=(ToolCall("get_weather", {"city": "Paris"}, "call_1"),))


def decode(pieces: Iterable[bytes], decoder: StreamDecoder) -> Iterator[Event]:
    """Yield the events of a stream as its bytes arrive, however they are split."""
    for piece in pieces:
        yield from decoder.feed(piece)
    yield from decoder.finish()


def standard_input() -> Iterator[bytes]:
    """Yield what arrives on standard input."""
    while piece := os.read(sys.stdin.fileno(), 65_536):
        yield piece


def main(source: str, target: str, *, model: str, sample: bool) -> None:
    """Write the translated stream to standard output."""
    pieces = get_api(source).encode_stream(replay(SAMPLE), model="sample") if sample else standard_input()
    decoder, notes = get_api(source).stream_decoder(), Notes()
    for piece in get_api(target).encode_stream(decode(pieces, decoder), model=model, source=decoder, notes=notes):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    print(*notes, sep="\n", end="\n" if notes else "", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Translate a stream between APIs.")
    parser.add_argument("--source", default="openai_chat")
    parser.add_argument("--target", default="anthropic_messages")
    parser.add_argument("--model", default="", help="another name for the model in the translated stream")
    parser.add_argument("--sample", action="store_true", help="translate a sample instead of standard input")
    arguments = parser.parse_args()
    main(arguments.source, arguments.target, model=arguments.model, sample=arguments.sample)
