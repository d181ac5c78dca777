"""Time of Toolwire's plug-ins inside vLLM and SGLang, beside the engines' own parsers and one that reads nothing.

    python benchmarks/engines.py vllm --work /tmp/vllm-tests       # the folders of integrations/*/run_engine_*.py
    python benchmarks/engines.py sglang --work /tmp/sglang-rows

Each row is one call with a text of source code in one format. "streamed": the engine's own reader of deltas is fed four
characters, or one marker, at a time; the three parsers take turns, block by block. The parser that reads nothing writes
each piece as arguments of a call, because an engine's delta of content costs less than one of a call, whatever is read.
"whole": the engine's own reader of whole messages. Times are processor time, the least of several rounds. A parser that
does not find the call is marked with "!". ">": the engine's own was not tried, because it would take too long, did not
find the call at the size before, or needs a checkpoint. "=": the engine's own writes all arguments in at most three
deltas, so it does not stream them, and costs less for it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
STAND_INS = ROOT / "integrations" / "vllm" / "engine_tests"
STREAMED = (1_000, 10_000, 100_000)
WHOLE = (1_000, 10_000, 100_000, 1_000_000)
SOURCE = 'def f(a: str) -> None:\n    """Say "a" & <b>."""\n    print(f"{a!r}\\n")\n'
PARAMETERS = {"path": {"type": "string"}, "content": {"type": "string"}}
TOOL = {"name": "write_file", "parameters": {"type": "object", "properties": PARAMETERS, "required": [*PARAMETERS]}}
NOTHING, OWN, OURS = "nothing", "own", "toolwire"
BLOCK = 250
LONGEST = 6.0
"""Seconds for a text beyond which it is read once only, and an engine's own parser not at all."""

FAILURES = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError)
"""Errors that parsers of the engines raise, some of which are not written yet."""

Feed = Callable[[str], Any]
_MARKER = re.compile(r"<[|｜/]?[A-Za-z_][\w:|｜▁/-]*[|｜]?>|\[/?[A-Z_]{4,}\]")


def pieces(text: str) -> Iterator[str]:
    """Return a text as a model's tokens: markers, and four characters at a time between them."""
    position = 0
    for match in [*_MARKER.finditer(text), None]:
        end = match.start() if match else len(text)
        yield from (text[at : min(at + 4, end)] for at in range(position, end, 4))
        if match:
            yield match[0]
            position = match.end()


class Vllm:
    """The readers of vLLM's server."""

    def __init__(self, work: Path) -> None:
        import stub_engine
        import toolwire_vllm
        from vllm.entrypoints.generate.base.protocol import DeltaMessage, ExtractedToolCallInformation
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
        from vllm.parser.parser_manager import ParserManager
        from vllm.tool_parsers import ToolParserManager
        from vllm.tool_parsers.abstract_tool_parser import ToolParser

        stub_engine.pytest_configure(None)

        class Nothing(ToolParser):
            engine_based_streaming = True

            def extract_tool_calls(self, model_output: str, request: Any) -> Any:
                return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output)

            def extract_tool_calls_streaming(self, previous: str, current: str, delta: str, *rest: Any) -> Any:
                return DeltaMessage(tool_calls=[{"index": 0, "function": {"arguments": delta}}])

            def finish_streaming(self) -> None:
                return None

            def get_remaining_unstreamed_args(self) -> str:
                return ""

        self.names = [*ToolParserManager.lazy_parsers]
        toolwire_vllm.register()
        ToolParserManager.register_module("nothing", force=True, module=Nothing)
        self._manager, self._tokenizer = ParserManager, stub_engine.small_tokenizer()
        messages = [{"role": "user", "content": "Write it."}]
        tools = [{"type": "function", "function": TOOL}]
        self._request = ChatCompletionRequest(model="m", messages=messages, tools=tools, tool_choice="auto")
        self._ids: dict[str, list[int]] = {}

    def _parser(self, name: str) -> Any:
        cls = self._manager.get_parser(tool_parser_name=name, enable_auto_tools=True)
        return cls(self._tokenizer, self._request.tools)

    def prepare(self, text: str) -> None:
        """Encode the pieces of a text, which a server has already."""
        for piece in {*pieces(text)} - self._ids.keys():
            self._ids[piece] = self._tokenizer.encode(piece, add_special_tokens=False)

    def stream(self, name: str) -> tuple[Feed, Callable[[], Any]]:
        """Return a function that feeds a piece to a new parser, and one that ends the text."""
        parser, ids, request = self._parser(name), self._ids, self._request
        parser.set_prompt_token_ids([])

        def feed(piece: str) -> Any:
            return parser.parse_delta(piece, ids[piece], request, [], finished=False)

        def finish() -> Any:
            return parser.parse_delta("", [], request, [], finished=True)

        return feed, finish

    def written(self, delta: Any) -> str:
        """Return the arguments in a delta."""
        calls = delta.tool_calls if delta else ()
        return "".join(call.function.arguments or "" for call in calls if call.function)

    def whole(self, name: str, text: str) -> list[Any]:
        """Return the arguments of the calls in a whole text."""
        calls = self._parser(name).parse(text, self._request, enable_auto_tools=True)[2]
        return [call.arguments for call in calls or ()]


