"""The tables of the gateway in a TOML file.

[gateway]
port = 4100

[gateway.models.coder]
profile = "coder"
fallback = ["cloud"]
context = 32768
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field, model_validator

from toolwire.errors import UnknownFormat
from toolwire.wire.format_registry import AUTO, get_format

NO_FORMAT = "none"
"""The name in `calls_in_text` for a model whose text contains no calls."""
PORT = 4100
"""The default port of the gateway."""
TOOL_ROUNDS = 8
"""The default maximum number of rounds in which tools of the gateway run for one answer."""
STORE = "TOOLWIRE_GATEWAY_STORE"
"""The environment variable with the URL of the gateway's store, which may contain a password."""


def without_password(url: str) -> str:
    """Return a URL.

    Raises:
        ValueError: it contains a password, which does not belong in a file.
    """
    if "://" in url and urlsplit(url).password:
        raise ValueError(f"the URL contains a password: set {STORE} in the environment to it instead")
    return url


def _text_format(name: str) -> str:
    if name not in ("", NO_FORMAT, AUTO):
        try:
            return get_format(name).name
        except UnknownFormat as error:
            raise ValueError(str(error)) from error
    return name


class PriceTable(BaseModel, extra="forbid", frozen=True):
    """The price of a million tokens; see `toolwire.agent.Prices`."""

    input: Annotated[float, Field(ge=0)] = 0.0
    output: Annotated[float, Field(ge=0)] = 0.0
    cached: Annotated[float, Field(ge=0)] | None = None


class GatewayModelTable(BaseModel, extra="forbid", frozen=True):
    """A model that the gateway offers, by the name that clients ask for; `*` in the name stands for any text.

    Attributes:
        profile: its model, of `[profiles]`; the profile of the same name without it.
        shares: profiles that answer in turn, each with its share of the requests, in place of `profile`.
        fallback: profiles that are asked, in order, where none of these answers; by default those of the profile.
        calls_in_text: the wire format of calls that the model writes into its text; "auto" for any, "none" for none; by
            default as the model is known, and "auto" for an unknown one on a server of one's own.
        constrain: "auto" or "required" in place of what the profile says.
        retries: 1 to ask a model whose calls are read in its text once more, if a call in its answer has a problem and
            nothing of the answer has been sent.
        tools: whether the model is offered the tools of `[gateway.tools]`.
        context: the number of tokens that fit into the model.
        prices: the prices of its tokens, for keys that are limited in money; by default those that its provider
            publishes.
    """

    profile: str = ""
    shares: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    fallback: tuple[str, ...] | None = None
    calls_in_text: Annotated[str, AfterValidator(_text_format)] | None = None
    constrain: Literal["auto", "required"] | None = None
    retries: Annotated[int, Field(ge=0, le=1)] = 0
    tools: bool = False
    context: Annotated[int, Field(ge=1)] | None = None
    prices: PriceTable | None = None

    @model_validator(mode="after")
    def _one_source(self) -> GatewayModelTable:
        if self.profile and self.shares:
            raise ValueError("a model has a profile or shares, not both")
        return self

    def profiles_of(self, name: str) -> tuple[str, ...]:
        """Return the profiles that answer, without those that are asked where they fail."""
        return tuple(self.shares) or (self.profile or name,)


class GatewayToolsTable(BaseModel, extra="forbid", frozen=True):
    """Tools that the gateway itself runs, under `[policy]`; a call that would need an approval is refused.

    Attributes:
        builtin: names of built-in tools, such as "read_file" and "search_files".
        root: the directory below which they work, relative to the file.
        mcp: names of servers in `[mcp.servers]`, which were approved before.
        rounds: the maximum number of rounds in which tools run for one answer.
        timeout: the maximum time of one call, in seconds.
        max_result: the maximum length of the text of one result, in characters; of a longer one, the model reads the
            beginning and the end, and a note.
        show_tools: whether clients see the calls, as reasoning.
    """

    builtin: tuple[str, ...] = ()
    root: str = ""
    mcp: tuple[str, ...] = ()
    rounds: Annotated[int, Field(ge=1, le=100)] = TOOL_ROUNDS
    timeout: Annotated[float, Field(gt=0)] = 60.0
    max_result: Annotated[int, Field(ge=1_000)] = 50_000
    show_tools: bool = False


class GatewayInspectorTable(BaseModel, extra="forbid", frozen=True):
    """The inspector of the gateway.

    Attributes:
        enabled: whether there is one; by default on a loopback address alone.
        content: whether the content of requests and answers is kept; otherwise names and figures are.
        exchanges: maximum number of requests that are kept.
        memory: maximum size of all of them, in MiB.
    """

    enabled: bool | None = None
    content: bool = True
    exchanges: Annotated[int, Field(ge=1)] = 1_000
    memory: Annotated[int, Field(ge=1)] = 64


class GatewayTable(BaseModel, extra="forbid", frozen=True):
    """The gateway: its address, who may use it, and its models.

    Attributes:
        host: the address it listens on.
        port: the port.
        reuse_port: whether several gateways may listen on the port; the system spreads connections over them.
        hosts: further names that requests may give as the host.
        origins: origins of web pages that may send requests.
        max_body: maximum size of a request's body, in MiB.
        grace: seconds that running answers have to finish when the server ends.
        store: URL of the state that several gateways share, such as "postgresql://server/name", without a password.
            The path in "sqlite:///PATH" is relative to the file. By default a file of this user if there are virtual
            keys, and otherwise the memory of this process.
        response_days: days for which answers of the Responses API are stored, unless a request says `store = false`; 0
            to store none.
        virtual_keys: whether clients need a key of `toolwire keys`.
        tools: tools that the gateway itself runs, for the models that say so.
        inspector: the page that shows what happened to each request.
        models: the models, by the names that clients ask for; each profile under its own name without it.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = PORT
    reuse_port: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    max_body: Annotated[int, Field(ge=1)] = 64
    grace: Annotated[int, Field(ge=0)] = 30
    store: Annotated[str, AfterValidator(without_password)] = ""
    response_days: Annotated[float, Field(ge=0)] = 30
    virtual_keys: bool = False
    tools: GatewayToolsTable = GatewayToolsTable()
    inspector: GatewayInspectorTable = GatewayInspectorTable()
    models: dict[str, GatewayModelTable] = Field(default_factory=dict)

    def dangling(self, profiles: Container[str]) -> Iterator[tuple[list[str], str]]:
        """Yield references to profiles that do not exist: the keys that lead to each, and its name."""
        for name, model in self.models.items():
            for profile in model.profiles_of(name):
                if profile not in profiles:
                    key = "shares" if model.shares else "profile"
                    yield ["gateway", "models", name, key], profile
            for profile in model.fallback or ():
                if profile not in profiles:
                    yield ["gateway", "models", name, "fallback"], profile
