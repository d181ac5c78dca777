"""Tools that run in a process of their own, with limits."""
