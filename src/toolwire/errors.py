"""The exception tree: the type says who erred.

    ToolwireError
    ├── DefinitionError          the developer: a tool, a schema or a name that cannot be used
    │   ├── UnknownFormat        (also a KeyError) no format has that name
    │   └── UnknownApi           (also a KeyError) no provider API has that name
    ├── ConfigurationError       the developer: a configuration file, or a name in it
    ├── MissingExtra             (also an ImportError) the installation: an optional dependency is missing
    ├── RenderError              the developer: a value that the format cannot express
    ├── EnvelopeError            (also a ValueError) text that is not an envelope, or a header with invalid fields
    ├── UnknownTool              the model: a call to a tool that does not exist
    ├── OutputError              (also a ValueError) the model: an answer that is not of the type that was asked for
    ├── ProviderError            the model's runtime or the remote API
    ├── ToolError                the tool
    ├── StateError               a file that Toolwire keeps its records in
    ├── JournalError             a run that cannot be recorded or resumed
    ├── ConversationError        a conversation that cannot be read or stored
    └── RunFailed                an agent ended without an answer

Reading model text raises none of these: it yields `ProblemFound` events, and the caller decides what they mean. A
value of the wrong type raises TypeError with one line that names the argument.
"""

from __future__ import annotations

from collections.abc import Iterable


class ToolwireError(Exception):
    """The base class of all errors that Toolwire raises on purpose."""


class DefinitionError(ToolwireError):
    """A tool definition, a schema or a name that cannot be used.

    Attributes:
        tool: the tool's name, or "" if it is not known.
        pointer: JSON pointer to the invalid place in the definition; "" is the whole definition.
    """

    def __init__(self, message: str, *, tool: str = "", pointer: str = "", subject: str = "") -> None:
        self.tool = tool
        self.pointer = pointer
        where = f"tool {tool!r}" if tool else subject
        place = " ".join(filter(None, (where, f"at {pointer}" if pointer else "")))
        super().__init__(f"{place}: {message}" if place else message)


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


def install_command(extra: str) -> str:
    """Return the command that installs an extra from where Toolwire came from: a folder, or the package index."""
    # Imported here, because programs that lack nothing do not need them.
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        source = json.loads(distribution("toolwire").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        source = {}
    address = urlsplit(str(source.get("url", "")))
    target, option = "toolwire", ""
    if address.scheme == "file":
        target = url2pathname(address.path)
        option = "-e " if source.get("dir_info", {}).get("editable") else ""
    return f"pip install {option}{shlex.quote(f'{target}[{extra}]')}"


class MissingExtra(ToolwireError, ImportError):
    """An optional dependency cannot be imported; the message names the extra to install.

    Attributes:
        extra: the extra that installs the dependency, such as "agent".
    """

    def __init__(self, feature: str, module: str, reason: str, extra: str) -> None:
        super().__init__(f"{feature} needs {module}, which {reason}: {install_command(extra)}")
        self.name = module
        self.extra = extra


class RenderError(ToolwireError):
    """A value that the wire format has no unambiguous way to write."""


class EnvelopeError(ToolwireError, ValueError):
    """Text that is not an envelope, or a header with fields that an envelope cannot have."""


class UnknownTool(ToolwireError):
    """A call names a tool that does not exist or is disabled."""


class ProviderError(ToolwireError):
    """The model's runtime or a remote API failed.

    Attributes:
        status: the HTTP status of the API's response; 0 if there was no response.
        retry_after: its header `Retry-After`; "" for none.
    """

    def __init__(self, message: str, *, status: int = 0, retry_after: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ToolError(ToolwireError):
    """The tool ran and failed; the message is meant for the model."""


class StateError(ToolwireError):
    """A file that Toolwire keeps its records in cannot be used; the message names it."""


class JournalError(ToolwireError):
    """A run that cannot be recorded or resumed, or whose records cannot be read."""


class ConversationError(ToolwireError):
    """A conversation that cannot be read or stored, or that was changed elsewhere meanwhile.

    Attributes:
        branch: name of the conversation that has the messages which could not be stored under their own name; "" if
            nothing had to be stored.
    """

    def __init__(self, message: str, *, branch: str = "") -> None:
        super().__init__(message)
        self.branch = branch


class OutputError(ToolwireError, ValueError):
    """An answer of a model that is not of the type that was asked for.

    Attributes:
        issues: everything that is wrong with it, in words for the model.
        text: the answer; "" if it is not known.
    """

    def __init__(self, issues: Iterable[str], text: str = "", message: str = "") -> None:
        self.issues = tuple(issues)
        self.text = text
        super().__init__(message or "; ".join(self.issues))


class RunFailed(ToolwireError):
    """An agent's run ended without an answer.

    Attributes:
        end: the `RunEnded` event, with the conversation so far and the usage.
    """

    def __init__(self, message: str, end: object) -> None:
        super().__init__(message)
        self.end = end


class RealRequestError(ToolwireError):
    """A test made a request to a real model where that is forbidden; see `toolwire.testing.forbid_real_requests`."""


class PolicyWarning(UserWarning):
    """A rule or a limit has no effect, or not all of it: it names a tool or an argument that does not exist."""


class ToolwireDeprecationWarning(FutureWarning):
    """A public name or argument that a later version removes; a FutureWarning, so that users see it by default."""


TOOL_ERRORS = (Exception, SystemExit)
"""Errors of code that is not ours: a tool, a plug-in. Code that asks to end the program only fails."""


class capture_errors:  # in lower case, as contextlib.suppress is
    """Capture an exception of code that is not ours. This is the only place that catches `Exception`.

    Args:
        captured: the exceptions to capture. Interrupts and cancellation propagate by default.
        propagated: of these, the exceptions that propagate nevertheless.

    Attributes:
        error: the exception; None if there was none.
    """

    __slots__ = ("_captured", "_propagated", "error")

    def __init__(
        self,
        captured: tuple[type[BaseException], ...] = TOOL_ERRORS,
        *,
        propagated: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._captured = captured
        self._propagated = propagated
        self.error: BaseException | None = None

    def __enter__(self) -> capture_errors:
        """Begin the block."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Capture an exception."""
        if error is None or not isinstance(error, self._captured) or isinstance(error, self._propagated):
            return False
        self.error = error
        return True

    @property
    def message(self) -> str:
        """The exception in one line, without a traceback; a `ToolError` without its type."""
        kind, text = type(self.error).__name__, ""
        with capture_errors():  # what an error says of itself is foreign code too
            text = str(self.error)
        if isinstance(self.error, ToolError):
            return text or kind
        return f"{kind}: {text}" if text else kind
