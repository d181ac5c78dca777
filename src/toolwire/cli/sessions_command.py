"""`toolwire sessions`: list and delete the conversations that `ask --session` and `chat --session` store."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from toolwire._surface import needs_extra
from toolwire.cli.console import emit, print_rows, say, styled

app = typer.Typer(
    no_args_is_help=True, help="List and delete the stored conversations of ask --session and chat --session."
)

LIST_EXAMPLES = """Examples:

toolwire sessions list

toolwire sessions list --json

Sessions are stored in a file that only you can read, also with TOOLWIRE_RECORD=off."""

DELETE_EXAMPLES = """Examples:

toolwire sessions delete garden invoices

Exit status 1: there is no session of this name."""


@app.command("list", epilog=LIST_EXAMPLES)
def list_sessions(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per session.")] = False,
) -> None:
    """List the sessions, the one that was continued last first."""
    with needs_extra("A session"):
        from toolwire.agent.conversation_store import ConversationStore

    sessions = ConversationStore().all()
    if json:
        for info in sessions:
            emit({"name": info.name, "messages": info.length, "updated_at": info.updated_at.isoformat()})
        return
    if not sessions:
        say("No sessions. `toolwire chat --session NAME` begins one.")
        return
    rows = [
        (
            styled(info.name, "bold"),
            Text(str(info.length)),
            Text(info.updated_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
        )
        for info in sessions
    ]
    print_rows(("session", "messages", "continued"), rows, fold=("session",), right=("messages",))


@app.command(epilog=DELETE_EXAMPLES)
def delete(names: Annotated[list[str], typer.Argument(help="The names of the sessions.")]) -> None:
    """Delete sessions."""
    with needs_extra("A session"):
        from toolwire.agent.conversation_store import ConversationStore

    store = ConversationStore()
    for name in names:
        store.delete(name)
        say(f"deleted {name}")
