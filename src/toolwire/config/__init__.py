"""The TOML configuration file."""
