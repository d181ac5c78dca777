"""Configuration of MCP servers: how each is started or reached, and what its tools may do.

    [mcp.servers.files]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "."]

    [mcp.servers.tracker]
    url = "https://tracker.example.com/mcp"
    headers = { Authorization = "Bearer ${TRACKER_TOKEN}" }
    tools.delete_issue = { enabled = false }

JSON files of other programs are read too, with the servers under `mcpServers` or `servers`. Only such a file of the
user's own names a command to run or an address to connect to.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from toolwire.config.toml_source import read_text, read_toml, refused, toml_line
from toolwire.errors import ConfigurationError
from toolwire.mcp import jsonc
from toolwire.runtime.launched_files import code_digests, depends_on_directory, option_value, program_file
from toolwire.tools import Tier

CALL_SECONDS = 60.0
START_SECONDS = 30.0
MAX_MESSAGE = 16 << 20
"""Maximum size of one message of a server, in bytes."""

Transport = Literal["stdio", "http", "sse"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAMED = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def _tier(value: Any) -> Any:
    if isinstance(value, str):
        if value.upper() not in Tier.__members__:
            raise ValueError(f"a tier is one of {', '.join(Tier.__members__)}, not {value!r}")
        return Tier[value.upper()]
    if not isinstance(value, Tier):
        raise ValueError(f"a tier is one of {', '.join(Tier.__members__)}, in quotes")
    return value


def _without_null(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain a null character")
    return value


def _url(value: str) -> str:
    if value and "${" not in value:
        check_url(value)
    return value


_Tier = Annotated[Tier, BeforeValidator(_tier)]
_Text = Annotated[str, AfterValidator(_without_null)]
_Seconds = Annotated[float, Field(gt=0, le=86_400)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def __init__(self, **values: Any) -> None:
        """Check the values.

        Raises:
            ValueError: one of them cannot be used, or a needed one is missing.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            kind = type(self)
            raise ValueError(str(refused(kind.__name__, error, lambda _: 0, model=kind))) from None

    # So that pydantic does not call it for the tables of a file, whose errors have a place in that file.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class ToolSettings(_Strict):
    """The user's settings for one tool, which override its server's hints.

    Attributes:
        tier: the tier that a session must have reached.
        confirm: whether each call needs approval.
        enabled: whether the tool is registered at all.
    """

    tier: _Tier | None = None
    confirm: bool | None = None
    enabled: bool = True


