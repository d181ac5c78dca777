"""Describe a wire format of your own, then parse, stream and write calls in it.

    python examples/own_format.py

A description is one value. Every public function accepts it in place of the name of a built-in format; an entry point
of the group `toolwire.formats` makes it available by name.
"""

import toolwire
from toolwire import StreamParser, ToolCall, tool
from toolwire.wire import Args, Call, Lit, Name, WireFormat

FORMAT = WireFormat(
    name="arrow",
    title="@@call NAME => {..} @@end",
    models="a model that you fine-tuned",
    source="your own training data",
    blocks=(
        (
            Call((Lit("@@call", after=" "), Name(), Lit("=>", before=" ", after=" "), Args())),
            Lit("@@end", before=" ", need="forgiven"),
        ),
    ),
    result=("@@result ", " @@end"),
)


@tool
def get_weather(city: str, days: int = 1) -> str:
    """Return the weather forecast for a city."""
    return f"{city}: rain for {days} days"


def main() -> None:
    """Show the prompt for a model, and parse what the model may answer."""
    print(toolwire.render_calls([ToolCall("get_weather", {"city": "Paris"})], format=FORMAT, tools=[get_weather]))

    answer = 'I look it up. @@call get_weather => {"city": "Paris", "days": "3"} @@end'
    parser = StreamParser(format=FORMAT, tools=[get_weather])
    events = [event for character in answer for event in parser.feed(character)]
    response = toolwire.collect([*events, *parser.finish()])
    print(repr(response.content), response.tool_calls[0].arguments, response.tool_calls[0].repairs)

    truncated = toolwire.parse(answer[:50], format=FORMAT, tools=[get_weather])
    print(truncated.tool_calls, truncated.problems[0].kind)


if __name__ == "__main__":
    main()
