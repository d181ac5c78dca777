"""Gemini's answers, whole and streamed: parts, signatures, and arguments that come in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.messages import (
    FinishReason,
    ReasoningPart,
)
from toolwire.providers.base import Json, object_of
from toolwire.providers.finish_reasons import read_reason
from toolwire.providers.gemini_parts import camel, read_usage, signature_part
from toolwire.providers.response_builder import Assembler
from toolwire.text.escape import replace_surrogates
from toolwire.text.json_text import json_text
from toolwire.text.limits import MAX_DEPTH


class Signer:
    """Puts signatures on the parts that they belong to."""

    def __init__(self) -> None:
        self._signature = ""

    def reasoning(self, part: ReasoningPart, *, told: bool = False) -> list[Json]:
        """What stands for reasoning; `told`: its text was written already."""
        made = self.left()
        if part.data is not None:
            made.append(part.data)
        elif part.text:
            said: Json = {"text": "" if told else part.text, "thought": True}
            made.append({**said, "thoughtSignature": part.signature} if part.signature else said)
        else:
            self._signature = part.signature
        return made

    def signed(self, part: Json) -> Json:
        """The part that follows."""
        made = {**part, "thoughtSignature": self._signature} if self._signature else part
        self._signature = ""
        return made

    def left(self) -> list[Json]:
        """A signature that nothing follows."""
        return [self.signed({"text": ""})] if self._signature else []


class StreamReader:
    """Reads a response, or those of one stream."""

    def __init__(self, kind: str, assembler: Assembler) -> None:
        self._kind = kind
        self._assembler = assembler
        self._thought: list[str] = []  # of which the end has not come
        self._pieces: _Pieces | None = None

    def answer(self, response: Mapping[str, Any], *, whole: bool = False) -> None:
        """One response; `whole`: every part of it is complete."""
        response = camel(response)
        assembler = self._assembler
        if error := response.get("error"):
            assembler.reason = FinishReason.ERROR
            said = error.get("message") if isinstance(error, Mapping) else None
            assembler.problem("provider_error", str(said or error))
            return
        if camel(response.get("promptFeedback")).get("blockReason"):
            assembler.reason = FinishReason.CONTENT_FILTER
        first = next((one for one in response.get("candidates") or () if not one.get("index")), None)
        if first is not None:
            candidate = camel(first)
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._part(part, camel(part), whole=whole)
            self._finish(candidate)
        read_usage(camel(response.get("usageMetadata")), assembler)

    def _part(self, raw: Mapping[str, Any], part: Json, *, whole: bool) -> None:
        assembler = self._assembler
        signature = str(part.get("thoughtSignature") or "")
        text = part.get("text")
        if isinstance(text, str) and part.get("thought"):
            self._thought.append(text)
            assembler.reasoning(text)
            if signature or whole:
                self._thought_over(signature)
            return
        self._thought_over()
        call = part.get("functionCall")
        if signature and (isinstance(text, str) or isinstance(call, Mapping)):
            assembler.reasoned(signature_part(signature, text))
        if isinstance(call, Mapping):
            self._call(camel(call))
        elif isinstance(text, str):
            assembler.text(text)
        elif raw.keys() - {"thoughtSignature"}:
            assembler.passed(raw)

    def _thought_over(self, signature: str = "") -> None:
        if self._thought:
            text = replace_surrogates("".join(self._thought))
            self._assembler.reasoned(ReasoningPart(text, signature, self._kind if signature else ""))
            self._thought.clear()

    def _call(self, call: Json) -> None:
        """A whole call, or one piece of a call that comes in pieces."""
        assembler = self._assembler
        goes_on, given = bool(call.get("willContinue")), call.get("partialArgs")
        pieces = self._pieces
        if call.get("name") and pieces is not None:
            self._pieces = None
            pieces.end(assembler)
            pieces = None
        if pieces is None:
            if not goes_on and not given:
                assembler.call(call.get("name"), call.get("args"), call.get("id"))
                return
            self._pieces = pieces = _Pieces(object_of(call.get("args")))
            assembler.begin(pieces, call.get("name"), call.get("id"))
            assembler.arguments(pieces, "{")  # so that a call whose end never comes is no complete one
        else:
            pieces.value |= object_of(call.get("args"))
        if not goes_on:
            self._pieces = None
        pieces.add(given or ())
        if not goes_on:
            pieces.end(assembler)

    def _finish(self, candidate: Json) -> None:
        word = candidate.get("finishReason")
        reason = read_reason(self._kind, word)
        if reason is None:
            return
        assembler = self._assembler
        assembler.reason = reason
        if word == "MALFORMED_FUNCTION_CALL" or (word == "UNEXPECTED_TOOL_CALL" and not assembler.calls):
            said = str(candidate.get("finishMessage") or "")
            assembler.problem("malformed", f"the model's call could not be read by its provider: {word}", said)


class _Pieces:
    """The arguments of a call that come in pieces, each with the path of its place."""

    def __init__(self, value: Json) -> None:
        self.value = value
        self._text: dict[str, list[str]] = {}  # by the path of a text that goes on
        self._broken = False

    def add(self, pieces: Iterable[Mapping[str, Any]]) -> None:
        """More of them."""
        self._broken, broken = True, self._broken
        for piece in map(camel, pieces):
            path = str(piece["jsonPath"])
            kind = next((kind for kind in ("stringValue", "numberValue", "boolValue") if kind in piece), "")
            if kind == "stringValue":
                begun = self._text.setdefault(path, [])
                begun.append(str(piece[kind]))
                if piece.get("willContinue"):
                    if len(begun) == 1:
                        _put(self.value, path, begun[0])
                    continue
                _put(self.value, path, "".join(self._text.pop(path)))
            elif kind or "nullValue" in piece:
                _put(self.value, path, piece[kind] if kind else None)
        self._broken = broken

    def end(self, assembler: Assembler) -> None:
        """There are no more."""
        if not self._broken and not self._text:
            assembler.arguments(self, json_text(self.value)[1:])
        assembler.end(self)


_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\[(['"])(.*?)\3\]""")


def _put(root: Json, path: str, value: Any) -> None:
    """Put a value where a JSON path says.

    Raises:
        ValueError: there is no such place.
    """
    steps: list[str | int] = []
    pos = 1
    while path.startswith("$") and (match := _STEP.match(path, pos)):
        steps.append(int(match[2]) if match[2] else match[1] or match[4] or "")
        pos = match.end()
    if not steps or pos != len(path) or len(steps) > MAX_DEPTH:
        raise ValueError(f"{path!r:.80} is no path")
    node: Any = root
    for at, step in enumerate(steps, 1):
        last = at == len(steps)
        fresh: Any = value if last else [] if isinstance(steps[at], int) else {}
        if isinstance(step, str) and isinstance(node, dict):
            node[step] = fresh if last else node.get(step, fresh)
        elif isinstance(step, int) and isinstance(node, list) and step <= len(node):
            node[step:] = [fresh if last else node[step] if step < len(node) else fresh, *node[step + 1 :]]
        else:
            raise ValueError(f"{path!r:.80} leads nowhere")
        node = node[step]
