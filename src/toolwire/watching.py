"""Streaming into fields: the text of one argument while the model still writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from toolwire.events import ArgumentsDelta, CallStart, Event
from toolwire.jsontext import JsonScanner


class _Field(JsonScanner):
    """Follows the arguments' JSON text, and keeps what comes for one key."""

    __slots__ = ("came", "inside", "name", "tail")

    plain_strings = False

    def __init__(self, name: str) -> None:
        super().__init__(repair=False)
        self.name = name
        self.inside = False  # the value of the key is being read
        self.came: list[str] = []  # its text, decoded
        self.tail = ""  # what cannot be read without what follows

    def on_top_key(self, key: str) -> None:
        self.inside = key == self.name

    def on_colon(self) -> None:
        if self.inside and len(self.stack) == 1:
            self.out = []  # what is no string is kept until it is whole

    def _add(self, text: str) -> None:
        super()._add(text)
        if self.inside and len(self.stack) == 1 and not self.in_key:
            self.came.append(json.loads(f'"{text}"'))

    def on_top_value(self) -> None:
        if self.inside:
            written = "".join(self.out).strip()
            if not written.startswith('"'):
                self.came.append(written)
            self.out = self.ready
            self.inside = False


def watch(events: Iterable[Event], argument: str, *, tool: str = "", deltas: bool = False) -> Iterator[str]:
    """The growing text of one argument, as far as it is known: what an editor shows while a file is being written.

    A string grows as it arrives, so an empty one yields nothing; any other value comes once, as JSON text, when it is
    whole. If several calls have the argument, the text begins anew with each.

    Args:
        events: of one message, from a `StreamParser` or an API's stream.
        argument: its name, at the top of the arguments.
        tool: only calls of this tool count; "" counts all.
        deltas: yield what is new each time; the text so far is copied for each yield otherwise.
    """
    fields: dict[int, _Field] = {}
    texts: dict[int, str] = {}
    for event in events:
        match event:
            case CallStart(index=index, name=name) if tool in ("", name):
                fields[index], texts[index] = _Field(argument), ""
            case ArgumentsDelta(index=index, text=text) if index in fields:
                field = fields[index]
                text = field.tail + text
                field.tail = text[field.scan(text, 0, False) :]
                field.ready.clear()
                if came := "".join(field.came):
                    field.came.clear()
                    if not deltas:
                        came = texts[index] = texts[index] + came
                    yield came
            case _:
                pass
