"""`toolwire keys`: make, list and revoke the keys of the gateway's clients."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.text import Text

from toolwire._surface import needs_extra
from toolwire.cli.console import CliError, emit, print_rows, say, styled
from toolwire.errors import StateError

if TYPE_CHECKING:
    from toolwire.gateway.state_store import StateStore

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the keys of the gateway's clients.")

_T = TypeVar("_T")
_DAY = 86_400

ADD_EXAMPLES = """Examples:

toolwire keys add alice --requests 60/minute --tokens 2000000/day

toolwire keys add ci --model 'gpt-*' --money 25/month --days 90

toolwire keys add alice --config toolwire.toml

The key is printed once, on standard output; only its digest is stored. The gateway requires keys if its file says
virtual_keys = true. The store is that of the file, or TOOLWIRE_GATEWAY_STORE, or a file that only you can read."""

LIST_EXAMPLES = """Examples:

toolwire keys list

toolwire keys list --json"""

REVOKE_EXAMPLES = """Examples:

toolwire keys revoke 5e1f20c9

Running gateways refuse the key from the next request on. Exit status 1: there is no key with this id."""

_Config = Annotated[Path | None, typer.Option("--config", help="TOML file with the table gateway.")]


@app.command(epilog=ADD_EXAMPLES)
def add(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    models: Annotated[
        list[str] | None, typer.Option("--model", help="A model that it may ask, with * for any text; all without it.")
    ] = None,
    requests: Annotated[list[str] | None, typer.Option(help="Requests that it may send, such as 60/minute.")] = None,
    tokens: Annotated[list[str] | None, typer.Option(help="Tokens that it may use, such as 2000000/day.")] = None,
    money: Annotated[
        list[str] | None, typer.Option(help="Money that it may spend, such as 25/month; in dollars by default prices.")
    ] = None,
    days: Annotated[float, typer.Option(min=0, help="Days after which it ends; 0 for never.")] = 0,
    config: _Config = None,
) -> None:
    """Make a key and print it."""
    with needs_extra("toolwire keys", "gateway"):
        from toolwire.gateway.allowances import parse_allowances
        from toolwire.gateway.virtual_keys import VirtualKeys

    allowances = [
        *parse_allowances("requests", requests or ()),
        *parse_allowances("tokens", tokens or ()),
        *parse_allowances("money", money or ()),
    ]
    ends_at = time.time() + days * _DAY if days else 0.0
    key, virtual_key = _with_store(
        config,
        lambda store: VirtualKeys(store).add(name, models=models or (), allowances=allowances, expires_at=ends_at),
    )
    sys.stdout.write(f"{key}\n")
    say(f"key {virtual_key.id} of {name}; it is not shown again")


@app.command("list", epilog=LIST_EXAMPLES)
def list_keys(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per key.")] = False,
    config: _Config = None,
) -> None:
    """List the keys, and what they have used; never the keys themselves."""
    with needs_extra("toolwire keys", "gateway"):
        from toolwire.gateway.key_spending import KeySpending
        from toolwire.gateway.virtual_keys import VirtualKeys

    async def read(store: StateStore) -> list[tuple[Any, list[tuple[Any, float]]]]:
        spending = KeySpending(store)
        return [
            (key, [(allowance, await spending.used(key, allowance)) for allowance in key.allowances])
            for key in await VirtualKeys(store).all()
        ]

    keys = _with_store(config, read)
    if json:
        for key, counts in keys:
            limits = [
                {"quantity": limit.quantity, "amount": limit.amount, "period": limit.period, "used": amount}
                for limit, amount in counts
            ]
            emit({"id": key.id, "name": key.name, "models": key.models, "state": _state(key), "limits": limits})
        return
    if not keys:
        say("No keys. `toolwire keys add NAME` makes one.")
        return
    rows = [
        (
            styled(key.id, "bold"),
            Text(key.name),
            Text(", ".join(key.models) or "all"),
            Text(", ".join(f"{amount:,.12g} of {limit}" for limit, amount in counts) or "unlimited"),
            Text(_state(key)),
        )
        for key, counts in keys
    ]
    print_rows(("id", "name", "models", "used", "state"), rows, fold=("used", "models"))


@app.command(epilog=REVOKE_EXAMPLES)
def revoke(
    ids: Annotated[list[str], typer.Argument(help="The ids of the keys, as `keys list` shows them.")],
    config: _Config = None,
) -> None:
    """Refuse keys from now on."""
    with needs_extra("toolwire keys", "gateway"):
        from toolwire.gateway.virtual_keys import VirtualKeys

    for id in ids:
        revoked = _with_store(config, lambda store: VirtualKeys(store).revoke(id))  # noqa: B023  # it runs at once
        if revoked is None:
            raise CliError(f"there is no key with the id {id!r:.40}", status=1)
        say(f"revoked {id} of {revoked.name}")


def _state(key: Any) -> str:
    if key.is_revoked:
        return "revoked"
    if not key.expires_at:
        return "valid"
    date = datetime.fromtimestamp(key.expires_at).astimezone().strftime("%Y-%m-%d")
    return f"ended {date}" if key.expires_at <= time.time() else f"until {date}"


def _with_store(config: Path | None, work: Callable[[StateStore], Awaitable[_T]]) -> _T:
    """Return the result of work with the store that the gateway of this file would use."""
    with needs_extra("toolwire keys", "gateway"):
        from toolwire.cli.gateway_run import store_url
        from toolwire.config.gateway_tables import GatewayTable
        from toolwire.config.tables import load_configuration
        from toolwire.gateway.state_store import failure_for_operators, opened_store

    table = GatewayTable() if config is None else load_configuration(config).gateway

    async def run() -> _T:
        async with opened_store(store_url(table, config)) as store:
            return await work(store)

    try:
        return asyncio.run(run())
    except StateError as error:
        raise StateError(failure_for_operators(error)) from error
