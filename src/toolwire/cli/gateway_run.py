"""The run of `toolwire serve`: models from a file or from options, served until the process ends."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from toolwire.agent.model_pool import Models
from toolwire.cli.agent_options import DEFAULT_MODEL
from toolwire.cli.console import say
from toolwire.cli.open_agent import load_local
from toolwire.cli.serve_command import BackendOptions
from toolwire.config.gateway_tables import STORE, GatewayModelTable, GatewayTable
from toolwire.config.option_profiles import option_profile
from toolwire.config.tables import LOCAL, Configuration, load_configuration
from toolwire.errors import ConfigurationError
from toolwire.gateway.aiohttp_transport import AiohttpTransport
from toolwire.gateway.gateway_tools import GatewayTools
from toolwire.gateway.model_loading import ANY_MODEL, load_models
from toolwire.gateway.model_table import ModelTable
from toolwire.gateway.reloading import WatchedFile, reload_models
from toolwire.gateway.serving import ServerOptions, new_event_loop, opened_spans, serve
from toolwire.gateway.state_store import IN_MEMORY, opened_store
from toolwire.gateway.tool_opening import opened_tools
from toolwire.inspector.inspector import InspectorOptions
from toolwire.runtime.local_http import allow_open_files, is_loopback

KEYS = "TOOLWIRE_GATEWAY_KEYS"
"""The environment variable with the keys that clients may send, separated by commas."""
INSPECTOR_KEY = "TOOLWIRE_INSPECTOR_KEY"
"""The environment variable with the key of the inspector; a random one without it, on a loopback address."""
OPEN_FILES = 16_384
"""Number of files that the process may open: each of 4,000 connections needs one, and its backend another."""
_PROFILE = "model"


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address that the command line names; what is None is the file's, or the default.

    Attributes:
        host: the host.
        port: the port.
    """

    host: str | None = None
    port: int | None = None

    def put_into(self, configuration: Configuration) -> Configuration:
        """Return a configuration in which it takes the place of the file's."""
        named = {"host": self.host, "port": self.port}
        changes = {name: value for name, value in named.items() if value is not None}
        return configuration.model_copy(update={"gateway": configuration.gateway.model_copy(update=changes)})


def serve_file(path: Path, address: ListenAddress, inspect: bool | None = None) -> None:
    """Serve the models of a file.

    Args:
        path: the file.
        address: where to listen.
        inspect: whether there is an inspector; None if the file says so.

    Raises:
        ConfigurationError: the file cannot be used, or the server cannot listen.
        ProviderError: a model on this machine cannot be loaded.
    """
    file = WatchedFile(path)
    _run(load_configuration(path), address, inspect, file)


def serve_backend(options: BackendOptions, address: ListenAddress, inspect: bool | None = None) -> None:
    """Serve one backend, or without options a model on this machine; see `serve_file` for the errors."""
    is_remote = bool(options.backend or options.api)
    name = options.model or (ANY_MODEL if is_remote else DEFAULT_MODEL)
    profile = option_profile(
        provider=options.api or ("openai_compatible" if options.backend else LOCAL),
        model=name,
        url=options.backend,
        key_env=options.key_env,
        tools={"definition_format": options.text_format or None},
    )
    # Clients ask for several models, and all of them are this one.
    models = {name: GatewayModelTable(profile=_PROFILE) for name in dict.fromkeys((name, ANY_MODEL))}
    _run(Configuration(profiles={_PROFILE: profile}, gateway=GatewayTable(models=models)), address, inspect)


def store_url(table: GatewayTable, file: Path | None) -> str:
    """Return the URL of the gateway's store: that of the environment, else that of the file; "" if none is named.

    The path of an SQLite file is relative to the directory of the configuration, as all of its paths are.
    """
    if url := os.environ.get(STORE, "").strip():
        return url
    scheme, separator, path = table.store.partition(":///")
    if file is None or not scheme.startswith("sqlite") or not path or path.startswith(":"):
        return table.store
    return f"{scheme}{separator}{(file.parent / path).absolute()}"