class Sglang:
    """The readers of SGLang's server."""

    def __init__(self, work: Path) -> None:
        import stub_engine

        stand_ins = ROOT / "integrations" / "sglang" / "stand_ins.txt"
        stub_engine.STAND_INS += tuple(stand_ins.read_text("utf-8").split())
        for name in ("sglang", "sglang.srt"):
            module = types.ModuleType(name)
            module.__path__ = [str(work.joinpath(*name.split(".")))]
            sys.modules[name] = module
        import toolwire_sglang
        from sglang.srt.entrypoints.openai.protocol import Tool
        from sglang.srt.function_call.base_format_detector import BaseFormatDetector
        from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
        from sglang.srt.function_call.function_call_parser import FunctionCallParser

        class Nothing(BaseFormatDetector):  # type: ignore[misc]
            def has_tool_call(self, text: str) -> bool:
                return False

            def detect_and_parse(self, text: str, tools: Any) -> Any:
                return StreamingParseResult(normal_text=text)

            def parse_streaming_increment(self, new_text: str, tools: Any) -> Any:
                return StreamingParseResult(calls=[ToolCallItem(tool_index=0, parameters=new_text)])

            def structure_info(self) -> Any:
                raise NotImplementedError

        self.names = [*FunctionCallParser.ToolCallParserEnum]
        toolwire_sglang.register()
        FunctionCallParser.ToolCallParserEnum["nothing"] = Nothing
        self._parser_class = FunctionCallParser
        self._tools = [Tool(type="function", function=TOOL)]

    def prepare(self, text: str) -> None:
        """Do nothing: these readers take text alone."""

    def stream(self, name: str) -> tuple[Feed, Callable[[], Any]]:
        """Return a function that feeds a piece to a new parser, and one that ends the text."""
        parser = self._parser_class(self._tools, name)
        return parser.parse_stream_chunk, parser.parse_stream_end

    def written(self, result: Any) -> str:
        """Return the arguments in what a piece gave."""
        return "".join(item.parameters or "" for item in result[1])

    def whole(self, name: str, text: str) -> list[Any]:
        """Return the arguments of the calls in a whole text."""
        return [call.parameters for call in self._parser_class(self._tools, name).parse_non_stream(text)[1]]


class Reading(NamedTuple):
    """How a parser read a text: seconds, whether it found the call, and whether it wrote the arguments in pieces."""

    seconds: float
    is_right: bool = True
    in_pieces: bool = True


def streamed(engine: Any, names: dict[str, str], text: str, rounds: int) -> dict[str, Reading]:
    """Return how each parser reads a text in pieces; the parsers take turns."""
    chunks = [*pieces(text)]
    best: dict[str, float] = {}
    for _ in range(rounds):
        sides = {side: engine.stream(name) for side, name in names.items()}
        times = dict.fromkeys(sides, 0.0)
        for at in range(0, len(chunks), BLOCK):
            block = chunks[at : at + BLOCK]
            for side, (feed, _) in sides.items():
                start = process_time()
                with suppress(*FAILURES):
                    for piece in block:
                        feed(piece)
                times[side] += process_time() - start
        for side, (_, finish) in sides.items():
            start = process_time()
            with suppress(*FAILURES):
                finish()
            seconds = times[side] + process_time() - start
            best[side] = min(seconds, best.get(side, seconds))
        if sum(times.values()) > LONGEST:
            break
    return {side: Reading(seconds, *_reads(engine, names[side], chunks)) for side, seconds in best.items()}


def _reads(engine: Any, name: str, chunks: list[str]) -> tuple[bool, bool]:
    """Return whether a parser finds the call, and writes its arguments in pieces; the time is not measured.

    Long texts are not checked.
    """
    if len(chunks) > 1_000:
        return True, True
    feed, finish = engine.stream(name)
    try:
        texts = [*(engine.written(feed(piece)) for piece in chunks), engine.written(finish())]
    except FAILURES:
        return False, False
    return _is_right(["".join(texts)]), sum(map(bool, texts)) > 3


