"""Constraints on what a model may write: a grammar in the field of its server, or strict tools."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, MutableMapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from toolwire.errors import DefinitionError, ProviderError
from toolwire.events import Event, ProblemFound
from toolwire.grammars.message_grammar import GrammarSyntax, grammar
from toolwire.messages import Message
from toolwire.providers.context_overflow import overflow_in
from toolwire.providers.request import ChatRequest, Notes, ToolChoice
from toolwire.providers.schema_dialects import Dialect
from toolwire.tools import ToolDefinition

GrammarServer = Literal["", "llama_cpp", "vllm", "sglang", "ollama", "ollama_chat", "lm_studio"]
"""APIs of servers that decode under a grammar; "" for the API that the model is reached through."""


class _GrammarField(NamedTuple):
    """The field in which a server takes a grammar.

    Attributes:
        syntax: the syntax that the server takes.
        members: returns the members of a request's body for a grammar; one in JSON Schema is passed as a value.
    """

    syntax: GrammarSyntax
    members: Callable[[Any], dict[str, Any]]


def _response_format(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "message", "schema": schema}}}


_FIELDS: Mapping[str, _GrammarField] = {
    # https://github.com/ggml-org/llama.cpp/tree/master/tools/server
    "llama_cpp": _GrammarField("gbnf", lambda text: {"grammar": text}),
    # https://docs.vllm.ai/en/latest/features/structured_outputs.html
    "vllm": _GrammarField("structural_tag", lambda text: {"structured_outputs": {"structural_tag": text}}),
    # https://docs.sglang.io/advanced_features/structured_outputs.html
    "sglang": _GrammarField("gbnf", lambda text: {"ebnf": text}),
    # https://docs.ollama.com/capabilities/structured-outputs
    "ollama": _GrammarField("json_schema", lambda schema: {"format": schema}),
    "ollama_chat": _GrammarField("json_schema", _response_format),
    # https://lmstudio.ai/docs/developer/openai-compat/structured-output
    "lm_studio": _GrammarField("json_schema", _response_format),
}
GRAMMAR_SERVERS = tuple(_FIELDS)


@dataclass(frozen=True, slots=True)
class ConstraintKind:
    """A kind of constraint, and the errors with which servers refuse it.

    Attributes:
        name: the name in notes.
        words: finds the constraint in the message of an error.
        statuses: the HTTP statuses with which these words count; empty for any.
        unnamed: the HTTP statuses that count although the message does not name the constraint.
    """

    name: str
    words: re.Pattern[str]
    statuses: frozenset[int] = frozenset()
    unnamed: frozenset[int] = frozenset()

    def is_refused(self, error: ProviderError) -> bool:
        """Return whether an error says that the constraint is why there is no answer."""
        message = str(error)
        if overflow_in(message) is not None:
            return False
        is_named = self.words.search(message) is not None
        return error.status in self.unnamed or (is_named and (not self.statuses or error.status in self.statuses))


# Messages of servers of open models often quote the place in the grammar and nothing else. If the grammar is not the
# reason, the request without it is refused too, and that error is raised.
_GRAMMAR = ConstraintKind("the grammar", re.compile("grammar", re.IGNORECASE), unnamed=frozenset({400, 422, 501}))


def strict_tools(dialect: Dialect | None) -> ConstraintKind:
    """Return the constraint of strict tools; an API without a dialect for them is not sent any, and refuses none."""
    words = re.compile("(?!)") if dialect is None else dialect.refusal
    return ConstraintKind("the strict tools", words, statuses=frozenset({400, 422}))


@dataclass(frozen=True, slots=True)
class ConstrainedAnswer:
    """One answer under a constraint, which the server may refuse.

    Attributes:
        model: the model that answers.
        kind: the constraint.
        refusals: the notes of the refusals of a run, by the model; a refusal is added. None to try each request anew.
        notes: records the server's reason.
    """

    model: object
    kind: ConstraintKind
    refusals: MutableMapping[Any, str] | None
    notes: Notes | None

    def was_refused(self) -> bool:
        """Return whether the server refused the constraint earlier in this run; note it then."""
        reason = (self.refusals or {}).get(self.model)
        if reason is not None:
            _note(self.notes, reason)
        return reason is not None

    def _check_first(self, event: Event) -> None:
        """Raise an error if the stream of an answer begins with a refusal of the constraint.

        Servers that check a request while they answer it have sent the status of a success by then.
        """
        if isinstance(event, ProblemFound) and event.problem.kind == "provider_error":
            error = ProviderError(event.problem.message)
            if self.kind.is_refused(error):
                raise error

    def _concerns(self, message: str) -> bool:
        """Return whether the message of an error in the middle of an answer names the constraint."""
        return self.kind.words.search(message) is not None

    def _with_reason(self, event: Event) -> Event:
        """Return an event in the middle of an answer; an error that names the constraint says what to do."""
        match event:
            case ProblemFound(problem) if problem.kind == "provider_error" and self._concerns(problem.message):
                return ProblemFound(replace(problem, message=self._explained(problem.message)))
        return event

    def _explained(self, message: str) -> str:
        return (
            f"the server ended the answer in the middle, because it cannot go on under {self.kind.name}: {message} "
            "(ask again; if it happens often, ask without the constraint)"
        )

    async def events(
        self, constrained: AsyncGenerator[Event] | None, free: Callable[[], AsyncGenerator[Event]]
    ) -> AsyncGenerator[Event]:
        """Yield the constrained answer; if the server refuses the constraint, yield one without it, with a note.

        Args:
            constrained: the constrained answer; None for none.
            free: asks without the constraint.
        """
        reason = ""
        if constrained is not None:
            has_begun = False
            try:
                async with aclosing(constrained):
                    async for event in constrained:
                        if not has_begun:
                            self._check_first(event)
                        yield self._with_reason(event) if has_begun else event
                        has_begun = True
            except ProviderError as error:
                # Once text was read, another answer would contradict it.
                if has_begun and self._concerns(str(error)):
                    raise ProviderError(self._explained(str(error)), status=error.status) from error
                if has_begun or not self.kind.is_refused(error):
                    raise
                reason = f"the server refused {self.kind.name}, so the answer is not constrained: {error}"
                _note(self.notes, reason)
            else:
                return
        async with aclosing(free()) as events:
            async for event in events:
                # An answer proves that the constraint was the reason.
                if reason and self.refusals is not None:
                    self.refusals[self.model] = reason
                yield event


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint on what a model writes: it can write no call that is malformed.

    Attributes:
        mode: "auto": the model may answer or call tools; "required": it has to call a tool, whatever the request says.
        server: the API of the server that the model runs in, if the model's own API is a more general one.
    """

    mode: Literal["auto", "required"] = "auto"
    server: GrammarServer = ""

    def __post_init__(self) -> None:
        """Raise DefinitionError for an unknown mode or server."""
        if self.mode not in ("auto", "required"):
            raise DefinitionError(f"a constraint is auto or required, not {self.mode!r:.40}")
        if self.server and self.server not in _FIELDS:
            raise DefinitionError(
                f"no field for grammars is known of {self.server!r:.40}; of {', '.join(GRAMMAR_SERVERS)} it is"
            )


