"""The exception tree: the type says who erred.

    ToolwireError
    ├── DefinitionError          the developer: a tool, a schema or a name that cannot be used
    │   ├── UnknownFormat        (also a KeyError) no format of that name
    │   └── UnknownApi           (also a KeyError) no provider API of that name
    ├── ConfigurationError       the developer: a configuration file, or a name in it
    ├── RenderError              the developer: a value that the format has no way to write
    ├── EnvelopeError            (also a ValueError) text that is no envelope, or a header that none may have
    ├── ModelOutputError         the model
    │   ├── MalformedToolCall
    │   ├── IncompleteToolCall
    │   ├── UnknownTool
    │   └── InvalidArguments
    ├── ProviderError            the model's runtime or the remote API
    ├── PolicyError              a permission said no
    │   ├── Denied
    │   └── ApprovalRequired
    ├── ToolError                the tool itself failed
    ├── StateError               a file that Toolwire keeps its records in
    ├── JournalError             a run that cannot be recorded or gone on with
    └── RunFailed                an agent ended without an answer

Reading model text raises none of these: it yields `Problem` events, and a caller decides what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable


class ToolwireError(Exception):
    """Anything that Toolwire itself raises on purpose."""


class DefinitionError(ToolwireError):
    """A tool definition, a schema or a configuration that cannot be used.

    Attributes:
        tool: the tool's name, or "" if it is not known.
        pointer: JSON pointer into the definition to the place that is wrong ("" is the whole).
    """

    def __init__(self, message: str, *, tool: str = "", pointer: str = "") -> None:
        self.tool = tool
        self.pointer = pointer
        where = f"tool {tool!r}" if tool else "definition"
        at = f" at {pointer}" if pointer else ""
        super().__init__(f"{where}{at}: {message}")


class _UnknownName(DefinitionError, KeyError):
    def __init__(self, name: str, suggestions: Iterable[str], message: str) -> None:
        self.name = name
        self.suggestions = list(suggestions)
        ToolwireError.__init__(self, message)
        self.tool = self.pointer = ""

    def __str__(self) -> str:
        """The message itself; KeyError would show its repr."""
        return str(self.args[0])


class UnknownFormat(_UnknownName):
    """No wire format has that name or alias; the message suggests the nearest ones.

    Attributes:
        name: the name that was asked for.
        suggestions: the nearest names and aliases, best first.
    """


class UnknownApi(_UnknownName):
    """No provider API has that name or alias; the message suggests the nearest ones.

    Attributes:
        name: the name that was asked for.
        suggestions: the nearest names, best first.
    """


class ConfigurationError(ToolwireError):
    """A configuration that cannot be used; the message names the place."""


class RenderError(ToolwireError):
    """A value that the wire format has no unambiguous way to write."""


class EnvelopeError(ToolwireError, ValueError):
    """Text that is no envelope, or a header that no envelope may have."""


class ModelOutputError(ToolwireError):
    """The model wrote something that cannot be used as it is."""


class MalformedToolCall(ModelOutputError):
    """Text that begins as a tool call and cannot be read as one."""


class IncompleteToolCall(ModelOutputError):
    """A tool call that was cut before its arguments were all there."""


class UnknownTool(ModelOutputError):
    """A call to a tool that nobody defined."""


class InvalidArguments(ModelOutputError):
    """Arguments that the tool's schema does not admit."""


class ProviderError(ToolwireError):
    """The model's runtime or a remote API failed.

    Attributes:
        status: the HTTP status that the API answered with; 0 if it did not answer.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class PolicyError(ToolwireError):
    """A permission stands between the call and its execution."""


class Denied(PolicyError):
    """The call is not allowed."""


class ApprovalRequired(PolicyError):
    """The call may run only after somebody has agreed."""


class ToolError(ToolwireError):
    """The tool ran and failed; the message is meant for the model."""


class StateError(ToolwireError):
    """A file that Toolwire keeps its records in cannot be used; the message names it."""


class JournalError(ToolwireError):
    """A run that cannot be recorded, or whose records cannot be read or gone on with."""


class RunFailed(ToolwireError):
    """An agent's run ended without an answer.

    Attributes:
        end: the run's end, an `agent.events.RunEnded`: with the conversation so far, and what was used.
    """

    def __init__(self, message: str, end: object) -> None:
        super().__init__(message)
        self.end = end


class PolicyWarning(UserWarning):
    """A rule or a limit does nothing, or not all that it says: it names a tool or an argument that is not there."""
