"""Output of four small models that were asked for calls, compared with a reading by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

import toolwire

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("real.jsonl").read_text("utf-8").splitlines()
]
STRING = {"type": "string"}


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "parameters": schema}


TOOLS = [
    _tool("read_file", path=STRING),
    _tool("search_files", path=STRING, pattern=STRING),
    _tool("get_weather", city=STRING, unit={"type": "string", "enum": ["celsius", "fahrenheit"]}),
]


@pytest.mark.need(1, 2)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_real_output_reads_as_recorded(row: dict[str, Any]) -> None:
    for format in (row["format"], "auto"):
        for size in (len(row["text"]), 3):
            parser = toolwire.StreamParser(format=format, tools=TOOLS, fallback="whole_message")
            pieces = (row["text"][at : at + size] for at in range(0, len(row["text"]), size))
            read = toolwire.collect([*(event for piece in pieces for event in parser.feed(piece)), *parser.finish()])
            assert [{"name": call.name, "arguments": call.arguments} for call in read.tool_calls] == row["calls"]
            if format == row["format"]:
                assert [call.name for call in read.incomplete] == row["incomplete"]
                assert [problem.kind for problem in read.problems] == row["problems"]