@dataclass(frozen=True, slots=True)
class ConstrainedSource:
    """A text model, and the constraint on what it writes.

    Attributes:
        source: the model.
        takes: the keywords that it takes.
        format: the wire format that it is asked to write.
        api: the name of the API that it is reached through; "" for none.
        constraint: the constraint; None for none.
        model: the backend of the model, by which refusals are remembered.
    """

    source: Callable[..., AsyncGenerator[Event]]
    takes: Collection[str]
    format: str
    api: str
    constraint: Constraint | None
    model: object

    @property
    def takes_grammars(self) -> bool:
        """True if there is a way to give the model a grammar."""
        return "grammar" in self.takes or self._field is not None

    @property
    def _field(self) -> _GrammarField | None:
        """The field of the model's server; None if it is unknown, or if the model is in this process."""
        if "grammar" in self.takes or "extra_body" not in self.takes:
            return None
        return _FIELDS.get((self.constraint.server if self.constraint else "") or self.api)

    def _demanded(self, request: ChatRequest) -> Constraint | None:
        """Return the constraint of a request that demands a call; None where a server might refuse a grammar."""
        return Constraint() if request.tool_choice.mode == "required" and "grammar" in self.takes else None

    def _constrained(
        self, constraint: Constraint, request: ChatRequest, keywords: Mapping[str, Any], notes: Notes | None
    ) -> dict[str, Any] | None:
        """Return the keywords of a constrained answer, or None, with a note of the reason, if there is none.

        Args:
            constraint: the constraint.
            request: the request.
            keywords: the keywords of the answer without a constraint.
            notes: records why an answer is not constrained.
        """
        if not request.tools or request.tool_choice.mode == "none":
            return None
        if not self.takes_grammars:
            _note(notes, "the model takes no grammar, or it is not known in which field")
            return None
        field = self._field
        try:
            text = self._grammar(constraint, request, "gbnf" if field is None else field.syntax)
        except DefinitionError as error:
            _note(notes, str(error))
            return None
        if field is None:
            return {**keywords, "grammar": text}
        members = field.members(json.loads(text) if field.syntax == "json_schema" else text)
        return {**keywords, "extra_body": {**members, **keywords.get("extra_body", {})}}

    def _grammar(self, constraint: Constraint, request: ChatRequest, syntax: GrammarSyntax) -> str:
        allowed = request.tool_choice.names
        tools = [tool for tool in request.tools if not allowed or tool.name in allowed]
        mode = "required" if constraint.mode == "required" else request.tool_choice.mode
        # Text may follow the calls, because the reader stops the model there. A model that wants to write an invented
        # result, and may only write calls, would write the same call without end.
        written = grammar(
            tools,
            format=self.format,
            tool_choice=mode,
            parallel=request.parallel is not False,
            syntax=syntax,
            text_after=True,
        )
        return written.text

    async def stream(
        self,
        prompt: list[Message],
        request: ChatRequest,
        keywords: Mapping[str, Any],
        *,
        notes: Notes | None,
        refusals: MutableMapping[Any, str] | None,
    ) -> AsyncGenerator[Event]:
        """Yield what the model writes; if its server refuses the grammar, ask again without it, with a note.

        Args:
            prompt: the conversation as text.
            request: the request.
            keywords: the keywords of the answer without a constraint.
            notes: records why an answer is not constrained.
            refusals: see `ConstrainedAnswer`.
        """
        answer = ConstrainedAnswer(self.model, _GRAMMAR, refusals, notes)
        constrained: dict[str, Any] | None = None
        constraint = self.constraint or self._demanded(request)
        if constraint is not None and not answer.was_refused():
            constrained = self._constrained(constraint, request, keywords, notes)
        first = None if constrained is None else self.source(prompt, **constrained)
        async with aclosing(answer.events(first, lambda: self.source(prompt, **keywords))) as pieces:
            async for piece in pieces:
                yield piece


def strict_request(constraint: Constraint, request: ChatRequest) -> ChatRequest | None:
    """Return a request whose tools are strict, for an API that has a strict mode; None if that changes nothing.

    Tools that say themselves whether they are strict stay as they are.
    """
    choice = request.tool_choice
    if choice.mode == "none" or not request.tools:
        return None
    if constraint.mode == "required":
        choice = ToolChoice("required", choice.names)
    tools = tuple(map(_strict, request.tools))
    return (
        None
        if (tools, choice) == (request.tools, request.tool_choice)
        else replace(request, tools=tools, tool_choice=choice)
    )


def _strict(tool: ToolDefinition) -> ToolDefinition:
    if not {"strict", "custom"}.isdisjoint(tool.annotations):
        return tool
    return replace(tool, annotations={**tool.annotations, "strict": True})


def _note(notes: Notes | None, reason: str) -> None:
    if notes is not None:
        notes.dropped("constrain", reason)
