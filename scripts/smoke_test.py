"""The first test of an installed package: the main job works without extras and imports nothing from a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import toolwire


@toolwire.tool
def get_weather(city: str, days: int = 1) -> str:
    """Return the weather forecast of a city."""
    return f"{city}: {days}"


CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}</tool_call>'


def main() -> None:
    """Parse, stream, render and translate a call; run the command line; raise AssertionError on any difference."""
    assert Path(sys.prefix) in Path(toolwire.__file__).parents, f"imported from {toolwire.__file__}"
    page = Path(toolwire.__file__).parent / "inspector" / "page"
    for name in ("index.html", "app.js", "style.css", "preact.mjs", "preact.LICENSE.txt", "htm.mjs", "htm.LICENSE.txt"):
        assert (page / name).stat().st_size, f"{name} of the inspector's page is empty"

    (call,) = toolwire.parse(CALL, tools=[get_weather]).tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "Paris", "days": 3})

    parser = toolwire.StreamParser(format="hermes", tools=[get_weather])
    events = [event for character in CALL for event in parser.feed(character)]
    assert toolwire.collect([*events, *parser.finish()]).tool_calls[0].arguments == call.arguments

    for name in toolwire.formats():
        toolwire.prompt([get_weather], format=name)
    request = toolwire.ChatRequest(
        messages=(toolwire.Message("user", (toolwire.TextPart("Rain?"),)),), tools=(get_weather.definition,)
    )
    for name in toolwire.apis():
        assert toolwire.get_api(name).encode_request(request, model="m", max_tokens=100)

    command = [sys.executable, "-m", "toolwire", "parse"]
    done = subprocess.run(command, input=CALL, capture_output=True, text=True, check=True, timeout=60)
    assert "get_weather" in done.stdout, done.stdout
    print(f"smoke test passed: {len(toolwire.formats())} formats, {len(toolwire.apis())} APIs")


if __name__ == "__main__":
    main()
