"""The plug-in as a module, for `--tool-parser-plugin toolwire_vllm.plugin`: importing it registers the parsers."""

from toolwire_vllm import register

register()
