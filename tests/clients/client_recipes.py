"""How command-line clients are pointed at a gateway: their programs, arguments, variables and files.

In arguments, variables and files, `{URL}` stands for the gateway's URL, `{HOME}` for the client's home folder, and
`{PROJECT}` for its working directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PROMPT = "Read the file note.txt with a tool, and say what it says."
KEY = "no-secret-key-of-a-test"


@dataclass(frozen=True)
class Recipe:
    """One client, as it speaks one API.

    Attributes:
        package: the npm package with its version.
        program: the program's path in the folder of the packages.
        arguments: the arguments.
        variables: environment variables.
        files: the files that the client reads, by path; a mapping is written as JSON.
        is_script: whether Node runs the program.
        reads: the tool that the model calls, and its arguments; `{FILE}` stands for the path of the file.
    """

    package: str
    program: str
    arguments: tuple[str, ...]
    reads: tuple[str, Mapping[str, Any]]
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    is_script: bool = False


def _codex(model: str, reads: tuple[str, Mapping[str, Any]], *more: str) -> Recipe:
    provider = '{name="Gateway",base_url="{URL}/v1",env_key="GATEWAY_KEY",wire_api="responses"}'
    own = ("-c", 'model_provider="gateway"', "-c", f"model_providers.gateway={provider}")
    common = ("exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox")
    return Recipe(
        package="@openai/codex@0.169.0",
        program="@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        arguments=(*common, "-c", "analytics.enabled=false", *(more or own), "-m", model, PROMPT),
        variables={"GATEWAY_KEY": KEY, "CODEX_HOME": "{HOME}/.codex", "CODEX_OSS_BASE_URL": "{URL}/v1"},
        files={"{HOME}/.codex/config.toml": "check_for_update_on_startup = false\n"},
        reads=reads,
    )


def _opencode(package: str, path: str) -> Recipe:
    models = {"served": {"name": "served", "tool_call": True}}
    provider = {"npm": package, "options": {"baseURL": "{URL}" + path, "apiKey": KEY}, "models": models}
    return Recipe(
        package="opencode-ai@1.18.33",
        program="opencode-linux-x64/bin/opencode",
        arguments=("run", "--model", "gateway/served", PROMPT),
        variables={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        files={
            "{PROJECT}/opencode.json": {
                "autoupdate": False,
                "share": "disabled",
                "provider": {"gateway": {"name": "Gateway", **provider}},
            }
        },
        reads=("read", {"filePath": "{FILE}"}),
    )


_COMMAND = ("exec_command", {"cmd": "cat {FILE}"})
_SCRIPT = ("functions__exec", {"input": "text(await tools.exec_command({cmd: 'cat {FILE}'}));"})

RECIPES: Mapping[str, Recipe] = {
    "claude-code": Recipe(
        package="@anthropic-ai/claude-code@2.1.330",
        program="@anthropic-ai/claude-code-linux-x64/claude",
        arguments=("-p", PROMPT, "--output-format", "json", "--allowedTools", "Read", "--model", "served"),
        variables={
            "ANTHROPIC_BASE_URL": "{URL}",
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        reads=("Read", {"file_path": "{FILE}"}),
    ),
    "codex": _codex("served", _COMMAND),
    "codex-gpt-5": _codex("gpt-5.5", _COMMAND),
    "codex-gpt-6": _codex("gpt-6.1-sol", _SCRIPT),
    "codex-ollama": _codex("served", _COMMAND, "--oss", "--local-provider", "ollama"),
    "gemini-cli": Recipe(
        package="@google/gemini-cli@0.61.0",
        program="@google/gemini-cli/bundle/gemini.js",
        arguments=("-p", PROMPT, "--yolo", "-o", "json", "-m", "gemini-2.5-pro"),
        variables={
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": "{URL}",
            "GEMINI_TELEMETRY_ENABLED": "false",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        files={
            "{HOME}/.gemini/settings.json": {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"disableAutoUpdate": True},
            }
        },
        is_script=True,
        reads=("read_file", {"file_path": "{FILE}"}),
    ),
    "opencode-chat": _opencode("@ai-sdk/openai-compatible", "/v1"),
    "opencode-messages": _opencode("@ai-sdk/anthropic", "/v1"),
    "opencode-responses": _opencode("@ai-sdk/openai", "/v1"),
    "opencode-gemini": _opencode("@ai-sdk/google", "/v1beta"),
}
