"""`toolwire init`: a configuration to begin with, made for what is there: keys, a server of models, weights."""

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

Looks for keys in the environment, for Ollama on this machine, and for weights that were fetched before; asks nothing,
sends nothing. The file is commented; read it, and try `toolwire ask "Which files are here?" --config toolwire.toml`."""

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
"""A model to begin with, of each provider whose key is looked for; the first that has a key is used."""

OLLAMA = ("127.0.0.1", 11434)
SECONDS = 0.5
"""How long Ollama has to answer."""


@dataclass(frozen=True, slots=True)
class Found:
    """A model that is there.

    Attributes:
        name: of its profile.
        model: as the provider calls it.
        provider: its API; "" for a model on this machine.
        how: how it was found.
        key_env: the environment variable that holds its key.
    """

    name: str
    model: str
    provider: str
    how: str
    key_env: str = ""


def init(
    path: Annotated[str, typer.Argument(help="The file to write.")] = "toolwire.toml",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object: the file, and the models that were found.")
    ] = False,
) -> None:
    """Write a commented TOML file with profiles of the models that are there, agents, and a policy."""
    target = Path(path).expanduser()
    found = list(_keys(os.environ)) + list(_ollama(OLLAMA)) + list(_weights())
    text = written(found)
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise CliError(f"{path} is there already; --force replaces it", status=1) from None
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror or error}", status=1) from error
    if json:
        emit({"path": str(target), "profiles": [plain(one) for one in found]})
        return
    screen = console()
    screen.print(styled(f"{path} is written.", "bold"))
    for one in found:
        screen.print(styled(f"  {one.name}: {one.model}, {one.how}"))
    if not found:
        say("No key, no Ollama and no weights were found: the file names a small model, fetched when it is needed.")
    screen.print(styled(f'Try: toolwire ask "Which files are here?" --config {path} --agent reader'))


# -- what is there ---------------------------------------------------------------------------------------------------


def _keys(environment: Mapping[str, str]) -> Iterator[Found]:
    from toolwire.client.endpoints import ENDPOINTS

    for provider, model in MODELS.items():
        name = next((name for name in ENDPOINTS[provider].key if environment.get(name)), "")
        if name:
            yield Found(provider.partition("_")[0], model, provider, f"since {name} is set", name)


def _ollama(address: tuple[str, int]) -> Iterator[Found]:
    """The first model that Ollama has, if it answers."""
    host, port = address
    connection = HTTPConnection(host, port, timeout=SECONDS)
    try:
        connection.request("GET", "/api/tags")
        answer: Any = jsontext.loads(connection.getresponse().read(1 << 20))
        names = [str(one["name"]) for one in answer["models"]]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return  # nobody is there, or somebody else
    finally:
        connection.close()
    if names:
        yield Found("ollama", names[0], "ollama", f"which Ollama on this machine has, with {len(names)} in all")


def _weights() -> Iterator[Found]:
    from toolwire.models.local.weights import WEIGHTS, cache_folder

    for size, weights in reversed(WEIGHTS.items()):
        try:
            there = (cache_folder() / weights.filename).is_file()
        except ImportError:  # platformdirs comes with the extra `local`
            return
        if there:
            yield Found("local", f"local:{size}", "", "whose weights were fetched before")
            return


# -- the file --------------------------------------------------------------------------------------------------------

_HEAD = """\
# Models, agents and what they may do, for `toolwire ask`, `toolwire chat`, and `load_agent` in Python.
# What is wrong in this file is said with its line and its key.

# -- Models ----------------------------------------------------------------------------------------
# A profile says who serves a model. Keys stay in the environment: `key_env` names the variable.
"""

_REST = """
# [profiles.server]                   # any server that speaks the API of OpenAI: vLLM, llama.cpp, LM Studio, ...
# provider = "openai"
# url = "http://127.0.0.1:8000/v1"
# model = "Qwen/Qwen3-8B"
# tools = {{ definition_format = "hermes" }}    # write tools into the text; without this they are fields of the API

# -- Agents ----------------------------------------------------------------------------------------
# A model with tools. Paths begin where this file is.

[agents.reader]
profile = {profile}
system = "You answer questions about the files of this project. Look before you answer; never guess."
tier = "walk"                         # crawl: search; walk: read as well; run: change files, run commands
tools = {{ builtin = ["."] }}           # directories that the built-in tools may see
budget = {{ rounds = {rounds} }}             # also calls, tokens, seconds, and money with prices
{small}
[agents.editor]
profile = {profile}
system = "You change the files of this project as you are asked to. Look first, then make the smallest change."
gate = {{ min = "walk", max = "run" }}  # the words of each task unlock what it may do
tools = {{ builtin = ["."] }}           # python = ["tools.py"] adds @toolwire.tool functions, mcp = ["files"] a server
budget = {{ rounds = 30, seconds = 600 }}
# format = "hermes"                   # the wire format the model is asked to write; `toolwire formats` lists them
# use_xml_tool_format = true          # tools as XML in the text, whatever the model is
# envelope = "qwen-local"             # results in a Tool Envelope, cut to what this reader can hold
# context = 100000                    # tokens that a request may hold
# temperature = 0.2

# [teams.office]                      # the coordinator calls the members as tools
# coordinator = "editor"
# members = {{ reader = "Reads files and answers questions about them." }}

# -- Policy ----------------------------------------------------------------------------------------
# What may run, whoever asks for it. Changing files and running commands is asked about in any case.

[policy]
ask_when_untrusted = "run"            # after text of strangers was read, tools from this tier on are asked about

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
# Each is shown and asked about before it is started for the first time.

# [mcp.servers.files]
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-filesystem", "."]

# [mcp.servers.tracker]
# url = "https://tracker.example.com/mcp"
# headers = {{ Authorization = "Bearer ${{TRACKER_TOKEN}}" }}
"""

_SMALL = """\
context = 12000                       # tokens that a request may hold
after_results = "The question was: {task}\\nIf these results tell the answer, give it now. Else make another call."
"""


def written(found: list[Found]) -> str:
    """The text of a configuration for these models, the first of which the agents use."""
    local = Found("local", "local:1.5b", "", "which is fetched when it is first used, about 1 GB")
    profiles = found if any(one.name == "local" for one in found) else [*found, local]
    blocks = [_profile(one, used=not found or one in found) for one in profiles]
    first = profiles[0]
    small = not first.provider
    rest = _REST.format(
        profile=jsontext.dumps(first.name), rounds="8" if small else "20", small=_SMALL if small else ""
    )
    return _HEAD + "".join(blocks) + rest


def _profile(one: Found, *, used: bool) -> str:
    lines = [f"[profiles.{one.name}]"]
    if one.provider:
        lines.append(f"provider = {jsontext.dumps(one.provider)}")
    lines.append(f"model = {jsontext.dumps(one.model)}")
    if one.key_env:
        lines.append(f"key_env = {jsontext.dumps(one.key_env)}")
    lines[0] = f"{lines[0]:<37} # {one.how}" if used else f"{lines[0]:<35} # {one.how}"
    return "\n" + "\n".join(lines if used else [f"# {line}" for line in lines]) + "\n"
