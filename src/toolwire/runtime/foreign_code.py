"""What foreign code raised, kept for whoever answers for it: the one place that catches whatever error comes."""

from __future__ import annotations

from toolwire.errors import ToolError

HELD = (Exception, SystemExit)
"""What is a tool's own trouble: that it wants to end the program is no more than that."""


class Caught:
    """Around a call of a tool, a preview or a check: any error is theirs, and is held.

    Args:
        held: what is held. Interrupts and cancellation pass through unless this says otherwise.
        passed: of that, what passes through all the same.

    Attributes:
        error: what was raised; None if nothing was.
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
        """Begin."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Hold an error."""
        if error is None or not isinstance(error, self._held) or isinstance(error, self._passed):
            return False
        self.error = error
        return True

    @property
    def message(self) -> str:
        """The error in one line, without its trace; a `ToolError` speaks for itself."""
        kind, said = type(self.error).__name__, ""
        with Caught():  # what an error says of itself is foreign code too
            said = str(self.error)
        if isinstance(self.error, ToolError):
            return said or kind
        return f"{kind}: {said}" if said else kind