class McpServer(_Strict):
    """One server.

    Attributes:
        name: the prefix of its tools' names: letters, digits, `_` and `-`.
        command: a program of this machine that serves on its standard input and output; it is run without a shell.
        args: the arguments of the program.
        env: variables in addition to the few harmless ones that the program inherits.
        cwd: the directory in which the program runs.
        url: the address of a server that is reached over HTTP, in place of a program.
        headers: headers of each request to the server.
        transport: "http" (streamable HTTP) or "sse" (its predecessor) for a `url`, "stdio" for a `command`.
        timeout: seconds that one call may take.
        start_timeout: seconds until its first answer.
        max_message: maximum size of one of its messages, in bytes; a longer one ends the connection.
        enabled: whether it is used.
        ask: before which calls of its tools approval is asked for: "hints" (of tools that may destroy something, as
            they or MCP's defaults say), "always" or "never".
        trusted: whether the hints of its tools (read only, idempotent) are believed where they ask for less care.
        login: whether it needs a login over OAuth.
        private: whether its name, and names that it redirects to, may have addresses of a private network.
        tier: the tier of all its tools.
        tools: settings for single tools, by their name on the server.
        source: the file that names it; its approval applies to that file alone.
    """

    name: str = ""
    command: _Text = ""
    args: tuple[_Text, ...] = ()
    env: dict[_Text, _Text] = Field(default_factory=dict)
    cwd: _Text = ""
    url: Annotated[str, AfterValidator(_url)] = ""
    headers: dict[str, str] = Field(default_factory=dict)
    transport: Transport | None = None
    timeout: _Seconds = CALL_SECONDS
    start_timeout: _Seconds = START_SECONDS
    max_message: Annotated[int, Field(ge=1 << 10, le=1 << 30)] = MAX_MESSAGE
    enabled: bool = True
    ask: Literal["hints", "always", "never"] = "hints"
    trusted: bool = False
    login: bool = False
    private: bool = False
    tier: _Tier | None = None
    tools: dict[str, ToolSettings] = Field(default_factory=dict)
    source: str = ""

    @model_validator(mode="after")
    def _check_transport(self) -> McpServer:
        if self.name and not _NAME.fullmatch(self.name):
            raise ValueError(f"a server's name is 1 to 64 letters, digits, _ and -, not {self.name!r:.80}")
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has either a command or a url")
        if self.transport is not None and (self.transport == "stdio") != bool(self.command):
            raise ValueError(f"the transport {self.transport} needs a {'command' if self.url else 'url'}")
        local = {"args": self.args, "env": self.env, "cwd": self.cwd}
        foreign = {"headers": self.headers, "login": self.login, "private": self.private} if self.command else local
        for key, value in foreign.items():
            if value:
                raise ValueError(f"{key} has no meaning for a server with a {'command' if self.command else 'url'}")
        return self

    def settings(self, tool: str) -> ToolSettings:
        """Return the user's settings for a tool."""
        return self.tools.get(tool) or ToolSettings()

    def launch(self, environment: Mapping[str, str] | None = None) -> Launch:
        """Return how it is started or reached, with the variables of the user's file filled in.

        The files that it runs are read, which may take long.

        Args:
            environment: where `${NAME}` and `${env:NAME}` are looked up; the process's own, if not given.

        Raises:
            ConfigurationError: a variable is not set, or the result cannot be used.
        """
        launch, directory = _launch_without_files(self, environment)
        if not launch.argv:
            return launch
        try:
            digests = code_digests(launch.program, launch.argv, directory, launch.env)
        except OSError as error:
            raise ConfigurationError(f"cannot read {error.filename}: {error.strerror}") from error
        return replace(launch, contents=digests)


@dataclass(frozen=True, slots=True)
class Launch:
    """The exact command or address of a server. Approvals are bound to it.

    Attributes:
        transport: "stdio", "http" or "sse".
        argv: the program and its arguments.
        env: variables that are added to its environment.
        cwd: the directory it runs in; "" for that of this process, where it makes no difference.
        program: the file that is run; "" if there is none.
        contents: digests of the program and of the files of code that arguments name, by path.
        url: its address.
        headers: headers that each request carries.
        written: the same as the user wrote it, with `${NAME}` for each variable; this is shown and stored.
    """

    transport: Transport
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    contents: Mapping[str, str] = field(default_factory=dict)
    written: Launch | None = None

    @property
    def hash(self) -> str:
        """SHA-256 of all of it, as hexadecimal digits."""
        facts: list[Any] = [self.transport, self.argv, sorted(self.env.items()), self.cwd, self.url]
        facts += [sorted(self.headers.items()), self.program]
        # A server that is reached over HTTP runs no file; its approval is as it was before files counted.
        facts += [sorted(self.contents.items())] if self.contents else []
        return hashlib.sha256(json.dumps(facts, separators=(",", ":")).encode()).hexdigest()

    @property
    def shown(self) -> str:
        """All of it for a reader, one line for each part.

        Values of headers are hidden, and so are variables whose name suggests a secret. Arguments are quoted, and
        invisible characters escaped.
        """
        written = self.written or self
        lines = (
            [f"runs {' '.join(map(_quoted, written.argv))}"] if self.argv else [f"connects to {_quoted(written.url)}"]
        )
        lines += [f"the program is {_quoted(self.program)}"] if self.program not in ("", *self.argv[:1]) else []
        lines += [f"in {_quoted(self.cwd)}"] if self.cwd else []
        for name, value in sorted(written.env.items()):
            lines.append(f"with {_quoted(name)}={_HIDDEN if _SECRET.search(name) else _quoted(value)}")
        lines += [f"with the header {_quoted(name)}: {_HIDDEN}" for name in sorted(self.headers)]
        return "\n".join(lines)


