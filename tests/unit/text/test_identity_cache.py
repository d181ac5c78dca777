"""A cache keyed by object identity returns cached results and drops the oldest."""

from toolwire.text.identity_cache import IdentityCache


def test_a_result_is_computed_once_for_the_same_objects_and_names() -> None:
    cache, key = IdentityCache(), object()
    results = [cache.get(lambda: object(), [key], "name") for _ in range(2)]
    assert results[0] is results[1]
    assert cache.get(lambda: object(), [key], "other") is not results[0]
    assert cache.get(lambda: object(), [object()], "name") is not results[0]


def test_the_oldest_result_is_forgotten_when_there_are_too_many() -> None:
    cache = IdentityCache(max_entries=3)
    keys = [object() for _ in range(4)]
    results = [cache.get(lambda: object(), [key]) for key in keys]
    assert cache.get(lambda: object(), [keys[1]]) is results[1]
    assert cache.get(lambda: object(), [keys[3]]) is results[3]
    assert cache.get(lambda: object(), [keys[0]]) is not results[0]
