"""`toolwire check`: ask a model's endpoint small questions, and say whether it follows its API."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.busy_sign import BUSY
from toolwire.cli.check_report import (
    INTERRUPTION,
    Hidden,
    ResultTable,
    counts_of,
    result_row,
    show_summary,
    write_junit,
    write_report,
)
from toolwire.cli.console import CliError, emit, say
from toolwire.cli.open_endpoint import OpenEndpoint, listed, open_endpoint
from toolwire.cli.option_groups import takes_options
from toolwire.client.endpoints import ENDPOINTS, Endpoint
from toolwire.client.exchange import TIMEOUT
from toolwire.config.option_profiles import option_profile
from toolwire.config.tables import ModelProfile, load_configuration
from toolwire.probes.all_probes import PROBES
from toolwire.probes.probe import Probe, ProbeResult, run_probes
from toolwire.probes.probed_model import MAX_TOKENS, ProbedModel
from toolwire.providers.api_registry import get_api
from toolwire.text.suggest import closest, did_you_mean

EXAMPLES = """Examples:

toolwire check http://localhost:8000/v1 --model Qwen/Qwen3-8B

toolwire check fast --config toolwire.toml --smoke

toolwire check --api anthropic --model claude-sonnet-4-5 --tries 3 --junit check.xml

toolwire check https://api.example.com/v1 --model kimi-k2 --key-env EXAMPLE_KEY --report check.json

toolwire check fast --only calls --only streamed-usage --json

toolwire check vendor --compare maker --config toolwire.toml --report vendor.json

The requests go to the real endpoint and use about 25,000 tokens, with --smoke about 1,200. The key is read from the
environment, and is never shown. A probe that cannot separate the server from the model says "not shown" and why. Each
result is printed when its probe ends.

Exit status: 0 no probe failed, 1 a probe failed or a comparison is under --fail-under, 2 wrong usage, no key is set, or
no API is at the address, 130 interrupted; the reports then have the results so far."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of `check`; see `takes_options`."""

    config: Annotated[str, typer.Option("--config", "-c", help="A TOML file with profiles; see `toolwire init`.")] = (
        "toolwire.toml"
    )
    api: Annotated[str | None, typer.Option(help="The provider API, in place of a profile.")] = None
    base_url: Annotated[
        str | None, typer.Option(help="The server's base URL; its API is openai_chat unless --api names another.")
    ] = None
    model: Annotated[str | None, typer.Option(help="The model's name there; by default the only one it has.")] = None
    key_env: Annotated[str, typer.Option(help="The environment variable that contains the key for the URL.")] = ""
    smoke: Annotated[bool, typer.Option("--smoke", help="Run only the few probes that show most faults.")] = False
    only: Annotated[
        list[str] | None, typer.Option(help="Run only the probe with this id, or those of a theme; may be repeated.")
    ] = None
    tries: Annotated[
        int, typer.Option(min=1, help="Maximum number of times that a rule is examined while it is not shown.")
    ] = 2
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="REFERENCE",
            help="In place of probes, send the same requests to the endpoint and to this one, another profile or URL "
            "with the same model.",
        ),
    ] = None
    requests: Annotated[
        str | None,
        typer.Option(help="The requests of --compare: a file of JSON lines with bodies of Chat Completions."),
    ] = None
    fail_under: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with status 1 if a measure of --compare is below this share."),
    ] = None
    max_tokens: Annotated[
        int,
        typer.Option(
            min=16,
            help="Maximum length of most answers, in tokens; a model that does not reason gets three tenths of it, or "
            "300 if that is more.",
        ),
    ] = MAX_TOKENS
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds that the server may be silent before a request has failed.")
    ] = TIMEOUT
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per probe, and one with the counts.")] = (
        False
    )
    junit: Annotated[str | None, typer.Option(help="Write a report for build servers to this file.")] = None
    report: Annotated[
        str | None, typer.Option(help="Write a JSON report with all requests and answers to this file.")
    ] = None


@takes_options(CheckOptions)
def check(
    options: CheckOptions,
    target: Annotated[str | None, typer.Argument(help="A profile of --config, or the base URL of a server.")] = None,
) -> None:
    """Ask a model's endpoint small questions, and say which rules of its API it breaks."""
    _check_mode(options)
    _check_files(options)
    profile = _checked_profile(target, options)
    if options.compare is not None:
        from toolwire.cli.compare_vendors import compare_endpoints  # here, because only it needs the extra

        reference = _checked_profile(options.compare, _for_reference(options))
        if not compare_endpoints(reference, profile, options):
            raise typer.Exit(1)
        return
    with needs_extra("A check"):
        probes = _chosen(options.only or [], smoke=options.smoke)
        results = asyncio.run(_run(open_endpoint(profile, timeout=options.timeout), probes, options))
    counts = counts_of(results)
    if options.json:
        emit(counts)
    else:
        show_summary(results)
    if counts["failed"]:
        raise typer.Exit(1)


def _checked_profile(target: str | None, options: CheckOptions) -> ModelProfile:
    """Return the profile that is checked: one of a file, or one of the options.

    Raises:
        CliError, ConfigurationError, UnknownApi: the arguments name none.
    """
    url = options.base_url
    if target is not None and _is_url(target):
        if url is not None:
            raise CliError("give the URL once: as the first argument, or with --base-url")
        target, url = None, target
    if target is not None:
        if options.api is not None or url is not None or options.model is not None:
            raise CliError("--api, --base-url and --model take the place of a profile: give one or the other")
        return _profile(target, options.config)
    if url is None and (options.api is None or options.model is None):
        raise CliError("give a profile of --config or a URL, or --model with --api or --base-url")
    if options.api is not None:
        get_api(options.api)
    return option_profile(provider=options.api or "", model=options.model or "", url=url or "", key_env=options.key_env)


