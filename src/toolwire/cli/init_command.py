"""`toolwire init`: write a first configuration for the available models: API keys, Ollama, cached weights."""

from __future__ import annotations

import json as jsontext
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Annotated, Any

import typer

from toolwire.cli.console import CliError, console, emit, plain, say, styled

EXAMPLES = """Examples:

toolwire init

toolwire init ~/projects/shop/toolwire.toml --force

The command looks for API keys in the environment, for Ollama on this machine, and for cached weights. It asks no
questions and sends no data. Read the comments in the file, then try
`toolwire ask "Which files are here?" --config toolwire.toml`."""

MODELS = {
    "anthropic_messages": "claude-sonnet-4-5",
    "openai_chat": "gpt-5-mini",
    "gemini": "gemini-2.5-flash",
    "mistral": "mistral-medium-latest",
    "cohere": "command-a-03-2025",
    "groq": "openai/gpt-oss-120b",
    "deepseek": "deepseek-chat",
    "xai": "grok-4",
    "openrouter": "qwen/qwen3-coder",
}
"""The suggested model of each provider; the first provider with a key becomes the default."""

OLLAMA = ("127.0.0.1", 11434)
SECONDS = 0.5
"""Time limit for the answer of Ollama, in seconds."""


@dataclass(frozen=True, slots=True)
class FoundModel:
    """An available model.

    Attributes:
        name: name of its profile.
        model: the provider's name for it.
        provider: name of its API; "" for a model on this machine.
        how: a comment on how it was found.
        key_env: the environment variable that contains its key.
    """

    name: str
    model: str
    provider: str
    origin: str
    key_env: str = ""


def init(
    path: Annotated[str, typer.Argument(help="The file to write.")] = "toolwire.toml",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the file, and the models that were found.")
    ] = False,
) -> None:
    """Write a commented TOML file: profiles of the available models, agents, and a policy."""
    target = Path(path).expanduser()
    models = list(_keys(os.environ)) + list(_ollama(OLLAMA)) + list(_weights())
    text = configuration_text(models)
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise CliError(f"{path} exists already; --force replaces it", status=1) from None
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror or error}", status=1) from error
    if json:
        emit({"path": str(target), "profiles": [plain(model) for model in models]})
        return
    screen = console()
    screen.print(styled(f"Wrote {path}.", "bold"))
    for model in models:
        screen.print(styled(f"  {model.name}: {model.model}, {model.origin}"))
    if not models:
        say("Found no key, no Ollama and no weights: the file names a small model, which is downloaded on first use.")
    screen.print(styled(f'Try: toolwire ask "Which files are here?" --config {path} --agent reader'))


# -- available models -----------------------------------------------------------------------------------------------


def _keys(environment: Mapping[str, str]) -> Iterator[FoundModel]:
    from toolwire.client.endpoints import ENDPOINTS

    for provider, model in MODELS.items():
        name = next((name for name in ENDPOINTS[provider].key if environment.get(name)), "")
        if name:
            yield FoundModel(provider.partition("_")[0], model, provider, f"since {name} is set", name)


def _ollama(address: tuple[str, int]) -> Iterator[FoundModel]:
    """Yield the first model of Ollama, if Ollama answers."""
    host, port = address
    connection = HTTPConnection(host, port, timeout=SECONDS)
    try:
        connection.request("GET", "/api/tags")
        answer: Any = jsontext.loads(connection.getresponse().read(1 << 20))
        names = [str(model["name"]) for model in answer["models"]]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return  # nothing answers on this port, or another program does
    finally:
        connection.close()
    if names:
        yield FoundModel("ollama", names[0], "ollama", f"one of {len(names)} models of Ollama on this machine")


def _weights() -> Iterator[FoundModel]:
    from toolwire.models.local.weights import WEIGHTS, cache_folder

    for size, weights in reversed(WEIGHTS.items()):
        try:
            is_cached = (cache_folder() / weights.filename).is_file()
        except ImportError:  # platformdirs is part of the extra `local`
            return
        if is_cached:
            yield FoundModel("local", f"local:{size}", "", "whose weights are cached")
            return


# -- the file --------------------------------------------------------------------------------------------------------

_HEAD = """\
# Models, agents and a policy, for `toolwire ask`, `toolwire chat`, and `load_agent` in Python.
# Error messages about this file name the line and the key.

# -- Models ----------------------------------------------------------------------------------------
# A profile names a model and its provider. Keys stay in the environment: `key_env` names the variable.
"""

