"""Model backends: an API, plain text, or a model in this process."""
