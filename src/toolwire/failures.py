"""What foreign code raised, kept for whoever answers for it: the one place that catches whatever error comes."""

from __future__ import annotations

from toolwire.errors import ToolError


class Caught:
    """Around a call of a tool, a preview or a check: any error is theirs, and is held.

    Interrupts and cancellation pass through; that a tool wants to end the program is only an error of its own.

    Attributes:
        error: what was raised; None if nothing was.
    """

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: Exception | SystemExit | None = None

    def __enter__(self) -> Caught:
        """Begin."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Hold an error."""
        if isinstance(error, Exception | SystemExit):
            self.error = error
            return True
        return False

    @property
    def message(self) -> str:
        """The error in one line, without its trace; a `ToolError` speaks for itself."""
        if isinstance(self.error, ToolError):
            return str(self.error)
        return f"{type(self.error).__name__}: {self.error}".removesuffix(": ")