def shown_launch(server: McpServer) -> str:
    """Return how a server is started or reached, as `Launch.shown`; no file is read.

    Raises:
        ConfigurationError: a variable is not set, or the result cannot be used.
    """
    return _launch_without_files(server, None)[0].shown


def _launch_without_files(server: McpServer, environment: Mapping[str, str] | None) -> tuple[Launch, str]:
    """Return how a server is started or reached, and the directory in which it runs; see `McpServer.launch`."""
    variables = os.environ if environment is None else environment

    def fill_in(text: str) -> str:
        return _VARIABLE.sub(lambda match: _variable(server.name, match[1], variables), text)

    if server.url:
        url = fill_in(server.url)
        try:
            check_url(url)
        except ValueError as error:
            raise ConfigurationError(f"the server {server.name}: {error}") from error
        headers = {key: fill_in(value) for key, value in server.headers.items()}
        written = Launch("http", url=server.url, headers=server.headers)
        return Launch(server.transport or "http", url=url, headers=headers, written=written), ""
    folder = Path(server.source).parent if server.source else Path()
    argv = (fill_in(server.command), *map(fill_in, server.args))
    env = {key: fill_in(value) for key, value in server.env.items()}
    cwd = os.path.abspath(folder / Path(fill_in(server.cwd)).expanduser()) if server.cwd else ""
    # Paths in a TOML file are relative to it; other programs start their servers in their own current directory.
    beside_file = str(server.source).endswith(".toml")
    directory = cwd or (os.path.abspath(folder) if beside_file else os.getcwd())
    program = program_file(argv[0], directory, env.get("PATH", os.environ.get("PATH", os.defpath)))
    if not cwd and any(
        depends_on_directory(text, directory) for text in (server.command, *argv, *map(option_value, argv))
    ):
        cwd = directory
    written = Launch("stdio", (server.command, *server.args), server.env)
    return Launch("stdio", argv, env, cwd, program=program, written=written), directory


def _variable(server: str, text: str, known: Mapping[str, str]) -> str:
    match = _NAMED.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"the server {server}: ${{{text}}} cannot be filled in; ${{NAME}}, ${{env:NAME}} and "
            "${NAME:-default} are environment variables"
        )
    value = known.get(match[1])
    if not value and match[2] is not None:
        return match[2]
    if value is None:
        raise ConfigurationError(f"the server {server}: the environment variable {match[1]} is not set")
    return value


_SECRET = re.compile(r"key|token|secret|passw|credential|auth|(?:^|_)pat(?:_|$)", re.IGNORECASE)
_HIDDEN = "(a secret)"


def _quoted(text: str) -> str:
    """Return text in quotes unless it is a plain word; invisible characters are escaped."""
    plain = text.isprintable() and text.isascii() and text and not set(text) & set(" \"'\\")
    return text if plain else json.dumps(text, ensure_ascii=True)


def check_url(url: str) -> None:
    """Refuse a URL that cannot be a server's.

    Raises:
        ValueError: it is not an http or https URL, names no host, names a user, or has characters that no URL has.
    """
    if not url.isascii() or not url.isprintable() or re.search(r"[\s\\\"'`<>{}|^$]", url):
        raise ValueError("a url contains only the characters of URLs")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"not a url: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"a url begins with http:// or https://, not with {parts.scheme or 'nothing'}")
    if not host:
        raise ValueError("the url names no host")
    if "@" in parts.netloc:
        raise ValueError("the url must not name a user; secrets belong in headers")


