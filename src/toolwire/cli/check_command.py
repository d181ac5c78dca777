"""`toolwire check`: ask a model's endpoint small questions, and say whether it follows its API."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.console import CliError, console, emit, labelled
from toolwire.cli.option_groups import takes_options
from toolwire.client.endpoints import ENDPOINTS, Endpoint
from toolwire.config.tables import ModelProfile, load_configuration
from toolwire.errors import ConfigurationError
from toolwire.probes.probe import Probe, ProbeResult, run_probes
from toolwire.probes.probed_model import ProbedModel
from toolwire.probes.smoke_probes import SMOKE_PROBES
from toolwire.providers.api_registry import get_api
from toolwire.text.suggest import closest, did_you_mean

EXAMPLES = """Examples:

toolwire check fast --config toolwire.toml --smoke

toolwire check --api anthropic --model claude-sonnet-4-5 --smoke

toolwire check --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B --smoke --json

toolwire check fast --only one-call --only streamed-call

The requests go to the real endpoint and use about 4,000 tokens. The key is read from the environment, and is never
shown. A model that does not do what it is asked fails a probe too, so run a probe that fails a second time.

Exit status: 0 no probe failed, 1 a probe failed, 2 wrong usage, or no key is set."""

PROBES: tuple[Probe, ...] = tuple(SMOKE_PROBES)
"""All probes."""
_WRONG_KEY = "wrong-key-of-toolwire-check"
_STYLES = {"passed": "green", "failed": "red", "skipped": "yellow"}


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
    model: Annotated[str | None, typer.Option(help="The model's name there.")] = None
    key_env: Annotated[str, typer.Option(help="The environment variable that contains the key for --base-url.")] = ""
    smoke: Annotated[bool, typer.Option("--smoke", help="Run only the few probes that show most faults.")] = False
    only: Annotated[list[str] | None, typer.Option(help="Run only the probe with this id; may be repeated.")] = None
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per probe, and one with the counts.")] = (
        False
    )


@takes_options(CheckOptions)
def check(
    options: CheckOptions,
    profile: Annotated[str | None, typer.Argument(help="A profile of --config.")] = None,
) -> None:
    """Ask a model's endpoint a few small questions, and say whether it follows its API."""
    probes = _chosen(options.only or [], smoke=options.smoke)
    with needs_extra("A check"):
        results = asyncio.run(_run(_checked_profile(profile, options), probes, json=options.json))
    counts = Counter[str](result.status for result in results)
    if options.json:
        emit({status: counts[status] for status in _STYLES})
    else:
        summary = ", ".join(f"{counts[status]} {status}" for status in _STYLES)
        console().print(labelled("", summary, indent=8))
    if counts["failed"]:
        raise typer.Exit(1)


def _checked_profile(name: str | None, options: CheckOptions) -> ModelProfile:
    """Return the profile that is checked: one of a file, or one of the options.

    Raises:
        CliError, ConfigurationError, UnknownApi: the arguments name none.
    """
    if name is not None:
        if options.api is not None or options.base_url is not None or options.model is not None:
            raise CliError("--api, --base-url and --model take the place of a profile: give one or the other")
        return _profile(name, options.config)
    if (options.api is None and options.base_url is None) or options.model is None:
        raise CliError("give a profile of --config, or --model with --api or --base-url")
    if options.api is not None:
        get_api(options.api)
    return ModelProfile(
        provider=options.api or "", model=options.model, url=options.base_url or "", key_env=options.key_env
    )


def _chosen(only: list[str], *, smoke: bool) -> list[Probe]:
    """Return the probes that the options name.

    Raises:
        CliError: there is no such probe.
    """
    ids = [probe.id for probe in PROBES]
    for name in only:
        if name not in ids:
            raise CliError(f"there is no probe {name!r}{did_you_mean(closest(name, ids)) or _listed(ids)}")
    return [probe for probe in PROBES if (not only or probe.id in only) and (probe.smoke or not smoke)]


def _listed(names: Iterable[str]) -> str:
    return f"; there are {', '.join(names)}"


def _profile(name: str, config: str) -> ModelProfile:
    """Return a profile of a file.

    Raises:
        CliError, ConfigurationError: the file cannot be read, or has no such profile.
    """
    profiles = load_configuration(config).profiles
    if name not in profiles:
        hint = did_you_mean(closest(name, profiles)) or (_listed(profiles) if profiles else "; it has no profiles")
        raise CliError(f"{config} has no profile {name!r}{hint}")
    return profiles[name]


async def _run(profile: ModelProfile, probes: list[Probe], *, json: bool) -> list[ProbeResult]:
    """Run the probes and show each result when it is known.

    Raises:
        ConfigurationError: the profile names no endpoint, or no key is set.
    """
    from toolwire.agent.model_pool import api_of, local_name, open_client  # here, because agents are slow to import
    from toolwire.client.transport import Retry

    if name := local_name(profile):
        raise ConfigurationError(f"{name} runs in this process: there is no endpoint to check")
    if not profile.model:
        raise ConfigurationError("the profile names no model")
    chosen_api = api_of(profile, profile.negotiator().negotiate(profile.provider, profile.model))
    endpoint = ENDPOINTS.get(chosen_api.name, Endpoint())
    client = open_client(profile, chosen_api, text_format=None)
    wrong_client, no_wrong_key = None, "no key is set for this server"
    if endpoint.signed:
        no_wrong_key = "requests are signed, and no key is sent"
    elif profile.key_env or (not profile.url and endpoint.key and endpoint.base_url.startswith("https://")):
        wrong_client = open_client(profile, chosen_api, text_format=None, key=_WRONG_KEY, retry=Retry(attempts=1))
    results = []
    try:
        async for result in run_probes(ProbedModel(client, wrong_client, no_wrong_key=no_wrong_key), probes):
            # A reason quotes the answer, in which a faulty server may quote the key.
            shown = replace(result, reason=client.without_secrets(result.reason))
            results.append(shown)
            _show(shown, json=json)
    finally:
        await client.close()
        if wrong_client is not None:
            await wrong_client.close()
    return results


def _show(result: ProbeResult, *, json: bool) -> None:
    if json:
        emit(asdict(result))
        return
    text = f"{result.probe}: {result.reason or result.title}"
    if result.status == "failed":
        text += f" ({result.title} {result.source})"
    console().print(labelled(result.status, text, _STYLES[result.status], indent=8))
