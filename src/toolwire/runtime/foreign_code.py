"""Capture exceptions from user code. This is the only place that catches `Exception`."""

from __future__ import annotations

from toolwire.errors import ToolError

TOOL_ERRORS = (Exception, SystemExit)
"""Errors of a tool. A tool that asks to end the program only fails."""


class capture_errors:  # in lower case, as contextlib.suppress is
    """Capture an exception of a tool, a preview or a check.

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
