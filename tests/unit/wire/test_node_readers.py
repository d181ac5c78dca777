"""Every kind of node has a reader."""

from typing import get_args

from toolwire.wire.node_readers import READERS
from toolwire.wire.syntax import Node, Value


def test_every_kind_of_node_has_a_reader() -> None:
    assert set(READERS) == set(get_args(Node)) - {Value}
