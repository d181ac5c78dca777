"""The registry of tools, and calls run against it."""
