"""One search engine for files below allowed directories: ripgrep where it is installed, RE2 otherwise."""
