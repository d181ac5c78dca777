"""A cache keyed by object identity: what it remembers, and what it forgets."""

from toolwire.text.identity_cache import Memo


def test_a_result_is_computed_once_for_the_same_objects_and_names() -> None:
    memo, key = Memo(), object()
    results = [memo.get(lambda: object(), [key], "name") for _ in range(2)]
    assert results[0] is results[1]
    assert memo.get(lambda: object(), [key], "other") is not results[0]
    assert memo.get(lambda: object(), [object()], "name") is not results[0]


def test_the_oldest_result_is_forgotten_when_there_are_too_many() -> None:
    memo = Memo(most=3)
    keys = [object() for _ in range(4)]
    results = [memo.get(lambda: object(), [key]) for key in keys]
    assert memo.get(lambda: object(), [keys[1]]) is results[1]
    assert memo.get(lambda: object(), [keys[3]]) is results[3]
    assert memo.get(lambda: object(), [keys[0]]) is not results[0]
