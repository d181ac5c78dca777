"""Hypothesis profiles: `default` is short and the same every time, `thorough` is long and random.

pytest tests/property --hypothesis-profile=thorough
"""

from hypothesis import HealthCheck, settings

_COMMON = settings(
    deadline=None,  # no clock in tests
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    print_blob=True,
)

settings.register_profile("default", _COMMON, max_examples=40, derandomize=True, database=None)
settings.register_profile("thorough", _COMMON, max_examples=3000)
settings.load_profile("default")
