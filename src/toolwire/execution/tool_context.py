"""The context of a running call, for tools that ask for it with a parameter of the type `ToolContext`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from toolwire.messages import ToolCall
from toolwire.policy.session import Session

Deps = TypeVar("Deps")


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """The rest of a run's budget; None for no limit.

    Attributes:
        rounds: requests to the model.
        calls: tool calls.
        tokens: tokens read and written.
        seconds: time.
        money: cost, in the currency of the budget's prices.
    """

    rounds: int | None = None
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None


@dataclass(frozen=True, slots=True)
class CallEnvironment:
    """The values that a program gives to the tools that it runs.

    Attributes:
        deps: dependencies of the tools, such as a database connection; any object.
        run_id: name of the run; "" outside of a run.
        report: takes the progress of a call; None to ignore it. Called in the thread in which the tool runs.
        budget_left: returns what the run may still use.
    """

    deps: Any = None
    run_id: str = ""
    report: Callable[[ToolCall, Any], None] | None = None
    budget_left: Callable[[], BudgetLeft] = BudgetLeft


NO_ENVIRONMENT = CallEnvironment()


class ToolContext(Generic[Deps]):
    """The context of a running call.

    A tool gets it in a parameter that is annotated with this class, such as `context: ToolContext[Database]`. Models do
    not see the parameter.

    Attributes:
        deps: what the program passed to `Agent.run(deps=...)`, or to the executor; None if it passed nothing.
        call: the call as it runs, with its id and its validated arguments.
        session: state of the conversation.
        run_id: name of the run; "" outside of a run.
    """

    __slots__ = ("_environment", "_over", "call", "deps", "run_id", "session")
    filled_by_executor: ClassVar[bool] = True
    """The mark by which `toolwire.schema.signatures` leaves such a parameter out of the schema."""

    def __init__(self, call: ToolCall, session: Session, environment: CallEnvironment = NO_ENVIRONMENT) -> None:
        self.call = call
        self.session = session
        self.deps: Deps = environment.deps
        self.run_id = environment.run_id
        self._environment = environment
        self._over = threading.Event()

    def __repr__(self) -> str:
        """Return the name and the id of the call."""
        return f"<ToolContext of {self.call.name} {self.call.id!r}>"

    def report(self, value: Any) -> None:
        """Report progress, which an agent's run emits as `ProgressReported`; nothing once the call was given up."""
        report = self._environment.report
        if report is not None and not self._over.is_set():
            report(self.call, value)

    @property
    def budget_left(self) -> BudgetLeft:
        """The rest of the budget of the run; without limits outside of a run."""
        return self._environment.budget_left()

    @property
    def cancelled(self) -> bool:
        """True once the call was given up: it took too long, or the run was stopped.

        An async function is cancelled by itself. A plain function runs in a thread, which nothing stops from outside:
        if it works for long, it should look here now and then.
        """
        return self._over.is_set()

    def give_up(self) -> None:
        """Record that nobody waits for the call any more."""
        self._over.set()
