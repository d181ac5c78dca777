"""Capture exceptions from user code. This is the only place that catches `Exception`."""

from __future__ import annotations

from toolwire.errors import ToolError

HELD = (Exception, SystemExit)
"""Errors of a tool; its wish to end the program is no more than that."""


class Caught:
    """Capture an exception of a tool, a preview or a check.

    Args:
        held: the exceptions to capture. Interrupts and cancellation propagate by default.
        passed: of these, the exceptions that propagate nevertheless.

    Attributes:
        error: the exception; None if there was none.
    """

    __slots__ = ("_held", "_passed", "error")

    def __init__(
        self,
        held: tuple[type[BaseException], ...] = HELD,
        *,
        passed: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._held = held
        self._passed = passed
        self.error: BaseException | None = None

    def __enter__(self) -> Caught:
        """Begin the block."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Capture an exception."""
        if error is None or not isinstance(error, self._held) or isinstance(error, self._passed):
            return False
        self.error = error
        return True

    @property
    def message(self) -> str:
        """The exception in one line, without a traceback; a `ToolError` without its type."""
        kind, text = type(self.error).__name__, ""
        with Caught():  # what an error says of itself is foreign code too
            text = str(self.error)
        if isinstance(self.error, ToolError):
            return text or kind
        return f"{kind}: {text}" if text else kind
