"""Two endpoints of one model get the same requests: do both call tools for the same ones, with valid arguments?

The two measures are defined as in Moonshot AI's verifier of the vendors of Kimi K2
(https://github.com/MoonshotAI/K2-Vendor-Verifier).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from toolwire.errors import ProviderError
from toolwire.evaluation.compared_requests import ComparedRequest
from toolwire.evaluation.intervals import Share, share_of, share_of_counts
from toolwire.messages import FinishReason, ParsedResponse
from toolwire.probes.answer_members import value_at
from toolwire.providers.request import ChatRequest
from toolwire.schema.validation import validate

Ask = Callable[[ChatRequest], Awaitable[ParsedResponse]]
"""Sends a request to an endpoint, and returns the answer; raises `ProviderError` if there is none."""


@dataclass(frozen=True, slots=True)
class VendorAnswer:
    """An answer of an endpoint to one request.

    Attributes:
        is_called: whether the answer says that it ends with calls; None without an answer.
        faults: what is wrong with its calls; empty if their arguments are valid, and without calls.
        error: why there is no answer; "" if there is one.
    """

    is_called: bool | None
    faults: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """The answers of both endpoints to one request.

    Attributes:
        request: the id of the request.
        reference: the answer of the endpoint that is the measure.
        compared: the answer of the other endpoint.
    """

    request: str
    reference: VendorAnswer
    compared: VendorAnswer


@dataclass(frozen=True, slots=True)
class TriggerSimilarity:
    """The requests for which two endpoints call tools, compared; only those that both have answered count.

    Attributes:
        both: the number of requests for which both called.
        only_reference, only_compared: the number for which only this endpoint called.
        neither: the number for which none called.
        low, high: the ends of the interval of F1 at the level of `Share`; 0 and 1 if no endpoint called.
    """

    both: int
    only_reference: int
    only_compared: int
    neither: int
    low: float
    high: float

    @property
    def precision(self) -> float | None:
        """The share of the calls of the compared endpoint that the reference made too; None without any."""
        return _ratio(self.both, self.both + self.only_compared)

    @property
    def recall(self) -> float | None:
        """The share of the calls of the reference that the compared endpoint made too; None without any."""
        return _ratio(self.both, self.both + self.only_reference)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall; None if no endpoint called."""
        return _ratio(2 * self.both, 2 * self.both + self.only_reference + self.only_compared)


@dataclass(frozen=True, slots=True)
class VendorComparison:
    """The result of a comparison.

    Attributes:
        answers: the answers, in the order of the requests.
    """

    answers: tuple[ComparedAnswers, ...]

    @property
    def columns(self) -> dict[str, list[VendorAnswer]]:
        """The answers of "reference" and of "compared"."""
        return {
            "reference": [pair.reference for pair in self.answers],
            "compared": [pair.compared for pair in self.answers],
        }

    @property
    def similarity(self) -> TriggerSimilarity:
        """The similarity of the requests for which the endpoints called."""
        pairs = [(pair.reference.is_called, pair.compared.is_called) for pair in self.answers]
        both, neither = pairs.count((True, True)), pairs.count((False, False))
        only_reference, only_compared = pairs.count((True, False)), pairs.count((False, True))
        # F1 grows with the share of common calls in all calls, which is binomial: its interval becomes that of F1.
        common = share_of_counts(both, both + only_reference + only_compared)
        low, high = (2 * end / (1 + end) for end in (common.low, common.high))
        return TriggerSimilarity(both, only_reference, only_compared, neither, low, high)

    @property
    def reference_accuracy(self) -> Share:
        """The share of the reference's answers with calls in which all calls follow the schemas of their tools."""
        return _accuracy(self.columns["reference"])

    @property
    def compared_accuracy(self) -> Share:
        """The same share of the compared endpoint."""
        return _accuracy(self.columns["compared"])


async def compare_vendors(
    reference: Ask,
    compared: Ask,
    requests: Sequence[ComparedRequest],
    *,
    concurrency: int = 4,
    each: Callable[[ComparedAnswers], None] = lambda answers: None,
) -> VendorComparison:
    """Send the same requests to two endpoints.

    Args:
        reference: asks the endpoint that is the measure, such as that of the model's maker.
        compared: asks the other endpoint.
        requests: the requests.
        concurrency: the number of requests that an endpoint answers at the same time.
        each: called with the answers to a request once both are known.
    """
    places = asyncio.Semaphore(concurrency)

    async def ask(request: ComparedRequest) -> ComparedAnswers:
        async with places:
            first, second = await asyncio.gather(_answer(reference, request), _answer(compared, request))
        answers = ComparedAnswers(request.id, first, second)
        each(answers)
        return answers

    # Both endpoints get a request at the same time, so that neither is measured at a busier hour.
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(request)) for request in requests]
    return VendorComparison(tuple(task.result() for task in tasks))


def judged(response: ParsedResponse, chat: ChatRequest) -> VendorAnswer:
    """Return whether an answer ends with calls, and what is wrong with them."""
    # Programs look at the finish reason: calls of an answer that ends with another one do not run.
    if not _ends_with_calls(response):
        return VendorAnswer(is_called=False)
    schemas = {tool.name: tool.parameters for tool in chat.tools}
    broken = [f"{call.name}: the call is not complete" for call in response.incomplete]
    wrong = chain.from_iterable(_faults(call.name, call.arguments, schemas) for call in response.tool_calls)
    faults = [*broken, *wrong]
    if not (faults or response.tool_calls):
        problems = [problem.message for problem in response.problems]
        faults = problems or ["the answer says that it ends with calls, and has none"]
    return VendorAnswer(is_called=True, faults=tuple(faults))


def _ends_with_calls(response: ParsedResponse) -> bool:
    # The reason of an answer that was read depends on its calls. Here the one that the server sent counts.
    reason = value_at(response.raw, "choices.0.finish_reason")
    is_known = isinstance(reason, str)
    return reason == "tool_calls" if is_known else response.finish_reason is FinishReason.TOOL_CALLS


def _faults(name: str, arguments: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    if name not in schemas:
        return [f"{name}: no such tool was offered"]
    return [f"{name}: {issue}" for issue in validate(arguments, schemas[name])]


async def _answer(ask: Ask, request: ComparedRequest) -> VendorAnswer:
    try:
        response = await ask(request.chat)
    except ProviderError as error:
        return VendorAnswer(None, error=str(error))
    return judged(response, request.chat)


def _accuracy(answers: Sequence[VendorAnswer]) -> Share:
    return share_of([not answer.faults for answer in answers if answer.is_called])


def _ratio(count: int, total: int) -> float | None:
    return count / total if total else None
