"""Text formats of tool calls: one description each, read by a parser and a renderer."""
