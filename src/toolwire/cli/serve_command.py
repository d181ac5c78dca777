"""`toolwire serve`: answer clients of any API with any model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from toolwire._surface import needs_extra
from toolwire.cli.console import CliError
from toolwire.cli.format_option import described_formats, read_format
from toolwire.cli.option_groups import takes_options
from toolwire.config.gateway_tables import PORT

EXAMPLES = """Examples:

toolwire serve

toolwire serve --backend http://localhost:8000/v1 --model qwen3

toolwire serve --api anthropic --model claude-sonnet-5 --port 4100

toolwire serve --config toolwire.toml

toolwire serve --sidecar

Without options, a model on this machine answers. Point a client's base URL to the address that is shown: the server
speaks OpenAI Chat Completions and Responses, Anthropic Messages, Gemini, and Ollama. On an address beyond loopback it
needs keys: set TOOLWIRE_GATEWAY_KEYS to them, separated by commas. The inspector shows each request on a page; beyond
loopback it needs --inspect, and its own key in TOOLWIRE_INSPECTOR_KEY.

With --sidecar no model answers: each line on standard input, or on the socket, is a request to parse, render or write a
grammar, as JSON, for programs in other languages."""


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """The options that name the server that answers; see `takes_options`."""

    backend: Annotated[str, typer.Option(help="Base URL of the server that answers.")] = ""
    api: Annotated[str, typer.Option(help="API of the server that answers.")] = ""
    model: Annotated[str, typer.Option(help="Name of the model; any name that a client asks for without it.")] = ""
    key_env: Annotated[str, typer.Option(help="Environment variable with the key for the backend.")] = ""
    text_format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            callback=read_format,
            help="Wire format of tools in the prompt, for a model without fields; or a JSON file that describes one.",
        ),
    ] = ""


@takes_options(BackendOptions)
def serve(
    options: BackendOptions,
    config: Annotated[Path | None, typer.Option(help="TOML file with the tables gateway and profiles.")] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on, in place of the file's. Default: 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help=f"Port, in place of the file's; 0 for any that is free. Default: {PORT}."),
    ] = None,
    inspect: Annotated[
        bool | None, typer.Option("--inspect/--no-inspect", help="Show each request on a page, at /inspector.")
    ] = None,
    sidecar: Annotated[
        bool, typer.Option("--sidecar", help="Parse and render for other programs, as JSON lines.")
    ] = False,
    socket: Annotated[
        Path | None, typer.Option(help="With --sidecar: the Unix socket to listen on, in place of standard input.")
    ] = None,
) -> None:
    """Serve any model to clients of any API: OpenAI, Responses, Anthropic, Gemini, Ollama."""
    if socket is not None and not sidecar:
        raise CliError("--socket needs --sidecar")
    if sidecar:
        if config is not None or replace(options, text_format="") != BackendOptions():
            raise CliError("--sidecar asks no model: leave out the options that name one")
        if options.text_format not in ("", *(wire.name for wire in described_formats())):
            raise CliError(
                "with --sidecar, each request names its format: --format takes a JSON file that describes one"
            )
        if host is not None or port is not None or inspect is not None:
            raise CliError("--sidecar listens on standard input or on --socket: leave out --host, --port and --inspect")
        from toolwire.cli.sidecar import serve_lines, serve_socket

        return serve_lines() if socket is None else serve_socket(socket)
    if config is not None and options != BackendOptions():
        raise CliError("--config names the models: leave out --backend, --api, --model, --key-env and --format")
    with needs_extra("toolwire serve", "gateway"):
        from toolwire.cli.gateway_run import ListenAddress, serve_backend, serve_file

    if config is not None:
        serve_file(config, ListenAddress(host, port), inspect)
    else:
        serve_backend(options, ListenAddress(host, port), inspect)
