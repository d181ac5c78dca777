"""Anthropic Messages on Amazon Bedrock (InvokeModel) and on Google Vertex AI: the model is part of the URL.

Sources: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html and
https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from toolwire.events import Event
from toolwire.providers.anthropic_messages import AnthropicMessages
from toolwire.providers.context_overflow import anthropic_words
from toolwire.providers.failure_kinds import INTERNAL, TOO_LONG, FailureKind
from toolwire.providers.framing import AwsEventStream, Frame, ServerSentEvents, aws_event, frame_of, json_bytes
from toolwire.providers.message_parts import Json
from toolwire.providers.offered_tool import OfferedTool
from toolwire.providers.request import ChatRequest, Notes
from toolwire.providers.stream_codec import Head, StreamEnd

_VERSION = "anthropic_version"


class AnthropicVertex(AnthropicMessages):
    """The Messages API of Vertex AI, at the paths `rawPredict` and `streamRawPredict`.

    Attributes:
        version: the value of `anthropic_version` in a request that has none.
        url_members: members of the other bodies that the URL stands for.
    """

    version = "vertex-2023-10-16"
    url_members: frozenset[str] = frozenset(("model",))
    header_members = frozenset(("anthropic_beta",))
    takes_file_ids = False  # the clouds do not have Anthropic's store of files

    def write_request(self, request: ChatRequest, tools: Sequence[OfferedTool], notes: Notes) -> Json:
        """Return the body, without the members that the URL stands for."""
        body = super().write_request(request, tools, notes)
        rest = {name: value for name, value in body.items() if name not in self.url_members}
        return {_VERSION: self.version, **rest}

    def read_request(self, body: Json) -> ChatRequest:
        """Parse a body; a version other than the usual one is kept."""
        rest = {name: value for name, value in body.items() if name != _VERSION or value != self.version}
        return super().read_request(rest)


class AnthropicBedrock(AnthropicVertex):
    """The Messages API of Bedrock: streams are AWS event streams whose frames contain the events in base64."""

    version = "bedrock-2023-05-31"
    url_members = frozenset(("model", "stream"))
    header_members = frozenset()

    @staticmethod
    def framing() -> InvokeStream:
        """Return the framing of one stream."""
        return InvokeStream()

    def write_stream(self, events: Iterable[Event], head: Head, end: StreamEnd) -> Iterator[bytes]:
        """Yield the frames of a stream."""
        events_of = ServerSentEvents()
        for data in super().write_stream(events, head, end):
            if not data:  # nothing has arrived yet
                yield data
            for frame in events_of.feed(data):
                yield aws_event({"bytes": base64.b64encode(json_bytes(frame.value)).decode()}, "chunk")

    def write_error(self, message: str, kind: FailureKind = INTERNAL, head: Head | None = None) -> bytes:
        """Return the frame that reports a failure in the middle of a stream."""
        text = anthropic_words(message) if kind is TOO_LONG else message
        return aws_event({"message": text}, kind.aws, exception=True)


class InvokeStream:
    """The frames of InvokeModelWithResponseStream, each with one event of the model in base64."""

    def __init__(self) -> None:
        self.ended = False  # there is no end marker: the last event says why the answer ended
        self._frames = AwsEventStream()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the events that the next bytes complete."""
        return map(self._event, self._frames.feed(data))

    def wrap(self, value: dict[str, Any]) -> Frame:
        """Return the frame of an object: botocore puts the bytes of an event under the name of the frame."""
        return Frame(value) if "type" in value else self._event(self._frames.wrap(value))

    def finish(self) -> Iterator[Frame]:
        """End the bytes, and yield the rest."""
        return map(self._event, self._frames.finish())

    @staticmethod
    def _event(frame: Frame) -> Frame:
        """Return the event in a frame; an exception is an event of errors, as the model's own API has it."""
        value = frame.value
        if not isinstance(value, dict):
            return frame
        encoded = value.get("bytes")
        if encoded is None:
            message = value.get("message") or value.get("Message") or json.dumps(value)
            return Frame({"type": "error", "error": {"type": frame.event or "error", "message": message}}, "error")
        if isinstance(encoded, bytes):
            return frame_of(encoded)
        try:
            return frame_of(base64.b64decode(str(encoded), validate=True))
        except (binascii.Error, ValueError) as error:
            return Frame(None, frame.event, f"it is not base64: {error}", str(encoded)[:300])


APIS = (AnthropicBedrock("anthropic_bedrock"), AnthropicVertex("anthropic_vertex"))
