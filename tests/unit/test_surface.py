"""The machinery of public packages: missing extras, deprecations, checked arguments."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from toolwire._surface import needs_extra, warn_deprecated, wrong_type
from toolwire.errors import MissingExtra, ToolwireDeprecationWarning, install_command
from toolwire.text.suggest import check_options

BLOCKED = """
import sys
for name in {modules!r}:
    sys.modules[name] = None
try:
    {statement}
except ImportError as error:
    print(type(error).__name__, error, sep=": ")
"""


@pytest.mark.parametrize(
    ("statement", "modules", "message"),
    [
        ("from toolwire import Client", ["httpx"], "toolwire.Client needs httpx, which is not installed: [agent]"),
        (
            "from toolwire.models import HttpTransport",
            ["httpx"],
            "toolwire.models.HttpTransport needs httpx, which is not installed: [agent]",
        ),
        (
            "from toolwire.agent import DurableRuns",
            ["dbos"],
            "toolwire.agent.DurableRuns needs dbos, which is not installed: [durable]",
        ),
        (
            "from toolwire.mcp import McpService",
            ["mcp"],
            "toolwire.mcp.McpService needs mcp, which is not installed: [mcp]",
        ),
        (
            "from toolwire import Agent",
            ["anyio"],
            "toolwire.Agent needs anyio, which is not installed: [agent]",
        ),
        (
            "from toolwire.agent import RunInfo",
            ["sqlalchemy"],
            "toolwire.agent.RunInfo needs sqlalchemy, which is not installed: [durable]",
        ),
        (
            "from toolwire.cli.keys_command import list_keys; list_keys()",
            ["aiohttp"],
            "toolwire keys needs aiohttp, which is not installed: [gateway]",
        ),
        (
            "from toolwire.telemetry import Tracing",
            ["opentelemetry"],
            "toolwire.telemetry.Tracing needs opentelemetry, which is not installed: [otel]",
        ),
        (
            "from toolwire.models.local.runtime import _runtime; _runtime()",
            ["xllamacpp"],
            "A model on this machine needs xllamacpp, which is not installed: [local]",
        ),
        (
            "from toolwire.models import locate; locate('hf:a/b/c.gguf')",
            ["huggingface_hub"],
            "A file of the Hugging Face hub needs huggingface_hub, which is not installed: [local]",
        ),
        (
            "from toolwire.client.aws_signature import signed_headers; signed_headers('https://x', b'', {})",
            ["botocore"],
            "Bedrock needs botocore, which is not installed: [bedrock]",
        ),
        (
            "from toolwire.openapi import OpenApi; OpenApi('zensical.toml', base_url='http://h')",
            ["yaml"],
            "An OpenAPI document in YAML needs yaml, which is not installed: [openapi]",
        ),
        (
            "from toolwire.openapi import OpenApi; OpenApi({'openapi': '3.1.0'}, base_url='http://h', strict=True)",
            ["openapi_spec_validator"],
            "strict=True needs openapi_spec_validator, which is not installed: [openapi]",
        ),
        (
            "from toolwire.cli.ask_command import ask; ask(question='Hello')",
            ["re2", "httpx"],
            "An agent needs httpx, which is not installed: [local]",
        ),
        (
            "from toolwire.cli.chat_command import chat; chat(api='openai_chat', model='m')",
            ["re2", "httpx"],
            "An agent needs httpx, which is not installed: [agent]",
        ),
        (
            "import toolwire.integrations.langchain",
            ["httpx", "langchain_core"],
            "toolwire.integrations.langchain needs langchain_core, which is not installed: [langchain]",
        ),
        (
            "import toolwire.integrations.pydantic_ai",
            ["httpx", "pydantic_ai"],
            "toolwire.integrations.pydantic_ai needs pydantic_ai, which is not installed: [pydantic-ai]",
        ),
        (
            "from toolwire.gateway import serve",
            ["uvicorn"],
            "toolwire.gateway.serve needs uvicorn, which is not installed: [gateway]",
        ),
        (
            "from toolwire.mcp import McpRouter",
            ["anyio"],
            "toolwire.mcp.McpRouter needs anyio, which is not installed: [mcp]",
        ),
        (
            "from toolwire.cli.serve_command import serve; serve()",
            ["aiohttp"],
            "toolwire serve needs aiohttp, which is not installed: [gateway]",
        ),
    ],
)  # fmt: skip
def test_a_missing_extra_is_named(statement: str, modules: list[str], message: str) -> None:
    code = BLOCKED.format(statement=statement, modules=modules)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    head, _, extra = message.rpartition(" ")
    assert run.stdout.strip() == f"MissingExtra: {head} {install_command(extra.strip('[]'))}"


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (None, "pip install 'toolwire[eval]'"),
        ("no JSON", "pip install 'toolwire[eval]'"),
        ('{"url": "https://example.org/toolwire.whl"}', "pip install 'toolwire[eval]'"),
        ('{"url": "file:///home/a%20b/toolwire", "dir_info": {}}', "pip install '/home/a b/toolwire[eval]'"),
        ('{"url": "file:///t", "dir_info": {"editable": true}}', "pip install -e '/t[eval]'"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came_from(
    source: str | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", lambda self, name: source)
    assert install_command("eval") == command


def test_an_optional_module_that_is_broken_is_not_called_missing() -> None:
    with pytest.raises(MissingExtra, match=r"which cannot be imported \(libgomp") as caught, needs_extra("It"):
        raise ImportError("libgomp.so.1 is missing", name="xllamacpp.core")
    assert (caught.value.extra, caught.value.name) == ("local", "xllamacpp")


def test_a_module_that_no_extra_installs_is_a_plain_import_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing") as caught, needs_extra("It"):
        raise ModuleNotFoundError("No module named 'nothing'", name="nothing")
    assert not isinstance(caught.value, MissingExtra)


def test_a_deprecation_points_at_the_caller() -> None:
    def old() -> None:
        warn_deprecated("old()", "0.3", instead="new()")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old()
    message = "old() is deprecated and will be removed in Toolwire 0.3; use new() instead"
    shown = [(str(warning.message), warning.category, warning.filename) for warning in caught]
    assert shown == [(message, ToolwireDeprecationWarning, __file__)]


def test_an_unknown_option_is_an_error_with_a_suggestion() -> None:
    check_options("f", {"format": 1}, {"format", "tools"})
    with pytest.raises(TypeError, match=r"f\(\) has no argument 'formt'; did you mean format\?"):
        check_options("f", {"formt": 1}, {"format", "tools"})
    with pytest.raises(TypeError, match=r"f\(\) has no argument 'zzz'; it takes format, tools"):
        check_options("f", {"zzz": 1}, {"format", "tools"})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"), ("run", "'run'"), (3, "3"), ([], "list"), ([{}], "list of dict"), (dict, "the class dict"),
        (b"x", "bytes"), ("x" * 99, "'" + "x" * 59),
    ],
)  # fmt: skip
def test_a_wrong_type_is_shown_briefly(value: object, shown: str) -> None:
    assert str(wrong_type("tier", value, "a Tier")) == f"tier must be a Tier, not {shown}"
