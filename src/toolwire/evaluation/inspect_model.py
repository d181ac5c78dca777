"""Toolwire as a model provider of Inspect: any of its evaluations can ask any model, in any wire format.

The name of a model is `toolwire/NAME`, with the name that `toolwire ask --model` takes. The arguments of the model
(`-M` of the command `inspect eval`) are `format`, `constrain`, `prompt`, `api`, `url`, `key_env` and `timeout`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    modelapi,
)
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolChoice as InspectChoice
from inspect_ai.tool import ToolFunction, ToolInfo

from toolwire._surface import check_number
from toolwire.agent.model_pool import Models
from toolwire.errors import ConfigurationError
from toolwire.evaluation.asked_model import TIMEOUT, AskedModel, AskSettings, EvaluationLimits, ModelChoice
from toolwire.evaluation.model_answer import AnswerStore, ModelAnswer
from toolwire.evaluation.readings import DEFAULT_READING, read_answer
from toolwire.evaluation.shared_models import load_shared
from toolwire.messages import ImagePart, Message, Part, TextPart, ToolCall, ToolResult
from toolwire.providers.request import ChatRequest, ToolChoice
from toolwire.text.suggest import closest, did_you_mean
from toolwire.tools import ToolDefinition

PROVIDER: Final = "toolwire"
ANSWER: Final = "toolwire_answer"
"""The member of an output's metadata that contains the `ModelAnswer`."""
PARAMETERS: Final = "toolwire_parameters"
"""The option of a tool that contains the JSON Schema of its parameters, of which Inspect keeps only a part."""
ARGUMENTS: Final = ("format", "constrain", "prompt", "api", "url", "key_env", "timeout")
"""The arguments of a model, which `-M` sets."""
CONNECTIONS: Final = 10
"""Default of the number of questions that a server is asked at once."""


@modelapi(name=PROVIDER)
class InspectModel(ModelAPI):
    """A model of Toolwire as Inspect asks it.

    Args:
        model_name: the name of the model.
        base_url: the base URL of its server; `url` is the same.
        api_key: not used: keys are read from the environment.
        config: settings of Inspect.
        settings: settings of all answers that Inspect has no names for; they come from `toolwire eval`.
        store: the answers that are known; None for none.
        limits: limits of the whole evaluation.
        arguments: `format`, `constrain`, `prompt`, `api`, `url`, `key_env` and `timeout`.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own default
        settings: AskSettings | None = None,
        store: AnswerStore | None = None,
        limits: EvaluationLimits | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(model_name, base_url, None, [], config)
        choice, timeout = _choice_and_timeout(model_name, base_url or "", arguments)
        self._models = Models(load=load_shared)
        settings = settings or AskSettings(timeout=timeout, temperature=config.temperature)
        self.asked = AskedModel(choice, settings, self._models, store=store, limits=limits)

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: InspectChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the answer of the model; see `ModelAPI`."""
        request = ChatRequest(
            messages=tuple(map(_message, input)),
            tools=tuple(map(_definition, tools)),
            tool_choice=_choice(tool_choice),
            parallel=config.parallel_tool_calls,
            max_tokens=config.max_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            seed=config.seed,
            stop=tuple(config.stop_seqs or ()),
        )
        earlier = sum(len(message.tool_calls or ()) for message in input if isinstance(message, ChatMessageAssistant))
        return output_of(await self.asked.answer(request), self.model_name, request.tools, first=earlier)

    def max_connections(self) -> int:
        """Return how many questions are asked at once."""
        # A model in this process answers one question at a time, and a second one would wait until its own timeout.
        return 1 if self.asked.choice.is_local else CONNECTIONS

    def connection_key(self) -> str:
        """Return a key that models share which cannot be asked at the same time."""
        choice = self.asked.choice
        return f"{PROVIDER}/{choice.api or choice.url or choice.model}"

    async def aclose(self) -> None:
        """Close the connections of the model."""
        await self._models.__aexit__()


