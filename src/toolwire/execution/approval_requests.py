"""Requests for approval: the preview of a call, the question to a person, and the answer."""

from __future__ import annotations

import asyncio
import inspect
import logging
import reprlib
from collections.abc import Awaitable, Callable, Collection

from toolwire._surface import wrong_type
from toolwire.errors import capture_errors
from toolwire.execution.confirmation import answering, as_async
from toolwire.execution.outcomes import Issue, copy_json
from toolwire.execution.prepared_call import PreparedCall, replace_call
from toolwire.policy.approval import Approval, ApprovalAnswer
from toolwire.policy.fingerprint import approval_key, shown_key
from toolwire.policy.policy import Ask, Decision, Deny
from toolwire.policy.session import Session
from toolwire.runtime.abandonment import abandonable

_log = logging.getLogger("toolwire.execution")

AsyncConfirm = Callable[[Approval], Awaitable[ApprovalAnswer | bool]]
Confirm = Callable[[Approval], Awaitable[ApprovalAnswer | bool] | ApprovalAnswer | bool]
"""Asks a person for an approval. A plain function is called in a thread, for one question at a time."""


class ApprovalRequests:
    """The questions of one executor. Equal questions of one session are asked once.

    Args:
        confirm: asks a person; None if there is nobody to ask.
        timeout: seconds in which the person has to answer.
    """

    def __init__(self, confirm: Confirm | None, timeout: float) -> None:
        self._confirm = async_confirm(confirm)
        self._timeout = timeout
        self._open: dict[tuple[int, int, str], asyncio.Event] = {}  # by event loop, account and approval key

    async def request(
        self, prepared: PreparedCall, ask: Ask, session: Session, decide: Callable[[], Decision]
    ) -> Issue | None:
        """Ask for the approval of a call; return the issue if it was not given.

        Args:
            prepared: the call.
            ask: the decision that requires an approval.
            session: it records the answer.
            decide: decides about the call again.
        """
        call, definition = prepared.call, prepared.tool.definition
        if self._confirm is None:
            return Issue("confirmation", f"{ask.reason} Nobody is there to approve it, so it did not run.")
        # Before the first await: questions of one response are asked in the order of its calls.
        shown = add_preview(prepared, ask)
        if isinstance(shown, Deny):
            return Issue("denied", shown.reason, definition.untrusted)
        key = approval_key(call, definition)
        # Events belong to one loop, so executors in several threads ask separately.
        place = id(asyncio.get_running_loop()), session.account, key
        while (answered := self._open.get(place)) is not None:
            await answered.wait()
            # The answer may be remembered for the session. A person who said "always" is not asked twice.
            again = decide()
            if isinstance(again, Deny):
                return Issue("denied", again.reason)
            if not isinstance(again, Ask):
                return None
        self._open[place] = answered = asyncio.Event()
        try:
            # A hook that changes the arguments it shows changes a copy, and not the call that will run.
            exact = replace_call(call, call.name, copy_json(call.arguments))
            approval = Approval(exact, definition, shown.reason, shown.preview)
            return await self._ask(self._confirm, approval, key, session)
        finally:
            del self._open[place]
            answered.set()

    async def _ask(self, confirm: AsyncConfirm, approval: Approval, key: str, session: Session) -> Issue | None:
        """Return None if a person approved the call."""
        name = approval.call.name
        answer: object = None
        try:
            with capture_errors() as caught:
                async with answering(self._timeout):
                    answer = await abandonable(confirm(approval), f"the question about {name}")
        except asyncio.CancelledError:
            # A hook may cancel itself, for example when its window is closed. That is an answer, and not a
            # cancellation of the task that waits here, which has to propagate.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Issue("denied", f"The question about {name} was withdrawn, so it did not run.")
        if isinstance(caught.error, TimeoutError):
            return Issue("denied", f"Nobody approved {name} in time, so it did not run.")
        if caught.error is not None:
            # The model alone would learn of it, and the program's author would take it for a refusal.
            _log.warning("confirm failed, so nobody was asked about %s: %s", name, caught.message)
            return Issue("denied", f"Nobody could be asked about {name}, so it did not run: {caught.message}")
        if not isinstance(answer, (ApprovalAnswer, bool)):
            # A faulty hook may return any object. Most objects are true, and one that forgot its answer returns None:
            # neither is what a person said, so the message must not say that the user refused.
            wrong = f"confirm returned {reprlib.repr(answer)}, and not True, False or an ApprovalAnswer"
            _log.warning("%s, so nobody was asked about %s", wrong, name)
            return Issue("denied", f"Nobody could be asked about {name}, so it did not run: {wrong}.")
        agreement = answer if isinstance(answer, ApprovalAnswer) else ApprovalAnswer(answer)
        if agreement.remember:
            # A yes is about what was shown, such as the change of a file; a no is about the call, whatever it changes.
            remembered = shown_key(key, approval.preview) if agreement.approved else key
            session.record_decision(remembered, approved=agreement.approved)
        if agreement.approved:
            return None
        why = f": {agreement.reason}" if agreement.reason else "."
        if agreement.unanswered:
            return Issue("denied", f"Nobody has approved this call of {name}, so it did not run{why}")
        # The same call is not asked about again in this turn, or a model that repeats it would wear the user down.
        session.record_refusal(key)
        return Issue("denied", f"{agreement.by} refused this call of {name}{why}")


def add_preview(prepared: PreparedCall, ask: Ask) -> Ask | Deny:
    """Return the question with a preview of the call, if the tool has one."""
    preview = prepared.tool.behavior.preview
    if preview is None:
        return ask
    with capture_errors() as caught:
        text: object = preview(copy_json(prepared.call.arguments))
        if isinstance(text, str):
            return Ask(ask.reason, text)
        if inspect.iscoroutine(text):
            text.close()  # otherwise Python warns that it was never awaited
        raise TypeError(f"its preview returned {type(text).__name__} and not text")
    # Without the preview a person would approve blindly a call that the tool's author wanted to be seen.
    return Deny(f"What {prepared.call.name} would do cannot be shown, so it did not run: {caught.message}")


def approved_as_shown(prepared: PreparedCall, approved: Collection[str]) -> Collection[str]:
    """Return the approvals of a session that apply to a call: if it has a preview, those that were given after it.

    The same arguments may mean something else by now, for example a file that a link leads to.
    """
    key = approval_key(prepared.call, prepared.tool.definition)
    if not any(shown.startswith(key) for shown in approved):
        return frozenset()
    shown = add_preview(prepared, Ask(""))
    return {key} if isinstance(shown, Ask) and shown_key(key, shown.preview) in approved else frozenset()


def async_confirm(confirm: Confirm | None) -> AsyncConfirm | None:
    """Return a confirmation hook as an async one.

    Raises:
        TypeError: it cannot be called.
    """
    if confirm is None:
        return None
    if not callable(confirm):
        raise wrong_type("confirm", confirm, "a function of an Approval that returns True or False")
    return as_async(confirm)