def whole(engine: Any, names: dict[str, str], text: str, rounds: int) -> dict[str, Reading]:
    """Return how each parser reads a whole text; the parsers take turns."""
    best: dict[str, Reading] = {}
    for _ in range(rounds):
        for side, name in names.items():
            start = process_time()
            try:
                arguments = engine.whole(name, text)
            except FAILURES:
                arguments = []
            seconds = process_time() - start
            least = best[side].seconds if side in best else seconds
            best[side] = Reading(min(seconds, least), _is_right(arguments))
    return best


def _is_right(arguments: list[str]) -> bool:
    try:
        return len(arguments) == 1 and json.loads(arguments[0]).keys() == PARAMETERS.keys()
    except (ValueError, AttributeError):
        return False


def measure(engine: Any, formats: list[str], ways: list[str], largest: int) -> int:
    """Print the tables; return 1 if Toolwire is slower than the bars."""
    import toolwire
    from toolwire.errors import ToolwireError

    own_names: dict[str, str] = {}
    for name in engine.names:
        try:
            own_names.setdefault(toolwire.get_format(name).name, name)
        except ToolwireError:
            continue
    print(f"{'':9}{'format':16}{'size':>9}{'nothing':>10}{'own':>12}{'toolwire':>10}{'/nothing':>10}{'/own':>8}   (ms)")
    slower: list[str] = []
    count = 0
    for way, sizes, run in (("streamed", STREAMED, streamed), ("whole", WHOLE, whole)):
        for format, own in own_names.items() if way in ways else ():
            if formats and format not in formats:
                continue
            names = {NOTHING: "nothing", OWN: own, OURS: f"toolwire:{format}"}
            with suppress(*FAILURES):
                engine.stream(names.pop(OWN))
                names[OWN] = own
            for size in (size for size in sizes if size <= largest):
                arguments = {"path": "a.py", "content": (SOURCE * (size // len(SOURCE) + 1))[:size]}
                try:
                    text = toolwire.render_calls(
                        [toolwire.ToolCall("write_file", arguments)], format=format, tools=[TOOL]
                    )
                except ToolwireError:
                    break
                engine.prepare(text)
                times = run(engine, names, text, 9 if size == 1_000 else 3)
                row, is_slower = _row(times)
                count += 1
                print(f"{way:9}{format:16}{size:9}{row}", flush=True)
                if is_slower or (way == "streamed" and times[OURS].seconds > 1.3 * times[NOTHING].seconds):
                    slower.append(f"{way} {format} {size}")
                own_reading = times.get(OWN, Reading(0.0))
                if own_reading.seconds * 10 > LONGEST or not own_reading.is_right:  # the next text is ten times as long
                    del names[OWN]
    print(f"over the bars: {len(slower)} of {count} rows")
    return 1 if slower else 0


def _row(times: dict[str, Reading]) -> tuple[str, bool]:
    """Return a row of the table, and whether Toolwire is slower than the engine's own parser."""
    nothing, ours, own = times[NOTHING].seconds, times[OURS], times.get(OWN, Reading(0.0))
    mark = "!" if not own.is_right else " " if own.in_pieces else "="
    row = f"{nothing * 1000:10.2f}"
    row += f"{f'{own.seconds * 1000:.2f}' if own.seconds else '>':>11}{mark}"
    row += f"{ours.seconds * 1000:10.2f}{'' if ours.is_right else '!'}"
    row += f"{ours.seconds / nothing if nothing else 0:10.2f}{ours.seconds / own.seconds if own.seconds else 0:8.2f}"
    return row, bool(own.seconds) and own.is_right and ours.seconds > own.seconds


def main() -> int:
    """Prepare the environment of the engine, and measure in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["vllm", "sglang"])
    parser.add_argument("--work", type=Path, help="the folder of the engine's environment")
    parser.add_argument("--format", action="append", default=[], help="only this format")
    parser.add_argument("--way", action="append", choices=["streamed", "whole"], help="only this way")
    parser.add_argument("--largest", type=int, default=1_000_000, help="no longer texts")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    work = options.work or Path.home() / ".cache" / "toolwire" / f"{options.engine}-benchmark"
    if options.inside:
        logging.disable(logging.CRITICAL)
        engine = (Vllm if options.engine == "vllm" else Sglang)(work)
        return measure(engine, options.format, options.way or ["streamed", "whole"], options.largest)
    sys.path.insert(0, str(ROOT / "integrations" / options.engine))
    work.mkdir(parents=True, exist_ok=True)
    if options.engine == "vllm":
        import run_engine_tests

        python = run_engine_tests.environment(work)
        source = run_engine_tests.source(work, python, run_engine_tests.VERSION)
    else:
        import run_engine_rows

        python, source = run_engine_rows.prepare(work), work
    paths = [STAND_INS, ROOT / "integrations" / options.engine / "src", ROOT / "src", source]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    arguments = [__file__, *sys.argv[1:], "--inside", "--work", work]
    return subprocess.run([python, *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
