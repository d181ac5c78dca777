"""Tools that ship with Toolwire: files below allowed roots, commands, and ways for a model to end its turn."""
