"""Several questions as one: what the calls of one response ask is shown together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from toolwire.consent import Agreement, Approval
from toolwire.failures import Caught

Answers = Sequence[Agreement | bool]


class Together:
    """A `Confirm` for an executor that asks once for all calls which wait for an answer at the same time.

    Calls of one response are decided about one right after the other, so their questions arrive together. Each gets an
    answer of its own.

    Args:
        ask: gets the approvals in the order of their calls; gives as many answers, in that order.
    """

    def __init__(self, ask: Callable[[Sequence[Approval]], Awaitable[Answers]]) -> None:
        self._ask = ask
        self._waiting: list[tuple[Approval, asyncio.Future[Agreement | bool]]] = []
        self._asking: set[asyncio.Task[None]] = set()

    async def __call__(self, approval: Approval) -> Agreement | bool:
        """Wait for the answer to one approval.

        Raises:
            ValueError: `ask` gave another number of answers than it was asked for.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Agreement | bool] = loop.create_future()
        self._waiting.append((approval, answer))
        if len(self._waiting) == 1:
            loop.call_soon(self._begin)  # after the calls that are decided about in this turn of the loop
        return await answer

    def _begin(self) -> None:
        asked, self._waiting = [one for one in self._waiting if not one[1].done()], []
        if asked:
            task = asyncio.ensure_future(self._settle(asked))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _settle(self, asked: list[tuple[Approval, asyncio.Future[Agreement | bool]]]) -> None:
        answers: Answers = ()
        with Caught() as caught:
            answers = await self._ask([approval for approval, _ in asked])
            if len(answers) != len(asked):
                raise ValueError(f"{len(asked)} questions were asked, and {len(answers)} answers came")
        for at, (_, answer) in enumerate(asked):
            if answer.done():
                continue  # nobody waits for it any more
            if caught.error is not None:
                answer.set_exception(caught.error)
            else:
                answer.set_result(answers[at])
