"""Requests to provider APIs over HTTP."""
