"""The requests that a comparison of two endpoints sends: a small set of its own, or a file of logged bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from toolwire.evaluation.suite import BrokenRow, duplicates, read_lines, read_row
from toolwire.messages import Message
from toolwire.probes.probe_requests import closed_tool
from toolwire.providers.api_registry import get_api
from toolwire.providers.request import ChatRequest
from toolwire.tools import ToolDefinition

BODIES: Final = "openai_chat"
"""The API whose requests the lines of a file are."""


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    """A request that both endpoints get.

    Attributes:
        id: its name in reports.
        chat: the request.
    """

    id: str
    chat: ChatRequest


def read_requests(path: Path) -> tuple[list[ComparedRequest], list[BrokenRow]]:
    """Return the requests in a file of JSON lines, each the body of a request of Chat Completions.

    The model's name and `stream` of a body do not count. A line that is not a request with tools is reported and left
    out.

    Raises:
        ConfigurationError: the file cannot be read, or has no request.
    """
    return read_lines(path, _request, noun="request")


def _request(line: bytes, number: int) -> ComparedRequest:
    """Return the request in a line.

    Raises:
        ValueError, DefinitionError: it is not one.
    """
    chat = get_api(BODIES).decode_request(read_row(line))
    if not chat.messages:
        raise ValueError("the request has no messages")
    if not chat.tools:
        raise ValueError("the request offers no tools")
    names = [tool.name for tool in chat.tools]
    if repeated := duplicates(names):
        raise ValueError(f"two tools have the name {repeated[0]!r:.100}")
    for name in chat.tool_choice.names:
        if name not in names:
            raise ValueError(f"tool_choice: there is no tool {name!r:.100}; there are {', '.join(names)}")
    return ComparedRequest(f"line {number}", replace(chat, model="", stream=False))


def own_requests() -> list[ComparedRequest]:
    """Return the set that is sent without a file: two thirds ask for something that an offered tool does."""
    numbered = enumerate(_own_chats(), 1)
    return [ComparedRequest(f"request {number}", chat) for number, chat in numbered]


def _own_chats() -> Iterator[ChatRequest]:
    for tools, texts in _SET:
        for text in texts:
            yield ChatRequest.of((Message("user", text),), {"tools": tools})


_TEXT: Final = {"type": "string"}
_DATE: Final = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$", "description": "Such as 2026-05-31."}
_COUNT: Final = {"type": "integer", "minimum": 1, "maximum": 20}
_TRAVEL: Final = (
    closed_tool("get_weather", "Return the forecast for a city on a day.", {"city": _TEXT, "date": _DATE}),
    closed_tool(
        "find_trains",
        "Return the trains between two stations on a day.",
        {
            "from": _TEXT,
            "to": _TEXT,
            "date": _DATE,
            "travellers": _COUNT,
            "class": {"type": "string", "enum": ["first", "second"]},
        },
        optional=("travellers", "class"),
    ),
    closed_tool(
        "convert_money",
        "Convert an amount of money.",
        {"amount": {"type": "number"}, "source": _TEXT, "target": _TEXT},
    ),
)
_OFFICE: Final = (
    closed_tool(
        "create_event",
        "Enter an event in the calendar.",
        {
            "title": _TEXT,
            "date": _DATE,
            "hour": {"type": "integer", "minimum": 0, "maximum": 23},
            "guests": {"type": "array", "items": {"type": "string", "format": "email"}},
        },
        optional=("guests",),
    ),
    closed_tool(
        "send_message",
        "Send a message to a colleague.",
        {"to": _TEXT, "text": _TEXT, "urgent": {"type": "boolean"}},
        optional=("urgent",),
    ),
    closed_tool(
        "search_files",
        "Search the files of the company.",
        {"query": _TEXT, "limit": _COUNT},
        optional=("limit",),
    ),
)
_SHOP: Final = (
    closed_tool(
        "place_order",
        "Order products.",
        {
            "items": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"product": _TEXT, "count": _COUNT},
                    "required": ["product", "count"],
                    "additionalProperties": False,
                },
            },
            "address": {
                "type": "object",
                "properties": {"street": _TEXT, "city": _TEXT, "postcode": _TEXT},
                "required": ["street", "city"],
                "additionalProperties": False,
            },
        },
    ),
    closed_tool(
        "order_status",
        "Return where an order is.",
        {"order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}},
    ),
    closed_tool(
        "open_return",
        "Send an order back.",
        {
            "order": _TEXT,
            "reason": {"type": "string", "enum": ["broken", "wrong product", "too late", "other"]},
            "comment": {"anyOf": [_TEXT, {"type": "null"}]},
        },
        optional=("comment",),
    ),
)
_SET: Final[tuple[tuple[tuple[ToolDefinition, ...], tuple[str, ...]], ...]] = (
    (
        _TRAVEL,
        (
            "What will the weather be like in Oslo on 3 March 2027?",
            "Will it rain in Lisbon and in Porto on 2027-03-04? Look both up.",
            "Show me trains from Lyon to Marseille on 12 June 2027 for four people in first class.",
            "I want to go from Zürich to Milano on 2027-07-01 by train. Which ones are there?",
            "How much is 250.50 US dollars in euros?",
            "Wie wird das Wetter in München am 2027-01-15?",
            "京都の2027年4月2日の天気を調べてください。",
            "Trains from King's Cross to York on 2027-02-28, second class, please.",
            "Convert 1,000,000 yen to Swiss francs.",
            "Why is the sky blue?",
            "Which of your tools needs a date? Do not call any.",
            "Thank you, that was all.",
        ),
    ),
    (
        _OFFICE,
        (
            "Put a meeting called Budget 2028 in my calendar for 2027-09-14 at 3 pm.",
            "Invite ana@example.org and bo@example.org to lunch on 2 May 2027 at noon.",
            "Tell Priya that the build is green again.",
            'Send Tom this message, and mark it as urgent: He said "stop", then left.\nCall me.',
            "Find the five best files about the parental leave policy.",
            "Search our files for C:\\reports\\2026 and for résumé templates.",
            "Écris à Chloé que je serai en retard de dix minutes.",
            "Enter the dentist, 2027-11-03, 8 in the morning.",
            "What is a good title for a talk about gardening?",
            "Write a poem of four lines about Mondays.",
            "How many hours are there in three days?",
            "Is it polite to send an urgent message at night? Just your opinion.",
        ),
    ),
    (
        _SHOP,
        (
            "Order two kettles and one toaster for 5 High Street, Leeds, LS1 4AP.",
            "I need 12 candles sent to 8 rue des Lilas in Nantes.",
            "Where is my order AB-1234?",
            "Check the orders QX-0001 and QX-0002 for me.",
            "Order KL-7788 arrived broken. Send it back.",
            "Please return MN-4321, it came a week too late, and I no longer want it.",
            "¿Dónde está mi pedido ZZ-9090?",
            "One umbrella to Via Roma 1, Torino, and no other things.",
            "What do you think of umbrellas?",
            "My order has not arrived.",
            "Which reasons may a return have?",
            "Say hello in three languages.",
        ),
    ),
)
