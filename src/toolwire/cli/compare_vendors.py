"""`toolwire check --compare`: the same requests to two endpoints of one model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolwire._surface import needs_extra
from toolwire.cli.busy_sign import BUSY
from toolwire.cli.check_report import INTERRUPTION
from toolwire.cli.console import emit, say
from toolwire.cli.open_endpoint import OpenEndpoint, open_endpoint
from toolwire.cli.vendor_report import comparison_row, show_comparison, write_comparison
from toolwire.config.tables import ModelProfile
from toolwire.errors import ConfigurationError

with needs_extra("A comparison", "eval"):
    from toolwire.evaluation.compared_requests import ComparedRequest, own_requests, read_requests
    from toolwire.evaluation.vendor_comparison import ComparedAnswers, VendorAnswer, VendorComparison, compare_vendors

if TYPE_CHECKING:
    from toolwire.cli.check_command import CheckOptions
    from toolwire.client.client import Client
    from toolwire.messages import ParsedResponse
    from toolwire.providers.request import ChatRequest


def compare_endpoints(reference: ModelProfile, compared: ModelProfile, options: CheckOptions) -> bool:
    """Compare two endpoints, show the result, and return whether all measures reach `--fail-under`.

    Raises:
        ConfigurationError: the requests cannot be read, or an endpoint answered none of them; the report is written.
        OSError: the report cannot be written.
    """
    requests = own_requests()
    if options.requests is not None:
        requests, broken = read_requests(Path(options.requests))
        for row in broken:
            say(f"toolwire: {row.place}: {row.reason}; it is left out", "")
    maker, vendor = (open_endpoint(profile, timeout=options.timeout) for profile in (reference, compared))
    comparison = asyncio.run(_run(maker, vendor, requests, options))
    if options.fail_under is None:
        return True
    measures = (comparison.compared_accuracy.value, comparison.similarity.f1)
    # A measure that no answer counts for is not one that is reached.
    return all(measure is not None and measure >= options.fail_under for measure in measures)


async def _run(
    reference: OpenEndpoint, compared: OpenEndpoint, requests: Sequence[ComparedRequest], options: CheckOptions
) -> VendorComparison:
    """Compare two endpoints, show the result, and write the report.

    Raises:
        ConfigurationError: an endpoint answered no request; the report is written.
        OSError: the report cannot be written.
        CancelledError: the comparison was interrupted; the report is written.
    """
    answers: dict[str, ComparedAnswers] = {}
    try:
        reference, compared = await reference.with_model(), await compared.with_model()
        names = {"reference": _name(reference), "compared": _name(compared)}
        clients = [endpoint.connect(endpoint.transport, False) for endpoint in (reference, compared)]
        ask = [partial(_ask, client, options.max_tokens) for client in clients]
        try:
            with BUSY.counting("requests", [""] * len(requests)) as next_request:

                def keep(answer: ComparedAnswers) -> None:
                    answers[answer.request] = answer
                    next_request()

                comparison = await compare_vendors(ask[0], ask[1], requests, each=keep)
        except asyncio.CancelledError:  # Ctrl-C: the requests so far are paid for
            in_order = tuple(answers[request.id] for request in requests if request.id in answers)
            left = len(requests) - len(answers)
            _write_report(_without_secrets(VendorComparison(in_order), clients), names, options, left)
            say(f"toolwire: {INTERRUPTION} with {left} of {len(requests)} requests left", "yellow")
            raise
    finally:
        await reference.transport.close()
        await compared.transport.close()

    comparison = _without_secrets(comparison, clients)
    _write_report(comparison, names, options)
    _check_answered(comparison, names)
    if options.json:
        emit({"endpoints": names, **comparison_row(comparison)})
    else:
        show_comparison(comparison, names)
    return comparison


def _write_report(
    comparison: VendorComparison, names: Mapping[str, str], options: CheckOptions, requests_left: int = 0
) -> None:
    """Write the report if the options name a file; a comparison that was interrupted has requests left.

    Raises:
        OSError: it cannot be written.
    """
    if options.report is not None:
        write_comparison(options.report, names, comparison, requests_left)


async def _ask(client: Client, max_tokens: int, chat: ChatRequest) -> ParsedResponse:
    return await client.ask(chat if chat.max_tokens else replace(chat, max_tokens=max_tokens))


def _name(endpoint: OpenEndpoint) -> str:
    return f"{endpoint.profile.model} at {endpoint.profile.url or endpoint.api.name}"


def _without_secrets(comparison: VendorComparison, clients: Sequence[Client]) -> VendorComparison:
    """Return a comparison whose texts contain no key: they quote servers, which may quote one."""

    def hidden(text: str) -> str:
        for client in clients:
            text = client.without_secrets(text)
        return text

    def cleaned(answer: VendorAnswer) -> VendorAnswer:
        return replace(answer, faults=tuple(map(hidden, answer.faults)), error=hidden(answer.error))

    pairs = (replace(p, reference=cleaned(p.reference), compared=cleaned(p.compared)) for p in comparison.answers)
    return VendorComparison(tuple(pairs))


def _check_answered(comparison: VendorComparison, names: Mapping[str, str]) -> None:
    """Check that each endpoint has answered at least one request.

    Raises:
        ConfigurationError: one has not; its first error is the reason.
    """
    for column, answers in comparison.columns.items():
        if all(answer.is_called is None for answer in answers):
            raise ConfigurationError(f"{names[column]} answered no request: {answers[0].error}")