def load_servers(path: str | PathLike[str]) -> list[McpServer]:
    """Return the servers that a file names.

    A file whose name ends in `.json` contains them under `mcpServers` or `servers`, as other programs write them;
    comments are allowed. Unknown keys are ignored, and so are calls that other programs run without asking. Any other
    file is TOML with tables `[mcp.servers.NAME]`, in which unknown keys are errors.

    Raises:
        ConfigurationError: it cannot be read; the message names the file, the line and the key.
    """
    text = read_text(path)
    if Path(path).suffix == ".json":
        return _from_json(path, text)
    table = read_toml(path, text).get("mcp", {})
    servers = table.get("servers", {}) if isinstance(table, dict) else None
    if not isinstance(servers, dict) or set(table) - {"servers"}:
        line = toml_line(text, ["mcp"])
        raise ConfigurationError(f"{path}:{line}: mcp: only tables [mcp.servers.NAME] are allowed here")
    return _validated(path, servers, ("mcp", "servers"), lambda keys: toml_line(text, keys))


_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_URL_KEYS = ("url", "serverUrl", "httpUrl")
_SAME_KEYS = ("command", "args", "env", "cwd", "headers")


def _from_json(path: str | PathLike[str], text: str) -> list[McpServer]:
    try:
        value, lines = jsonc.read(text)
    except jsonc.JsoncError as error:
        raise ConfigurationError(f"{path}:{error.line}: {error}") from error
    above, table = _table(value)
    if table is None:
        raise ConfigurationError(f"{path}: it has no object mcpServers or servers")
    servers: dict[str, Any] = {}
    spelled: dict[str, str] = {}  # as the file spells them
    for title, entry in table.items():
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-")[:64]
        if name in servers or not name:
            line = lines.get((*above, title), 0)
            other = f"; {spelled[name]!r} becomes the same" if name in servers else ""
            raise ConfigurationError(f"{path}:{line}: {title!r} cannot be a server's name{other}")
        servers[name], spelled[name] = _translated(entry), title

    def line_of(keys: list[str]) -> int:
        real = tuple(spelled.get(key, key) if at == len(above) else key for at, key in enumerate(keys))
        return next((lines[real[:end]] for end in range(len(real), 0, -1) if real[:end] in lines), 0)

    return _validated(path, servers, above, line_of)


def _table(value: Any) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    for above in (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers")):
        inner = value
        for key in above:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            return above, inner
    return (), None


def _translated(given: Any) -> Any:
    """Return an entry of another program's file with the keys of `McpServer`."""
    if not isinstance(given, dict):
        return given
    translated: dict[str, Any] = {key: given[key] for key in _SAME_KEYS if given.get(key) is not None}
    if (url := next((given[key] for key in _URL_KEYS if given.get(key) is not None), None)) is not None:
        translated["url"] = url
    kind = given.get("type", given.get("transport"))
    if kind is not None:
        translated["transport"] = _TRANSPORTS.get(kind.casefold(), kind) if isinstance(kind, str) else kind
    if given.get("disabled") is True or given.get("enabled") is False:
        translated["enabled"] = False
    return translated


def _validated(
    path: str | PathLike[str], servers: dict[str, Any], above: tuple[str, ...], line_of: Any
) -> list[McpServer]:
    source = os.path.abspath(path)
    checked: list[McpServer] = []
    for name, entry in servers.items():
        if isinstance(entry, dict):
            for key in ("name", "source"):
                if key in entry:
                    line = line_of([*above, name, key])
                    raise ConfigurationError(f"{path}:{line}: {'.'.join([*above, name, key])}: unknown key")
        try:
            values = {**entry, "name": name, "source": source} if isinstance(entry, dict) else entry
            checked.append(McpServer.model_validate(values))
        except ValidationError as error:
            raise refused(path, error, line_of, (*above, name)) from error
    return checked


def by_name(servers: Iterable[McpServer]) -> dict[str, McpServer]:
    """Return servers by name.

    Raises:
        ConfigurationError: two servers have the same name, or one has none.
    """
    named: dict[str, McpServer] = {}
    for server in servers:
        if not server.name:
            raise ConfigurationError("a server needs a name")
        if server.name in named:
            raise ConfigurationError(f"two servers are called {server.name}")
        named[server.name] = server
    return named
