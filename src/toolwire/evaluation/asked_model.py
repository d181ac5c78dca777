"""A model as an evaluation asks it: one request for each question, with limits on time and money."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from time import monotonic
from typing import Any, Final, Literal

from toolwire.agent.model_pool import Models, local_name
from toolwire.agent.prices import PublishedPrices, published_prices
from toolwire.config.option_profiles import option_profile
from toolwire.config.tables import LOCAL, ModelProfile
from toolwire.errors import ConfigurationError, MissingExtra, ProviderError
from toolwire.evaluation.model_answer import AnswerStore, ModelAnswer, question_key
from toolwire.evaluation.prompt_files import open_style
from toolwire.evaluation.readings import problem_kinds
from toolwire.events import Event, collect
from toolwire.messages import FinishReason, Message, ParsedResponse, TextPart, Usage
from toolwire.models.backends import Backend, StreamOptions, text_of
from toolwire.providers.api_registry import find_api
from toolwire.providers.request import ChatRequest, Notes
from toolwire.wire.prompt_styles import DEFAULT_STYLE, PromptStyle
from toolwire.wire.prompts import prompt

MAX_TOKENS: Final = 512
"""Default of the maximum length of an answer, in tokens."""
TIMEOUT: Final = 300.0
"""Default of the seconds that a model has for an answer."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, and the way in which it is asked for calls.

    Attributes:
        model: a size of the models on this machine, a file, or a provider and its model, such as "openai:gpt-5-mini".
        format: the wire format; "" for the fields of an API, and for the best known format of a model on this machine.
        constrain: whether calls are written under a grammar: "" for no, "auto" or "required".
        prompt: the style of the prompt of a model of text: a name, or the path of a TOML file; "" for the default.
        api: the API of the server at `url`.
        url: the base URL of a server.
        key_env: the environment variable with the key of that server.
    """

    model: str
    format: str = ""
    constrain: Literal["", "auto", "required"] = ""
    prompt: str = ""
    api: str = ""
    url: str = ""
    key_env: str = ""

    @property
    def profile(self) -> ModelProfile:
        """The model as a profile of a configuration file."""
        constrain = self.constrain or None
        if self.url or self.api:
            return option_profile(
                provider=self.api, model=self.model, url=self.url, key_env=self.key_env, constrain=constrain
            )
        provider, colon, name = self.model.partition(":")
        if colon and name and find_api(provider) is not None:
            return option_profile(provider=provider, model=name, constrain=constrain)
        return option_profile(provider=LOCAL, model=self.model, constrain=constrain)

    @property
    def recorded_name(self) -> str:
        """The name of the model in records of runs, to which the evidence of a coach belongs."""
        return local_name(self.profile) or self.profile.model

    @property
    def is_local(self) -> bool:
        """True if the model runs in this process, which answers one question at a time."""
        return bool(local_name(self.profile))


@dataclass(frozen=True, slots=True)
class AskSettings:
    """Settings of all answers of an evaluation.

    Attributes:
        max_tokens: the maximum length of an answer, in tokens.
        temperature: the sampling temperature.
        seed: makes sampling repeatable, as far as the API can.
        timeout: the seconds that a model has for an answer.
        system: text at the beginning of the system prompt.
    """

    max_tokens: int = MAX_TOKENS
    temperature: float | None = 0.0
    seed: int | None = None
    timeout: float = TIMEOUT
    system: str = ""


@dataclass(slots=True)
class EvaluationLimits:
    """Limits of a whole evaluation; when one is reached, the remaining questions are not asked.

    Attributes:
        seconds: the duration; None for no limit.
        money: the price of all answers in US dollars; None for no limit.
        started_at: when the evaluation began, on the clock of `time.monotonic`.
        spent: the price of the answers so far; stored answers cost nothing.
    """

    seconds: float | None = None
    money: float | None = None
    started_at: float = field(default_factory=monotonic)
    spent: float = 0.0

    def reached(self) -> str:
        """Return the limit that is reached as a sentence; "" if none is."""
        if self.seconds is not None and monotonic() - self.started_at >= self.seconds:
            return f"the time limit of {self.seconds:g} seconds was reached"
        if self.money is not None and self.spent >= self.money:
            return f"the limit of ${self.money:g} was reached"
        return ""


class AskedModel:
    """A model that answers questions once.

    Args:
        choice: the model and its format.
        settings: settings of its answers.
        models: opens it; its owner closes it.
        store: the answers that are known, and where new ones are stored; None for none.
        limits: limits of the whole evaluation.
    """

    def __init__(
        self,
        choice: ModelChoice,
        settings: AskSettings,
        models: Models,
        *,
        store: AnswerStore | None = None,
        limits: EvaluationLimits | None = None,
    ) -> None:
        self.choice = choice
        self._style = open_style(choice.prompt or DEFAULT_STYLE)
        self._settings = settings
        self._models = models
        self._store = store
        self._limits = limits or EvaluationLimits()
        self._opening = asyncio.Lock()
        self._backend: Backend | None = None
        self._prices: PublishedPrices | None = None

    async def backend(self) -> Backend:
        """Return the opened model.

        Raises:
            ConfigurationError: the model cannot be asked in this way, or has no known price while money is limited.
            ProviderError: it cannot be loaded.
        """
        async with self._opening:
            if self._backend is None:
                backend = await self._models.open(self.choice.profile, format=self.choice.format or None)
                self._prices = self._known_prices(backend)
                self._backend = backend
        return self._backend

    def _known_prices(self, backend: Backend) -> PublishedPrices | None:
        is_limited = self._limits.money is not None
        try:
            prices = published_prices(backend)
        except MissingExtra:
            if is_limited:
                raise
            return None
        if prices is None and is_limited and not self.choice.is_local:
            raise ConfigurationError(f"no prices are published for {backend.model!r}, so money cannot be limited")
        return prices

    async def answer(self, request: ChatRequest) -> ModelAnswer:
        """Return the answer to a question, from the store if it is known.

        Args:
            request: the messages and the tools; the system prompt of a model of text is added here.

        Raises:
            ConfigurationError: the model cannot be asked in this way, or no key is set.
        """
        backend = await self.backend()
        messages = _with_tools_in_prompt(request, backend.format, self._settings.system, self._style)
        settings = self._settings
        request = replace(
            request,
            messages=messages,
            max_tokens=request.max_tokens or settings.max_tokens,
            temperature=settings.temperature if request.temperature is None else request.temperature,
            seed=settings.seed if request.seed is None else request.seed,
        )
        # The rendered prompt is part of the key: a version that words it differently asks anew.
        key = question_key(self._asked(request, backend))
        if self._store is not None and (stored := self._store.find(key)) is not None:
            return stored
        if detail := self._limits.reached():
            return ModelAnswer("not_asked", backend.format, detail=detail)
        answer = await self._ask(backend, request)
        self._limits.spent += answer.money or 0.0
        if self._store is not None:
            self._store.store(key, answer)
        return answer

    def _asked(self, request: ChatRequest, backend: Backend) -> dict[str, Any]:
        """Return everything that the answer depends on."""
        choice = self.choice
        return {
            "model": [choice.model, choice.api, choice.url, backend.format, choice.constrain],
            "messages": [[message.role, [repr(part) for part in message.parts]] for message in request.messages],
            "tools": [[tool.name, tool.description, tool.parameters] for tool in request.tools],
            "choice": [request.tool_choice.mode, *request.tool_choice.names],
            "settings": [request.max_tokens, request.temperature, request.top_p, request.seed, list(request.stop)],
        }

    async def _ask(self, backend: Backend, request: ChatRequest) -> ModelAnswer:
        raw: list[str] = []
        notes = Notes()
        events: list[Event] = []
        started_at = monotonic()
        outcome: Literal["answered", "timeout", "error"] = "answered"
        detail = ""
        try:
            async with (
                asyncio.timeout(self._settings.timeout),
                aclosing(backend.stream(request, StreamOptions(raw_text=raw, notes=notes))) as stream,
            ):
                async for event in stream:  # one at a time: those before a timeout count
                    events.append(event)  # noqa: PERF401
        except TimeoutError:
            outcome, detail = "timeout", f"no complete answer within {self._settings.timeout:g} seconds"
        except ProviderError as error:
            outcome, detail = "error", str(error)
        # What arrived before a timeout is kept, because it shows what the model was doing.
        response = collect(events)
        if response.finish_reason is FinishReason.ERROR and outcome == "answered":
            # The first of these is the reason, and others are the parts of the text that it left incomplete.
            failures = [p.message for p in response.problems if p.kind in ("provider_error", "truncated")]
            outcome, detail = "error", next(iter(failures), "the answer ends with an error")
        usage = response.usage or Usage()
        return ModelAnswer(
            outcome,
            backend.format,
            text="".join(raw) if backend.format else _prose(response),
            native_calls=None if backend.format else tuple((c.name, dict(c.arguments)) for c in response.tool_calls),
            native_problems=() if backend.format else problem_kinds(response),
            finish=response.finish_reason.value if outcome == "answered" else "",
            seconds=monotonic() - started_at,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            estimated=usage.estimated,
            money=self._prices.cost_of(usage) if self._prices is not None and response.usage is not None else None,
            detail=detail,
            notes=tuple(dict.fromkeys(f"{note.where}: {note.message}" for note in notes)),
        )


async def check_endpoints(choices: Sequence[ModelChoice], settings: AskSettings, limits: EvaluationLimits) -> None:
    """Check that the models of APIs can be asked in this way, before any of them is asked.

    Raises:
        ConfigurationError: one cannot be, or has no known price while money is limited.
    """
    async with Models() as models:
        for choice in choices:
            # Those on this machine would have to be loaded, which takes long and may need much memory.
            if not choice.is_local:
                await AskedModel(choice, settings, models, limits=limits).backend()


def _prose(response: ParsedResponse) -> str:
    """Return the text of an answer whose calls have fields of their own."""
    broken = (call.raw for call in response.incomplete if call.raw)
    return "\n".join(filter(None, (response.content, *broken)))


def _with_tools_in_prompt(request: ChatRequest, format: str, system: str, style: PromptStyle) -> tuple[Message, ...]:
    """Return the messages with a system prompt: the given text, and the tools for a model of text."""
    instructions = [message for message in request.messages if message.role == "system"]
    texts = [text for text in (system, *map(text_of, instructions)) if text]
    text = "\n\n".join(texts)
    if format and request.tools:
        text = prompt(request.tools, format=format, system=text, style=style)
    turns: Sequence[Message] = [message for message in request.messages if message.role != "system"]
    return (*([Message("system", (TextPart(text),))] if text else []), *turns)


def choice_record(choice: ModelChoice) -> dict[str, str]:
    """Return a choice as JSON values, for logs and reports."""
    return asdict(choice)