def _choice_and_timeout(model: str, base_url: str, arguments: Mapping[str, Any]) -> tuple[ModelChoice, float]:
    """Return the model that the arguments describe, and the time that it has for an answer.

    Raises:
        ConfigurationError: an argument is unknown, which would silently ask another way, or has a wrong value.
    """
    for name in arguments:
        if name not in ARGUMENTS:
            hint = did_you_mean(closest(name, ARGUMENTS)) or f"; it has {', '.join(ARGUMENTS)}"
            raise ConfigurationError(f"a model of {PROVIDER} has no argument {name!r:.60}{hint}")
    members = dict(arguments)
    constrain = members.pop("constrain", "")
    if constrain not in ("", "none", "auto", "required"):
        raise ConfigurationError(f"constrain is none, auto or required, not {constrain!r:.60}")
    timeout = members.pop("timeout", TIMEOUT)
    try:
        seconds = float(timeout)
        check_number("timeout", seconds, "a number of seconds")
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"timeout is a number of seconds, not {timeout!r:.60}") from error
    url = members.pop("url", "") or base_url
    return ModelChoice(model, url=url, constrain="" if constrain == "none" else constrain, **members), seconds


def output_of(answer: ModelAnswer, model: str, tools: Sequence[ToolDefinition], *, first: int = 0) -> ModelOutput:
    """Return an answer as Inspect expects it, with the calls that an agent would read.

    Args:
        answer: the answer.
        model: the name of the model.
        tools: the tools that it was offered.
        first: the number of calls before it in the conversation, after which the ids of its calls are numbered.
    """
    content = answer.text
    calls = answer.native_calls or ()
    if answer.format:
        response = read_answer(answer.text, answer.format, tools, DEFAULT_READING)
        content = response.content
        calls = tuple((call.name, call.arguments) for call in response.tool_calls)
    inspect_calls = [
        InspectCall(id=f"call_{position}", function=name, arguments=arguments)
        for position, (name, arguments) in enumerate(calls, first)
    ]
    stop: StopReason = "stop"
    if answer.outcome != "answered":
        stop = "unknown"
    elif answer.finish == "length":
        stop = "max_tokens"
    elif inspect_calls:
        stop = "tool_calls"
    message = ChatMessageAssistant(content=content, tool_calls=inspect_calls or None, model=model, source="generate")
    return ModelOutput(
        model=model,
        choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=ModelUsage(
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            total_tokens=answer.input_tokens + answer.output_tokens,
        ),
        time=answer.seconds,
        metadata={ANSWER: answer.to_json()},
        error=answer.detail or None,
    )


def _definition(tool: ToolInfo) -> ToolDefinition:
    exact = (tool.options or {}).get(PARAMETERS)
    parameters = exact if isinstance(exact, dict) else tool.parameters.model_dump(exclude_none=True)
    return ToolDefinition(tool.name, tool.description, parameters)


def _choice(choice: InspectChoice) -> ToolChoice:
    if isinstance(choice, ToolFunction):
        return ToolChoice("required", (choice.name,))
    return ToolChoice.of(choice)


def _message(message: ChatMessage) -> Message:
    match message:
        case ChatMessageSystem():
            return Message("system", (TextPart(message.text),))
        case ChatMessageUser():
            return Message("user", tuple(_parts(message)))
        case ChatMessageAssistant():
            calls = [ToolCall(call.function, call.arguments, id=call.id) for call in message.tool_calls or ()]
            return Message("assistant", (*([TextPart(message.text)] if message.text else []), *calls))
        case ChatMessageTool():
            error = message.error.message if message.error is not None else None
            return Message(
                "tool", (ToolResult(message.tool_call_id or "", message.function or "", message.text, error),)
            )


def _parts(message: ChatMessageUser) -> list[Part]:
    if isinstance(message.content, str):
        return [TextPart(message.content)]
    parts: list[Part] = []
    for content in message.content:
        match content:
            case ContentText():
                parts.append(TextPart(content.text))
            case ContentImage():
                parts.append(ImagePart(url=content.image))
            case _:
                raise ConfigurationError(f"a question contains {content.type}, which {PROVIDER} does not send")
    return parts
