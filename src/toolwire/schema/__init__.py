"""JSON Schema: from signatures, validation, coercion, and values as JSON."""