def _run(
    configuration: Configuration, address: ListenAddress, inspect: bool | None, file: WatchedFile | None = None
) -> None:
    allow_open_files(OPEN_FILES)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        ended_by = runner.run(_serve(address.put_into(configuration), address, inspect, file))
    if ended_by is not None:  # who started this process sees what ended it
        signal.raise_signal(ended_by)


async def _serve(
    configuration: Configuration, address: ListenAddress, inspect: bool | None, file: WatchedFile | None
) -> signal.Signals | None:
    table = configuration.gateway
    keys = tuple(key.strip() for key in os.environ.get(KEYS, "").split(",") if key.strip())
    inspector = inspector_options(table, inspect)
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
        inspector=inspector,
    )
    url = store_url(table, None if file is None else file.path)
    if not (url or table.virtual_keys):
        url = IN_MEMORY

    def ready(url: str) -> None:
        _report(f"serving at {url} (OpenAI: {url}/v1, others: {url})")
        if inspector is not None:
            # A key that the user has chosen is not shown.
            key = "" if os.environ.get(INSPECTOR_KEY) else f"?key={inspector.key}"
            _report(f"inspector at {url}/inspector{key}")

    async with (
        opened_spans() as spans,  # sent last: a collector that does not answer delays nothing else
        AiohttpTransport() as transport,
        Models(load=load_local, transport=transport) as models,
        opened_store(url) as store,
        AsyncExitStack() as stack,
    ):
        path = None if file is None else file.path
        with _errors_naming(path):
            tools = await stack.enter_async_context(opened_tools(configuration, path))
            served = await load_models(configuration, models, tools)
        await _report_unready(served)
        if file is not None:
            load = partial(_load_again, file.path, address, configuration, models, tools)
            watching = asyncio.create_task(reload_models(file, served, load, _report))
            stack.callback(watching.cancel)
        # Full collections pause all streams: they need not look at the objects of modules.
        gc.freeze()
        return await serve(served, options, store=store, spans=spans, ready=ready)


@contextmanager
def _errors_naming(path: Path | None) -> Iterator[None]:
    """Let errors of a configuration begin with its file, if there is one."""
    try:
        yield
    except ConfigurationError as error:
        if path is None or str(error).startswith(str(path)):
            raise
        raise ConfigurationError(f"{path}: {error}") from error


async def _load_again(
    path: Path, address: ListenAddress, configuration: Configuration, models: Models, tools: GatewayTools | None
) -> ModelTable:
    """Return the models of a file that has changed, and say what else of the gateway's table would need a restart."""
    changed = address.put_into(load_configuration(path))
    fields = GatewayTable.model_fields.keys() - {"models"}
    before, after = configuration.gateway, changed.gateway
    if names := [name for name in sorted(fields) if getattr(before, name) != getattr(after, name)]:
        _report(f"{path}: {', '.join(names)} of [gateway] count after a restart")
    with _errors_naming(path):
        served = await load_models(changed, models, tools)
    await _report_unready(served)
    return served


async def _report_unready(models: ModelTable) -> None:
    for name, reason in (await models.unready()).items():
        _report(f"warning: requests to {name} will fail: {reason}")


def _report(message: str) -> None:
    say(f"toolwire: {message}", "")


def inspector_options(table: GatewayTable, inspect: bool | None) -> InspectorOptions | None:
    """Return what the inspector keeps, and its key; None for no inspector.

    Raises:
        ConfigurationError: others could see the inspector, and it has no key of its own.
    """
    is_enabled = table.inspector.enabled if inspect is None else inspect
    is_local = is_loopback(table.host)
    if is_enabled is False or (is_enabled is None and not is_local):
        return None
    key = os.environ.get(INSPECTOR_KEY, "").strip()
    if not key and not is_local:
        raise ConfigurationError(f"an inspector beyond loopback needs a key: set {INSPECTOR_KEY}")
    limits = table.inspector
    options = InspectorOptions(content=limits.content, exchanges=limits.exchanges, memory=limits.memory)
    return replace(options, key=key) if key else options
