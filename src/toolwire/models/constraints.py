"""Constraints on what a text model may write: grammars, in the field in which its server takes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from toolwire.errors import DefinitionError, ProviderError
from toolwire.events import Event
from toolwire.grammars.message_grammar import Grammar, GrammarSyntax, grammar
from toolwire.messages import Message
from toolwire.providers.request import ChatRequest, Notes

GrammarServer = Literal["", "llama.cpp", "vllm", "sglang"]
"""Servers that take grammars in a field of their own."""
_FIELDS: Mapping[str, tuple[GrammarSyntax, tuple[str, ...]]] = {
    "llama.cpp": ("gbnf", ("grammar",)),
    "vllm": ("structural_tag", ("structured_outputs", "structural_tag")),
    "sglang": ("gbnf", ("ebnf",)),
}
"""The syntax that a server takes, and the path of its field in the request's body."""
_REFUSED = frozenset({400, 422, 501})
"""HTTP statuses of a server that refuses a request for what it contains."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint on the text of a model: it can write no call that is malformed.

    Attributes:
        mode: "auto": the model may answer or call tools; "required": it has to call a tool, whatever the request says.
        server: the server that the model runs in; "" for a model in this process.
    """

    mode: Literal["auto", "required"] = "auto"
    server: GrammarServer = ""

    def __post_init__(self) -> None:
        """Raise DefinitionError for an unknown mode or server."""
        if self.mode not in ("auto", "required"):
            raise DefinitionError(f"a constraint is auto or required, not {self.mode!r:.40}")
        if self.server and self.server not in _FIELDS:
            raise DefinitionError(
                f"no field for grammars is known of {self.server!r:.40}; of {', '.join(_FIELDS)} it is"
            )

    def keywords(
        self, request: ChatRequest, format: str, takes: Collection[str], given: Mapping[str, Any], notes: Notes | None
    ) -> dict[str, Any] | None:
        """Return the keywords of a constrained answer, or None if there is nothing to constrain.

        Args:
            request: the request.
            format: the wire format that the model is asked to write.
            takes: the keywords that the model takes.
            given: the keywords of the answer without a constraint.
            notes: records why an answer is not constrained.
        """
        if not request.tools or request.tool_choice.mode == "none":
            return None
        direct = "grammar" in takes
        if not direct and not (self.server and "extra_body" in takes):
            _note(notes, "the model takes no grammar, or it is not known in which field")
            return None
        syntax, path = ("gbnf", ()) if direct else _FIELDS[self.server]
        try:
            written = self._grammar(request, format, syntax)
        except DefinitionError as error:
            _note(notes, str(error))
            return None
        if direct:
            return {**given, "grammar": written.text}
        body: Any = written.text
        for key in reversed(path):
            body = {key: body}
        return {**given, "extra_body": {**body, **given.get("extra_body", {})}}

    def _grammar(self, request: ChatRequest, format: str, syntax: GrammarSyntax) -> Grammar:
        allowed = request.tool_choice.names
        tools = [tool for tool in request.tools if not allowed or tool.name in allowed]
        mode = "required" if self.mode == "required" else request.tool_choice.mode
        # Text may follow the calls, because the reader stops the model there. A model that wants to write an invented
        # result, and may only write calls, would write the same call without end.
        return grammar(
            tools,
            format=format,
            tool_choice=mode,
            parallel=request.parallel is not False,
            syntax=syntax,
            text_after=True,
        )


@dataclass(frozen=True, slots=True)
class ConstrainedSource:
    """A text model, and the constraint on what it writes.

    Attributes:
        source: the model.
        takes: the keywords that it takes.
        format: the wire format that it is asked to write.
        constraint: the constraint; None for none.
    """

    source: Callable[..., AsyncGenerator[Event]]
    takes: Collection[str]
    format: str
    constraint: Constraint | None

    async def stream(
        self, prompt: list[Message], request: ChatRequest, keywords: Mapping[str, Any], notes: Notes | None
    ) -> AsyncGenerator[Event]:
        """Yield what the model writes; if its server refuses the grammar, ask again without it, with a note."""
        constrained: dict[str, Any] | None = None
        if self.constraint is not None:
            constrained = self.constraint.keywords(request, self.format, self.takes, keywords, notes)
        if constrained is not None:
            has_begun = False
            try:
                async with aclosing(self.source(prompt, **constrained)) as pieces:
                    async for piece in pieces:
                        has_begun = True
                        yield piece
            except ProviderError as error:
                # Once text was read, another answer would contradict it.
                if has_begun or not _is_refused(error):
                    raise
                _note(notes, f"the server refused the grammar, so the answer is not constrained: {error}")
            else:
                return
        async with aclosing(self.source(prompt, **keywords)) as pieces:
            async for piece in pieces:
                yield piece


def _is_refused(error: ProviderError) -> bool:
    """Return whether an error says that the grammar is why there is no answer."""
    # A runtime in this process has no statuses; its message names the grammar.
    return error.status in _REFUSED or "grammar" in str(error).lower()


def _note(notes: Notes | None, reason: str) -> None:
    if notes is not None:
        notes.dropped("constrain", reason)
