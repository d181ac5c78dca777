"""The options that `ask` and `chat` share: which model, which tools, what may run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import typer

from toolwire.cli.console import CliError
from toolwire.cli.format_option import read_format
from toolwire.cli.tool_options import Approve, PolicyFile, Roots, ToolFiles
from toolwire.cli.tools_command import tier_of
from toolwire.config.tables import COACH, INTENT
from toolwire.errors import UnknownApi
from toolwire.providers.api_registry import find_api, get_api
from toolwire.text.suggest import closest, did_you_mean
from toolwire.wire.format_registry import AUTO, get_format

DEFAULT_MODEL = "1.5b"
_NEAR_PROVIDER = 0.8
"""Smallest similarity of a provider that is suggested in place of the text before a colon."""
RequireToolCall = Annotated[
    bool,
    typer.Option(
        "--require-tool-call",
        help="Exit with status 1 unless a tool call succeeded. A hand-off to another agent does not count.",
    ),
]
"""The option of `ask` and `chat`."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of `ask` and `chat`; see `takes_options`."""

    root: Roots = None
    tools: ToolFiles = None
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            callback=read_format,
            help="Wire format to ask the model for, or a JSON file that describes one, or coach; by default, the "
            "fields of the API, and for a local model the best known format of its family.",
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="0.5b, 1.5b, the path of a GGUF file, hf:REPO/FILE, or a provider and its model, such as "
            "openai:gpt-5-mini; with --api or --base-url, its name there."
        ),
    ] = None
    api: Annotated[
        str | None, typer.Option(help="The provider API of a remote model; its key is read from the environment.")
    ] = None
    base_url: Annotated[
        str | None, typer.Option(help="The server's base URL; its API is openai_chat unless --api names another.")
    ] = None
    key_env: Annotated[str, typer.Option(help="The environment variable that contains the key for --base-url.")] = ""
    tier: Annotated[
        str | None,
        typer.Option(
            help="The highest tier of tools: crawl (search), walk (read), run (change); by default all tools, for a "
            "local model without built-in tools that change something."
        ),
    ] = None
    gate: Annotated[
        str | None,
        typer.Option(
            help="intent: offer a tool that changes something only if the words of the task ask for a change."
        ),
    ] = None
    constrain: Annotated[
        str | None,
        typer.Option(
            help="auto: the model can write no malformed call; required: nothing but calls, up to the last round of "
            "--max-rounds or a tool that ends the turn, which a model on this machine gets; by default, anything. It "
            "needs calls in the text, of a model on this machine or of an --api that takes grammars, such as vllm; or "
            "an --api with strict tools, such as openai."
        ),
    ] = None
    policy: PolicyFile = None
    yes: Approve = False
    config: Annotated[
        str | None, typer.Option("--config", "-c", help="A TOML file with agents and teams; see `toolwire init`.")
    ] = None
    agent: Annotated[str | None, typer.Option(help="The agent or team of --config.")] = None
    attach: Annotated[
        list[str] | None,
        typer.Option(
            help="An image, PDF, recording or other file for the question: a path or an address; may be repeated."
        ),
    ] = None
    session: Annotated[
        str | None,
        typer.Option(help="Continue the stored conversation of this name, or begin it; see `toolwire sessions`."),
    ] = None
    max_rounds: Annotated[int | None, typer.Option(min=1, max=1000, help="Maximum number of model turns.")] = None
    trace: Annotated[bool, typer.Option(help="Show raw calls, repairs, decisions and whole results.")] = False

    @property
    def remote(self) -> bool:
        """True if the options name a model on another machine."""
        return self.api is not None or self.base_url is not None

    @property
    def constraint_mode(self) -> Literal["auto", "required"] | None:
        """The mode of the constraint; None for no constraint."""
        return None if self.constrain is None else "required" if self.constrain == "required" else "auto"

    @property
    def extra(self) -> str:
        """The extras that these options need, for `pip install 'toolwire[...]'`."""
        if self.config is None and not self.remote:
            return "local"
        return "agent,bedrock" if (self.api or "").startswith("bedrock") else "agent"

    def _validate_constraint(self) -> None:
        if self.constrain not in (None, "auto", "required"):
            raise CliError(f"--constrain is auto or required, not {self.constrain!r}")
        if self.constrain is not None and self.config is not None:
            raise CliError("--constrain cannot be combined with --config, whose profiles have a key for it")

    def validate(self) -> AgentOptions:
        """Return these options, with the provider of `--model PROVIDER:NAME` as their API, if they can be combined.

        Raises:
            CliError: they cannot be combined.
            UnknownFormat, UnknownApi: a name is unknown.
        """
        options = self._with_provider()
        options._validate()
        return options

    def _with_provider(self) -> AgentOptions:
        """Return the options with a model such as `openai:gpt-5-mini` as the API and the name of the model there."""
        provider, colon, name = (self.model or "").partition(":")
        if self.remote or not (colon and name) or find_api(provider) is None:
            return self
        return replace(self, api=provider, model=name)

    def _validate(self) -> None:
        if self.format is not None:
            if self.format.lower() in (AUTO, "plain"):
                raise CliError(
                    f"{self.format} cannot be asked for; `toolwire formats` lists formats that a model can write"
                )
            if self.format != COACH:
                get_format(self.format)
        if self.tier is not None:
            tier_of(self.tier)
        self._validate_constraint()
        if self.gate not in (None, INTENT):
            raise CliError(f"--gate is {INTENT} or is left out, not {self.gate!r}")
        if self.gate is not None and self.config is not None:
            raise CliError("--gate cannot be combined with --config, whose agents have a key for it")
        if self.config is not None:
            for name, value in (("--model", self.model), ("--api", self.api), ("--base-url", self.base_url)):
                if value is not None:
                    raise CliError(f"{name} cannot be combined with --config, whose profiles name the model")
        elif self.agent is not None:
            raise CliError("--agent needs --config, the file that defines the agent")
        if self.api is not None:
            get_api(self.api)
        if self.remote and self.model is None:
            raise CliError("--api and --base-url need --model, the name of the model on the server")
        if not self.remote and self.config is None:
            check_local_model(self.model or DEFAULT_MODEL)


_SIZE_TAG = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bm](?:-[\w.-]+)?|latest")
"""The part behind the colon in the names of models that Ollama serves."""


def check_local_model(name: str) -> None:
    """Check that a model on this machine exists.

    Raises:
        CliError: it does not; the message says how a model behind an API is named.
    """
    from toolwire.models.local.model_files import unknown_model

    if problem := unknown_model(name):
        raise CliError(
            f"{problem}; a model behind an API needs its provider, as in openai:gpt-5-mini, or --api or --base-url"
            f"{_nearest_provider(name)}"
        )


def _nearest_provider(name: str) -> str:
    """Return the end of a message that says how a name with a colon is written, or "" if nothing resembles it."""
    provider, colon, model = name.partition(":")
    if _SIZE_TAG.fullmatch(model):  # deepseek-r1:7b names no provider, though one has nearly that name
        return f"; with Ollama, it is --api ollama --model {name}"
    try:
        get_api(provider)
    except UnknownApi as error:
        near = closest(provider, error.suggestions, similarity=_NEAR_PROVIDER)
        return did_you_mean(f"{other}:{model}" for other in near) if colon and model else ""
    return ""