_REST = """
# [profiles.server]                   # any server that speaks the API of OpenAI: vLLM, llama.cpp, LM Studio, ...
# provider = "openai"
# url = "http://127.0.0.1:8000/v1"
# model = "Qwen/Qwen3-8B"
# tools = {{ definition_format = "hermes" }}    # write tools into the text; without this they are fields of the API

# -- Agents ----------------------------------------------------------------------------------------
# An agent is a model with tools. Paths are relative to the directory of this file.

[agents.reader]
profile = {profile}
system = "You answer questions about the files of this project. Look before you answer; never guess."
tier = "walk"                         # crawl: search; walk: read as well; run: change files, run commands
tools = {{ builtin = ["."] }}           # directories that the built-in tools may see
budget = {{ rounds = {rounds} }}             # also calls, tokens, seconds, and money (needs prices)
{small}
[agents.editor]
profile = {profile}
system = "You change the files of this project as you are asked to. Look first, then make the smallest change."
# gate = "intent"                     # offer a tool that changes something only if the task's words ask for a change
tools = {{ builtin = ["."] }}           # python = ["tools.py"] adds @toolwire.tool functions, mcp = ["files"] a server
budget = {{ rounds = 30, seconds = 600 }}
# format = "hermes"                   # the wire format the model is asked to write; `toolwire formats` lists them
# use_xml_tool_format = true          # tools as XML in the text, for any model
# envelope = "qwen-local"             # results in a Tool Envelope, truncated to what this model can read
# context = 100000                    # maximum tokens of a request
# settings = {{ temperature = 0.2, seed = 1 }}   # reasoning_effort, max_tokens, top_p, stop and more

# [teams.office]                      # the coordinator calls the members as tools
# coordinator = "editor"
# members = {{ reader = "Reads files and answers questions about them." }}

# -- Policy ----------------------------------------------------------------------------------------
# These rules apply to every agent. Changing files and running commands always needs an approval.

[policy]
ask_when_untrusted = "run"            # after untrusted content was read, tools of this tier and above need an approval

[[policy.rules]]
effect = "deny"
tool = "*"
arguments = {{ path = {{ text = "*.env" }} }}
reason = "Files with secrets are not for models."

# [[policy.rules]]
# effect = "allow"
# tool = "execute_command"
# arguments = {{ command = {{ begins = ["npm", "test"] }} }}

# [[policy.limits]]
# tool = "execute_command"
# calls = 20
# seconds = 3600

# -- MCP servers -----------------------------------------------------------------------------------
# Each server is shown and needs an approval before it is started for the first time.

# [mcp.servers.files]
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-filesystem", "."]

# [mcp.servers.tracker]
# url = "https://tracker.example.com/mcp"
# headers = {{ Authorization = "Bearer ${{TRACKER_TOKEN}}" }}
"""

_SMALL = """\
context = 12000                       # maximum tokens of a request
after_results = "The question was: {task}\\nIf these results tell the answer, give it now. Else make another call."
"""


def configuration_text(model_list: list[FoundModel]) -> str:
    """Return the text of a configuration for these models; its agents use the first one."""
    local = FoundModel("local", "local:1.5b", "", "which is downloaded on first use, about 1 GB")
    profiles = model_list if any(model.name == "local" for model in model_list) else [*model_list, local]
    blocks = [_profile(model, used=not model_list or model in model_list) for model in profiles]
    first = profiles[0]
    small = not first.provider
    rest = _REST.format(
        profile=jsontext.dumps(first.name), rounds="8" if small else "20", small=_SMALL if small else ""
    )
    return _HEAD + "".join(blocks) + rest


def _profile(model: FoundModel, *, used: bool) -> str:
    lines = [f"[profiles.{model.name}]"]
    if model.provider:
        lines.append(f"provider = {jsontext.dumps(model.provider)}")
    lines.append(f"model = {jsontext.dumps(model.model)}")
    if model.key_env:
        lines.append(f"key_env = {jsontext.dumps(model.key_env)}")
    lines[0] = f"{lines[0]:<37} # {model.origin}" if used else f"{lines[0]:<35} # {model.origin}"
    return "\n" + "\n".join(lines if used else [f"# {line}" for line in lines]) + "\n"
