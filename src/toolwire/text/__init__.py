"""Text machinery that knows no model: scanners, escaping, redaction, token counts."""
