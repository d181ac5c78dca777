"""`toolwire serve`: answer clients of any API with any model."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.agent.model_pool import LOCAL, Models
from toolwire.cli.agent_options import DEFAULT_MODEL
from toolwire.cli.console import CliError, say
from toolwire.cli.open_agent import load_local
from toolwire.config.gateway_tables import GatewayModelTable, GatewayTable
from toolwire.config.tables import Configuration, ModelProfile, Tools, load_configuration

KEYS = "TOOLWIRE_GATEWAY_KEYS"
ANY_MODEL = "*"
_PROFILE = "model"

EXAMPLES = """Examples:

toolwire serve

toolwire serve --backend http://localhost:8000/v1 --model qwen3

toolwire serve --api anthropic --model claude-sonnet-5 --port 4100

toolwire serve --config toolwire.toml

Without options, a model on this machine answers. Point a client's base URL to the address that is shown: the server
speaks OpenAI Chat Completions and Responses, Anthropic Messages, Gemini, and Ollama. On an address beyond loopback it
needs keys: set TOOLWIRE_GATEWAY_KEYS to them, separated by commas."""


def serve(
    config: Annotated[Path | None, typer.Option(help="TOML file with the tables gateway and profiles.")] = None,
    backend: Annotated[str, typer.Option(help="Base URL of the server that answers.")] = "",
    api: Annotated[str, typer.Option(help="API of the server that answers.")] = "",
    model: Annotated[str, typer.Option(help="Name of the model; any name that a client asks for without it.")] = "",
    key_env: Annotated[str, typer.Option(help="Environment variable with the key for the backend.")] = "",
    text_format: Annotated[
        str,
        typer.Option("--format", "-f", help="Wire format of tools in the prompt, for a model without fields."),
    ] = "",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.")] = 4100,
) -> None:
    """Answer clients of any API with any model."""
    with needs_extra("toolwire serve", "gateway"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    if config is not None and (backend or api or model or key_env or text_format):
        raise CliError("--config names the models: leave out --backend, --api, --model, --key-env and --format")
    if config is not None:
        configuration = load_configuration(config)
    else:
        remote = bool(backend or api)
        name = model or (ANY_MODEL if remote else DEFAULT_MODEL)
        profile = ModelProfile(
            provider=api or ("openai_compatible" if backend else LOCAL),
            model=name,
            url=backend,
            key_env=key_env,
            tools=Tools(definition_format=text_format or None),
        )
        served = {name: GatewayModelTable(profile=_PROFILE) for name in dict.fromkeys((name, ANY_MODEL))}
        gateway = GatewayTable(host=host, port=port, models=served)
        configuration = Configuration(profiles={_PROFILE: profile}, gateway=gateway)
    asyncio.run(_serve(configuration))


async def _serve(configuration: Configuration) -> None:
    from toolwire.gateway.aiohttp_transport import AiohttpTransport
    from toolwire.gateway.model_loading import load_models
    from toolwire.gateway.serving import ServerOptions
    from toolwire.gateway.serving import serve as serve_models

    table = configuration.gateway
    keys = tuple(key.strip() for key in os.environ.get(KEYS, "").split(",") if key.strip())
    options = ServerOptions(table.host, table.port, keys, table.hosts, table.origins, table.max_body << 20, table.grace)

    def ready(url: str) -> None:
        say(f"toolwire: serving at {url} (OpenAI: {url}/v1, others: {url})", "")

    async with AiohttpTransport() as transport, Models(load=load_local, transport=transport) as models:
        await serve_models(await load_models(configuration, models), options, ready=ready)
