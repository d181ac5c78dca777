"""Grammars for constrained decoding: a wire format and tools, as a grammar under which an engine decodes."""
