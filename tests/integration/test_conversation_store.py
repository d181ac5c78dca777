"""Conversations in PostgreSQL, as in a file."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integration.postgres import serving

from toolwire import ConversationError, Message
from toolwire.agent import ConversationStore


def test_conversations_in_postgresql() -> None:
    with serving() as url:
        import psycopg

        with psycopg.connect(url.replace("/toolwire?", "/postgres?"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE toolwire")
        stores = [ConversationStore(url.replace("postgresql:", "postgresql+psycopg:")) for _ in range(4)]
        # The table is created by all of them at once.
        with ThreadPoolExecutor() as threads:
            empty = list(threads.map(lambda store: store.open("ada"), stores))
        assert [conversation.version for conversation in empty] == [0] * 4
        empty[0].save([Message("user", "first \x00 ü")])
        with pytest.raises(ConversationError) as conflict:
            empty[1].save([Message("user", "second")])
        assert conflict.value.branch == "ada (2)"
        store = stores[2]
        assert [info.name for info in store.all()] == ["ada (2)", "ada"]
        assert store.open("ada").messages == (Message("user", "first \x00 ü"),)
        assert store.branch("ada", "copy").version == 1
        store.delete("ada")
        with pytest.raises(ConversationError, match="there is no conversation 'ada'"):
            store.delete("ada")
    with pytest.raises(ConversationError, match="cannot be used"):
        store.open("ada")
