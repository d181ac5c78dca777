"""Questions of a server to the user: shown up to a maximum, and all declined."""

import asyncio

from mcp_types import ElicitRequestFormParams

from toolwire.mcp.connection import MAX_QUESTIONS, Connection
from toolwire.mcp.servers import McpServer


def test_a_server_that_asks_on_and_on_does_not_fill_the_screen() -> None:
    shown: list[str] = []

    async def asked(question: str) -> None:
        shown.append(question)

    async def main() -> set[str]:
        connection = Connection(McpServer(name="a", command="x"), changed=lambda: None, asked=asked)
        params = [ElicitRequestFormParams(message=f"q{n}", requested_schema={"type": "object"}) for n in range(500)]
        return {(await connection._decline(entry)).action for entry in params}

    assert asyncio.run(main()) == {"decline"}
    assert len(shown) == MAX_QUESTIONS
    assert shown[-1].endswith("(further questions of this server are not shown)")
