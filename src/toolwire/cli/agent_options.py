"""The options that `ask` and `chat` share: which model, which tools, what may run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from toolwire.cli.console import CliError
from toolwire.cli.small_model_prompts import SYSTEM
from toolwire.cli.tools_command import tier_of
from toolwire.config.tables import COACH
from toolwire.providers.api_registry import get_api
from toolwire.wire.format_registry import AUTO, get_format

DEFAULT_MODEL = "1.5b"
BY_WORDS = "auto"
"""The tier of each task is what its words ask for."""

Format = Annotated[
    str | None,
    typer.Option("--format", "-f", help="Wire format the model is asked to write, or coach; else the best known."),
]
Model = Annotated[
    str | None,
    typer.Option(help="0.5b, 1.5b, the path of a GGUF file, or hf:REPO/FILE; with --api or --base-url, its name."),
]
Api = Annotated[
    str | None, typer.Option(help="The API of a model that is not on this machine; the key is in the environment.")
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="The server's address; its API is openai_chat unless --api says.")
]
KeyEnv = Annotated[str, typer.Option("--key-env", help="The environment variable that holds the key for --base-url.")]
TierName = Annotated[
    str | None,
    typer.Option(
        help="What tasks may do: crawl (search), walk (read), run (change); auto: run if their words ask for it."
    ),
]
Rules = Annotated[str | None, typer.Option("--policy", help="A TOML file with the rules of what may run.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Agree to what would be asked; what is denied stays so.")]
Config = Annotated[
    str | None, typer.Option("--config", "-c", help="A TOML file with agents and teams, see `toolwire init`.")
]
Named = Annotated[str | None, typer.Option("--agent", help="The agent or team of --config.")]
Rounds = Annotated[int | None, typer.Option(min=1, max=1000, help="How many times the model may write.")]
Trace = Annotated[
    bool, typer.Option("--trace", help="Leave nothing out: raw calls, repairs, decisions, whole results.")
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options.

    Attributes:
        tier: that holds where none is given.
        system: for the model, where there are tools and no file says what.
    """

    roots: list[str] | None
    tools: list[str] | None
    format: str | None
    model: str | None
    api: str | None
    base_url: str | None
    key_env: str
    tier: str | None
    policy: str | None
    config: str | None
    agent: str | None
    rounds: int | None
    system: str = SYSTEM

    @property
    def remote(self) -> bool:
        """Whether the model is not on this machine, as far as the options say."""
        return self.api is not None or self.base_url is not None

    def checked(self) -> Wanted:
        """These options, if they go together.

        Raises:
            CliError: they do not.
            UnknownFormat, UnknownApi: there is none of that name.
        """
        if self.format is not None:
            if self.format.lower() in (AUTO, "plain"):
                raise CliError(
                    f"{self.format} cannot be asked for; `toolwire formats` lists formats that a model can write"
                )
            if self.format != COACH:
                get_format(self.format)
        if self.tier is not None and self.tier.lower() != BY_WORDS:
            tier_of(self.tier)
        if self.config is not None:
            for name, value in (("--model", self.model), ("--api", self.api), ("--base-url", self.base_url)):
                if value is not None:
                    raise CliError(f"{name} does not go with --config, whose profiles say which model it is")
        elif self.agent is not None:
            raise CliError("--agent needs --config, the file that describes the agent")
        if self.api is not None:
            get_api(self.api)
        if self.remote and self.model is None:
            raise CliError("say with --model what the server calls the model")
        if not self.remote and self.config is None:
            _check_local(self.model or DEFAULT_MODEL)
        return self


def _check_local(name: str) -> None:
    from toolwire.models.local.model_files import HUB
    from toolwire.models.local.weights import WEIGHTS

    if not name.startswith(HUB) and name.lower() not in WEIGHTS and not os.path.isfile(os.path.expanduser(name)):
        sizes = ", ".join(WEIGHTS)
        raise CliError(
            f"no model {name!r}: it is neither a size ({sizes}), a GGUF file that is there, nor hf:REPO/FILE"
        )
