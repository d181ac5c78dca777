"""A fuzzer that checks the laws with random messages, for any length of time."""
