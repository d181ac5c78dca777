"""The run of `toolwire serve`: models from a file or from options, served until the process ends."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from toolwire.agent.model_pool import LOCAL, Models
from toolwire.cli.agent_options import DEFAULT_MODEL
from toolwire.cli.console import say
from toolwire.cli.open_agent import load_local
from toolwire.config.gateway_tables import STORE, GatewayModelTable, GatewayTable
from toolwire.config.tables import Configuration, ModelProfile, Tools, load_configuration
from toolwire.gateway.aiohttp_transport import AiohttpTransport
from toolwire.gateway.model_loading import ANY_MODEL, load_models
from toolwire.gateway.model_table import ModelTable
from toolwire.gateway.reloading import reload_models
from toolwire.gateway.serving import ServerOptions, new_event_loop, serve
from toolwire.gateway.state_store import IN_MEMORY, opened_store

KEYS = "TOOLWIRE_GATEWAY_KEYS"
"""The environment variable with the keys that clients may send, separated by commas."""
_PROFILE = "model"


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """The options of the command that name the backend; see the command."""

    url: str = ""
    api: str = ""
    model: str = ""
    key_env: str = ""
    text_format: str = ""


def serve_file(path: Path) -> None:
    """Serve the models of a file.

    Raises:
        ConfigurationError: the file cannot be used, or the server cannot listen.
        ProviderError: a model on this machine cannot be loaded.
    """
    _run(load_configuration(path), path)


def serve_backend(options: BackendOptions, host: str, port: int) -> None:
    """Serve one backend, or without options a model on this machine; see `serve_file` for the errors."""
    is_remote = bool(options.url or options.api)
    name = options.model or (ANY_MODEL if is_remote else DEFAULT_MODEL)
    profile = ModelProfile(
        provider=options.api or ("openai_compatible" if options.url else LOCAL),
        model=name,
        url=options.url,
        key_env=options.key_env,
        tools=Tools(definition_format=options.text_format or None),
    )
    # Clients ask for several models, and all of them are this one.
    models = {name: GatewayModelTable(profile=_PROFILE) for name in dict.fromkeys((name, ANY_MODEL))}
    table = GatewayTable(host=host, port=port, models=models)
    _run(Configuration(profiles={_PROFILE: profile}, gateway=table))


def store_url(table: GatewayTable) -> str:
    """Return the URL of the gateway's store: that of the environment, else that of the file; "" if none is named."""
    return os.environ.get(STORE, "").strip() or table.store


def _run(configuration: Configuration, path: Path | None = None) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(configuration, path))


async def _serve(configuration: Configuration, path: Path | None) -> None:
    table = configuration.gateway
    keys = tuple(key.strip() for key in os.environ.get(KEYS, "").split(",") if key.strip())
    options = ServerOptions(
        table.host,
        table.port,
        reuse_port=table.reuse_port,
        keys=keys,
        virtual_keys=table.virtual_keys,
        hosts=table.hosts,
        origins=table.origins,
        max_body=table.max_body << 20,
        response_seconds=table.response_days * 86_400,
        grace=table.grace,
    )
    url = store_url(table)
    if not (url or table.virtual_keys):
        url = IN_MEMORY

    def ready(url: str) -> None:
        _report(f"serving at {url} (OpenAI: {url}/v1, others: {url})")

    async with (
        AiohttpTransport() as transport,
        Models(load=load_local, transport=transport) as models,
        opened_store(url) as store,
    ):
        served = await load_models(configuration, models)
        async with AsyncExitStack() as stack:
            if path is not None:
                load = partial(_load_again, path, configuration, models)
                watching = asyncio.create_task(reload_models(path, served, load, _report))
                stack.callback(watching.cancel)
            await serve(served, options, store=store, ready=ready)


async def _load_again(path: Path, configuration: Configuration, models: Models) -> ModelTable:
    """Return the models of a file that has changed, and say what else of the gateway's table would need a restart."""
    changed = load_configuration(path)
    fields = GatewayTable.model_fields.keys() - {"models"}
    before, after = configuration.gateway, changed.gateway
    if names := [name for name in sorted(fields) if getattr(before, name) != getattr(after, name)]:
        _report(f"{path}: {', '.join(names)} of [gateway] count after a restart")
    return await load_models(changed, models)


def _report(message: str) -> None:
    say(f"toolwire: {message}", "")