def _check_mode(options: CheckOptions) -> None:
    """Check that no option of probes is beside --compare, and none of --compare without it.

    Raises:
        CliError: one is.
    """
    if options.compare is None:
        for name, value in (("requests", options.requests), ("fail-under", options.fail_under)):
            if value is not None:
                raise CliError(f"--{name} belongs to --compare")
        return
    for name, is_set in (("smoke", options.smoke), ("only", options.only), ("junit", options.junit)):
        if is_set:
            raise CliError(f"--{name} belongs to the probes, which --compare does not run")


def _check_files(options: CheckOptions) -> None:
    """Check that the reports can be written, before requests are paid for whose answers would be lost.

    Raises:
        CliError: one cannot be.
    """
    for name, file in (("report", options.report), ("junit", options.junit)):
        if file is None:
            continue
        path = Path(file)
        if path.is_dir():
            raise CliError(f"--{name} {file}: it is a directory; name a file")
        if not path.parent.is_dir():
            raise CliError(f"--{name} {file}: there is no directory {path.parent}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise CliError(f"--{name} {file}: it cannot be written")


def _for_reference(options: CheckOptions) -> CheckOptions:
    """Return the options with which the reference of a comparison is opened: a URL keeps those of the endpoint."""
    is_url = _is_url(options.compare or "")
    return replace(options, base_url=None) if is_url else replace(options, base_url=None, api=None, model=None)


def _is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _chosen(only: list[str], *, smoke: bool) -> list[Probe]:
    """Return the probes that the options name.

    Raises:
        CliError: there is no such probe.
    """
    names = [*dict.fromkeys(probe.theme for probe in PROBES), *(probe.id for probe in PROBES)]
    for name in only:
        if name not in names:
            raise CliError(f"there is no probe {name!r}{did_you_mean(closest(name, names)) or listed(names)}")
    return [
        probe
        for probe in PROBES
        if (not only or probe.id in only or probe.theme in only) and (probe.smoke or not smoke)
    ]


def _profile(name: str, config: str) -> ModelProfile:
    """Return a profile of a file.

    Raises:
        CliError, ConfigurationError: the file cannot be read, or has no such profile.
    """
    may_be_address = "/" in name or ":" in name
    profiles = {} if may_be_address and not Path(config).exists() else load_configuration(config).profiles
    if name not in profiles:
        if may_be_address:
            raise CliError(f"{config} has no profile {name!r}; a URL begins with http:// or https://")
        hint = did_you_mean(closest(name, profiles)) or (listed(profiles) if profiles else "; it has no profiles")
        raise CliError(f"{config} has no profile {name!r}{hint}")
    return profiles[name]


def _no_wrong_key(profile: ModelProfile, endpoint: Endpoint) -> str:
    """Return why no request with a wrong key can be sent; "" if one can."""
    if endpoint.signed:
        return "requests are signed, and no key is sent"
    has_key = profile.key_env or (not profile.url and endpoint.key and endpoint.base_url.startswith("https://"))
    return "" if has_key else "no key is set for this server"


async def _run(opened: OpenEndpoint, probes: list[Probe], options: CheckOptions) -> list[ProbeResult]:
    """Run the probes, show each result when it is known, and write the reports.

    Raises:
        ConfigurationError: no key is set, or no API is at the address.
        OSError: a report cannot be written.
        CancelledError: the check was interrupted; the reports are written.
    """
    results: list[ProbeResult] = []
    try:
        opened = await opened.with_model()
        client = opened.connect(opened.transport, False)
        endpoint = ENDPOINTS.get(opened.api.name, Endpoint())
        model = ProbedModel(
            opened.api,
            opened.connect,
            opened.transport,
            no_wrong_key=_no_wrong_key(opened.profile, endpoint),
            signed=endpoint.signed,
            max_tokens=options.max_tokens,
        )
        try:
            await _run_probes(model, probes, options, client.without_secrets, results)
        except asyncio.CancelledError:  # Ctrl-C: the requests so far are paid for
            remaining = probes[len(results) :]
            not_run = [ProbeResult(probe, "not shown", INTERRUPTION) for probe in remaining]
            _write_reports(opened, [*results, *not_run], options, client.without_secrets)
            say(f"toolwire: {INTERRUPTION} with {len(remaining)} of {len(probes)} probes left", "yellow")
            raise
        _write_reports(opened, results, options, client.without_secrets)
    finally:
        await opened.transport.close()
    return results


async def _run_probes(
    model: ProbedModel, probes: list[Probe], options: CheckOptions, hidden: Hidden, results: list[ProbeResult]
) -> None:
    """Run the probes, show each result when it is known, and add it to a list, which outlives an interruption."""
    table = ResultTable(probes)
    with BUSY.counting("probes", [probe.id for probe in probes]) as next_probe:
        async for result in run_probes(model, probes, tries=options.tries):
            # A reason quotes the answer, in which a faulty server may quote the key.
            results.append(replace(result, reason=hidden(result.reason)))
            with BUSY.pause():
                if options.json:
                    emit(result_row(results[-1]))
                else:
                    table.show(results[-1])
            next_probe()


def _write_reports(opened: OpenEndpoint, results: Sequence[ProbeResult], options: CheckOptions, hidden: Hidden) -> None:
    """Write the reports that the options name.

    Raises:
        OSError: one cannot be written.
    """
    target = {"api": opened.api.name, "model": opened.profile.model, "url": opened.profile.url}
    if options.report is not None:
        write_report(options.report, target, results, hidden)
    if options.junit is not None:
        write_junit(options.junit, f"{opened.api.name} {opened.profile.model}", results, hidden)
