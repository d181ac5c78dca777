"""Calls that are ready to run: looked up, repaired and validated, and how one of them is run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from toolwire.errors import DefinitionError, ToolError, UnknownTool, capture_errors
from toolwire.execution.outcomes import Issue, copy_json, invalid_arguments
from toolwire.execution.registry import Registered, ToolRegistry
from toolwire.execution.tool_context import CallEnvironment, ToolContext
from toolwire.messages import ToolCall
from toolwire.policy.session import Session
from toolwire.runtime.abandonment import TookTooLong, abandonable
from toolwire.runtime.isolation.isolated_call import run_isolated
from toolwire.runtime.worker_threads import in_thread
from toolwire.schema.validation import UNUSABLE, validate
from toolwire.tools import ToolDefinition


@dataclass(slots=True)
class PreparedCall:
    """A call that was looked up, repaired and validated.

    Attributes:
        call: with the repaired arguments, under the tool's own name.
        tool: as it is registered.
        inputs: a copy of the arguments, converted to the types of the function's signature.
    """

    call: ToolCall
    tool: Registered
    inputs: dict[str, Any]

    def is_current(self, registry: ToolRegistry) -> bool:
        """Return whether the tool is still the one that was looked up."""
        before = self.tool
        try:
            now = registry.lookup(before.name, before.definition.server)
        except (UnknownTool, DefinitionError):
            return False
        # Descriptions may change while a person thinks. Anything that decides what runs must not: the function, its
        # isolation, its tier and its schema.
        return (
            now.run is before.run
            and now.behavior.isolation == before.behavior.isolation
            and now.definition.tier == before.definition.tier
            and now.definition.parameters == before.definition.parameters
        )

    def run(self, timeout: float | None, session: Session, environment: CallEnvironment) -> Awaitable[Any]:
        """Return an awaitable of the value that the tool returns.

        Args:
            timeout: maximum number of seconds for a tool without a timeout of its own; None for no maximum.
            session: state of the conversation, for a tool that asks for the context of the call.
            environment: what the program gives to such a tool.

        Raises:
            ToolError: the tool took longer.
        """
        # Most tools ask for no context; those do not pay for one.
        if self.tool.context or self.tool.is_stream:
            return self._run_in_context(timeout, session, environment)
        return self._run(self.inputs, timeout, None)

    async def _run_in_context(self, timeout: float | None, session: Session, environment: CallEnvironment) -> Any:
        tool = self.tool
        context = ToolContext[Any](self.call, session, environment)
        inputs = {**self.inputs, tool.context: context} if tool.context else self.inputs
        try:
            return await self._run(inputs, timeout, context)
        finally:
            # A thread of an abandoned call works on; its reports would come after the result.
            context.give_up()

    async def _run(self, inputs: dict[str, Any], timeout: float | None, context: ToolContext[Any] | None) -> Any:
        run, tool = self.tool.run, self.tool
        if tool.behavior.timeout is not None:
            timeout = tool.behavior.timeout
        assert run is not None
        work: Awaitable[Any]
        isolation = tool.behavior.isolation
        if isolation is None and (tool.is_async or tool.is_stream):
            stream = context is not None and tool.is_stream
            work = _last_value(run(**inputs), context) if stream and context is not None else run(**inputs)
            try:
                return await abandonable(work, f"the tool {self.call.name}", timeout)
            except TookTooLong as error:
                assert timeout is not None
                raise self._late(timeout, stops=error.stopped) from error
        work = in_thread(run, inputs) if isolation is None else run_isolated(run, inputs, isolation)
        if timeout is None:
            return await work
        try:
            async with asyncio.timeout(timeout) as scope:
                return await work
        except TimeoutError as error:
            if not scope.expired():
                raise  # the tool raised it, so it is the tool's own error
            raise self._late(timeout, stops=isolation is not None) from error

    def _late(self, timeout: float, *, stops: bool) -> ToolError:
        # A thread cannot be stopped from outside. The model must not take the call for undone and repeat it.
        remark = "" if stops else " It may still be at work."
        return ToolError(f"{self.call.name} took longer than {timeout:g} seconds.{remark}")


async def _last_value(values: AsyncGenerator[Any], context: ToolContext[Any]) -> Any:
    """Report each value of an async generator as progress, and return the last one."""
    value = None
    async with aclosing(values):
        async for value in values:
            context.report(value)
    return value


def prepare(registry: ToolRegistry, call: ToolCall) -> PreparedCall | Issue:
    """Look a tool up, and repair and validate the arguments of a call; return what is wrong otherwise."""
    try:
        tool = registry.lookup(call.name, call.server)
    except UnknownTool as error:
        return Issue("unknown_tool", str(error))
    except DefinitionError as error:
        return Issue("not_runnable", f"The tool {call.name!r} cannot be used: {error}")
    if tool.run is None:
        return Issue("not_runnable", f"The tool {call.name!r} has a definition here, and no function that runs it.")
    definition = tool.definition
    arguments = fit_arguments(call, definition)
    if isinstance(arguments, Issue):
        return arguments
    # The tool's own check comes after the schema, so that it can rely on types and required arguments.
    why, inputs = _convert(arguments, tool)
    if inputs is None:
        return Issue(
            "invalid_arguments", f"{invalid_arguments(call.name)} {why}", untrusted=definition.untrusted
        )  # the check wrote `why`
    return PreparedCall(replace_call(call, definition.name, arguments), tool, inputs)


def fit_arguments(call: ToolCall, definition: ToolDefinition) -> dict[str, Any] | Issue:
    """Return a copy of a call's arguments that is repaired and fits the tool's schema, or what is wrong with them."""
    try:
        # The caller may still hold the arguments and change them after they were validated, so a copy is repaired.
        arguments = definition.fit(copy_json(call.arguments))
    except RecursionError:
        return Issue("invalid_arguments", f"The arguments of {call.name!r} are nested too deeply.")
    issues = validate(arguments, definition.parameters)
    if issues and issues[0].keyword == UNUSABLE:
        return Issue("not_runnable", f"The arguments of {call.name!r} cannot be checked: {issues[0]}")
    if issues:
        return Issue("invalid_arguments", f"{invalid_arguments(call.name)} {'; '.join(map(str, issues))}")
    return arguments


def replace_call(call: ToolCall, name: str, arguments: dict[str, Any]) -> ToolCall:
    """Return a call with another name and other arguments."""
    # `dataclasses.replace` does the same in six times the time, on every call.
    return ToolCall(
        name, arguments, call.id, call.server, call.raw, call.format, call.repairs, call.confidence, call.free
    )


def _convert(arguments: dict[str, Any], tool: Registered) -> tuple[str, dict[str, Any] | None]:
    """Run the tool's own check and convert the arguments; return (error, converted)."""
    # A function may change the arguments that it gets. With copies, the call on record stays as it was approved.
    if tool.behavior.check is None and tool.read is None:
        return "", copy_json(arguments)
    with capture_errors() as caught:
        if tool.behavior.check is not None and (why := tool.behavior.check(copy_json(arguments))):
            return why, None
        return "", copy_json(arguments) if tool.read is None else tool.read(copy_json(arguments))
    return str(caught.error) if isinstance(caught.error, ValueError) else caught.message, None
