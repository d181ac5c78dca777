"""Probes of a model's endpoint: small requests whose answers show whether the server follows its API."""
