"""Logged answers read again: with another format, or with another version of the parser than the one that read them."""
