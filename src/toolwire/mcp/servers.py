"""MCP servers as a user names them: how each is started or reached, and what its tools may do.

    [mcp.servers.files]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "."]

    [mcp.servers.tracker]
    url = "https://tracker.example.com/mcp"
    headers = { Authorization = "Bearer ${TRACKER_TOKEN}" }
    tools.delete_issue = { enabled = false }

The same can stand in the JSON that other programs keep, under `mcpServers` or `servers`. Nothing but such a file of the
user's own names a command to run or a place to connect to.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from toolwire.config.toml_source import read_text, read_toml, refused, toml_line
from toolwire.errors import ConfigurationError
from toolwire.mcp import jsonc
from toolwire.tools import Tier

CALL_SECONDS = 60.0
START_SECONDS = 30.0
MAX_MESSAGE = 16 << 20
"""Bytes of one message of a server."""

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


def _plain(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain a null character")
    return value


def _url(value: str) -> str:
    if value and "${" not in value:
        check_url(value)
    return value


_Tier = Annotated[Tier, BeforeValidator(_tier)]
_Text = Annotated[str, AfterValidator(_plain)]
_Seconds = Annotated[float, Field(gt=0, le=86_400)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolSettings(_Strict):
    """What the user says of one tool; that counts more than what its server says.

    Attributes:
        tier: the tier that a session must have reached.
        confirm: whether somebody must agree to each call.
        enabled: whether there is the tool at all.
    """

    tier: _Tier | None = None
    confirm: bool | None = None
    enabled: bool = True


class McpServer(_Strict):
    """One server.

    Attributes:
        name: what its tools are addressed by: letters, digits, `_` and `-`.
        command, args, env, cwd: a program of this machine that speaks over its standard input and output. It is run
            without a shell, with `env` added to the few harmless variables that it inherits.
        url, headers: or a server that is reached over HTTP.
        transport: "http" (streamable HTTP) or "sse" (its predecessor) for a `url`, "stdio" for a `command`.
        timeout: seconds that one call may take.
        start_timeout: seconds until it must have answered for the first time.
        max_message: bytes of one message that it sends; one that is longer ends the connection.
        enabled: whether it is used.
        trusted: whether the hints of its tools (read only, idempotent) are believed where they ask for less care.
        login: whether somebody has to sign in to it, over OAuth.
        private: whether its name, and those that it leads to, may stand for addresses of a private network.
        tier: the tier of all its tools.
        tools: what holds for single tools, by their name on the server.
        source: the file that names it; its approval holds for that file alone.
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
    trusted: bool = False
    login: bool = False
    private: bool = False
    tier: _Tier | None = None
    tools: dict[str, ToolSettings] = Field(default_factory=dict)
    source: str = ""

    @model_validator(mode="after")
    def _one_way(self) -> McpServer:
        if self.name and not _NAME.fullmatch(self.name):
            raise ValueError(f"a server's name is 1 to 64 letters, digits, _ and -, not {self.name!r:.80}")
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has either a command or a url")
        if self.transport is not None and (self.transport == "stdio") != bool(self.command):
            raise ValueError(f"the transport {self.transport} needs a {'command' if self.url else 'url'}")
        ours = {"args": self.args, "env": self.env, "cwd": self.cwd}
        foreign = {"headers": self.headers, "login": self.login, "private": self.private} if self.command else ours
        for key, value in foreign.items():
            if value:
                raise ValueError(f"{key} says nothing for a server with a {'command' if self.command else 'url'}")
        return self

    def settings(self, tool: str) -> ToolSettings:
        """What the user says of a tool."""
        return self.tools.get(tool) or ToolSettings()

    def launch(self, environment: Mapping[str, str] | None = None) -> Launch:
        """How it is started or reached, with the variables of the user's file filled in.

        Args:
            environment: where `${NAME}` and `${env:NAME}` are looked up; the process's own, if not given.

        Raises:
            ConfigurationError: a variable is not set, or what results cannot be used.
        """
        known = os.environ if environment is None else environment

        def filled(text: str) -> str:
            return _VARIABLE.sub(lambda match: self._variable(match[1], known), text)

        if self.url:
            url = filled(self.url)
            try:
                check_url(url)
            except ValueError as error:
                raise ConfigurationError(f"the server {self.name}: {error}") from error
            headers = {key: filled(value) for key, value in self.headers.items()}
            written = Launch("http", url=self.url, headers=self.headers)
            return Launch(self.transport or "http", url=url, headers=headers, written=written)
        folder = Path(self.source).parent if self.source else Path()
        argv = (filled(self.command), *map(filled, self.args))
        env = {key: filled(value) for key, value in self.env.items()}
        cwd = os.path.abspath(folder / Path(filled(self.cwd)).expanduser()) if self.cwd else ""
        # Paths in our own file begin where it is; other programs start their servers where they are themselves.
        ours = str(self.source).endswith(".toml")
        here = cwd or (os.path.abspath(folder) if ours else os.getcwd())
        program = _program(argv[0], here, env.get("PATH", os.environ.get("PATH", os.defpath)))
        if not cwd and any(_depends(text, here) for text in (self.command, *argv, *map(_value, argv))):
            cwd = here
        written = Launch("stdio", (self.command, *self.args), self.env)
        return Launch("stdio", argv, env, cwd, program=program, written=written)

    def _variable(self, text: str, known: Mapping[str, str]) -> str:
        match = _NAMED.fullmatch(text)
        if match is None:
            raise ConfigurationError(
                f"the server {self.name}: ${{{text}}} cannot be filled in; ${{NAME}}, ${{env:NAME}} and "
                "${NAME:-what else} are environment variables"
            )
        value = known.get(match[1])
        if not value and match[2] is not None:
            return match[2]
        if value is None:
            raise ConfigurationError(f"the server {self.name}: the environment variable {match[1]} is not set")
        return value


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started or reached, to the letter. Approvals are bound to it.

    Attributes:
        transport: "stdio", "http" or "sse".
        argv: the program and its arguments.
        env: variables that are added to its environment.
        cwd: the directory it runs in; "" is the one of this process, where that does not matter.
        program: the file that is run; "" if there is none.
        url: where it is.
        headers: what is sent along.
        written: the same as the user wrote it, with `${NAME}` for what is filled in; that is what is shown and kept.
    """

    transport: Transport
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    written: Launch | None = None

    @property
    def hash(self) -> str:
        """Sha256 hex digest of all of it; any change gives another."""
        facts: list[Any] = [self.transport, self.argv, sorted(self.env.items()), self.cwd, self.url]
        facts += [sorted(self.headers.items()), self.program]
        return hashlib.sha256(json.dumps(facts, separators=(",", ":")).encode()).hexdigest()

    @property
    def shown(self) -> str:
        """All of it for a reader, a line for each thing; what its name calls a secret is not shown, nor are headers.

        Each argument stands in quotes of its own, in which nothing is invisible.
        """
        said = self.written or self
        lines = [f"runs {' '.join(map(_quoted, said.argv))}"] if self.argv else [f"connects to {_quoted(said.url)}"]
        lines += [f"the program is {_quoted(self.program)}"] if self.program not in ("", *self.argv[:1]) else []
        lines += [f"in {_quoted(self.cwd)}"] if self.cwd else []
        for name, value in sorted(said.env.items()):
            lines.append(f"with {_quoted(name)}={_HIDDEN if _SECRET.search(name) else _quoted(value)}")
        lines += [f"with the header {_quoted(name)}: {_HIDDEN}" for name in sorted(self.headers)]
        return "\n".join(lines)


def _program(command: str, here: str, path: str) -> str:
    """The file that a command means in a directory; "" if there is none."""
    if os.path.dirname(command):
        found: str | None = os.path.join(here, os.path.expanduser(command) if os.name == "nt" else command)
    else:
        found = shutil.which(command, path=os.pathsep.join(os.path.join(here, one) for one in path.split(os.pathsep)))
    return os.path.normpath(found) if found and os.path.exists(found) else ""


def _value(argument: str) -> str:
    """What an option that is written with = is set to."""
    return argument.partition("=")[2] if argument.startswith("-") else argument


def _depends(text: str, here: str) -> bool:
    """Whether a word means something else in another directory: a path, or what programs look for where they are."""
    if not text or text.startswith("-") or os.path.isabs(text) or "://" in text:
        return False
    if "/" in text or os.sep in text or text in (".", ".."):
        return True
    return any(os.path.lexists(os.path.join(here, *way)) for way in ((text,), (f"{text}.py",), ("node_modules", text)))


_SECRET = re.compile(r"key|token|secret|passw|credential|auth|(?:^|_)pat(?:_|$)", re.IGNORECASE)
_HIDDEN = "(a secret)"


def _quoted(text: str) -> str:
    """Text that says where it begins and ends, if it has to; what a reader would not see stands as an escape."""
    plain = text.isprintable() and text.isascii() and text and not set(text) & set(" \"'\\")
    return text if plain else json.dumps(text, ensure_ascii=True)


def check_url(url: str) -> None:
    """Refuse a URL that is none of a server.

    Raises:
        ValueError: it is no http or https URL, names no host, names a user, or holds characters that are none of a URL.
    """
    if not url.isascii() or not url.isprintable() or re.search(r"[\s\\\"'`<>{}|^$]", url):
        raise ValueError("a url has only characters that URLs are made of")
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
    """The servers that a file names.

    A file whose name ends in `.json` holds them under `mcpServers` or `servers`, as other programs keep them; comments
    are allowed. Keys that say nothing here are left aside, and so is what other programs let run without asking. Any
    other file is TOML with tables `[mcp.servers.NAME]`, whose keys must all be known.

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
        raise ConfigurationError(f"{path}:{line}: mcp: only tables [mcp.servers.NAME] stand here")
    return _checked(path, servers, ("mcp", "servers"), lambda keys: toml_line(text, keys))


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
    except jsonc.NotJson as error:
        raise ConfigurationError(f"{path}:{error.line}: {error}") from error
    above, found = _table(value)
    if found is None:
        raise ConfigurationError(f"{path}: no object mcpServers or servers stands in it")
    servers: dict[str, Any] = {}
    spelled: dict[str, str] = {}  # as the file spells them
    for title, given in found.items():
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-")[:64]
        if name in servers or not name:
            line = lines.get((*above, title), 0)
            other = f"; {spelled[name]!r} becomes the same" if name in servers else ""
            raise ConfigurationError(f"{path}:{line}: {title!r} cannot be a server's name{other}")
        servers[name], spelled[name] = _translated(given), title

    def line_of(keys: list[str]) -> int:
        real = tuple(spelled.get(key, key) if at == len(above) else key for at, key in enumerate(keys))
        return next((lines[real[:end]] for end in range(len(real), 0, -1) if real[:end] in lines), 0)

    return _checked(path, servers, above, line_of)


def _table(value: Any) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    for above in (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers")):
        inner = value
        for key in above:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            return above, inner
    return (), None


def _translated(given: Any) -> Any:
    """An entry of another program's file in our keys."""
    if not isinstance(given, dict):
        return given
    ours: dict[str, Any] = {key: given[key] for key in _SAME_KEYS if given.get(key) is not None}
    if (url := next((given[key] for key in _URL_KEYS if given.get(key) is not None), None)) is not None:
        ours["url"] = url
    kind = given.get("type", given.get("transport"))
    if kind is not None:
        ours["transport"] = _TRANSPORTS.get(kind.casefold(), kind) if isinstance(kind, str) else kind
    if given.get("disabled") is True or given.get("enabled") is False:
        ours["enabled"] = False
    return ours


def _checked(
    path: str | PathLike[str], servers: dict[str, Any], above: tuple[str, ...], line_of: Any
) -> list[McpServer]:
    source = os.path.abspath(path)
    found: list[McpServer] = []
    for name, given in servers.items():
        if isinstance(given, dict):
            for key in ("name", "source"):
                if key in given:
                    line = line_of([*above, name, key])
                    raise ConfigurationError(f"{path}:{line}: {'.'.join([*above, name, key])}: this key is none")
        try:
            values = {**given, "name": name, "source": source} if isinstance(given, dict) else given
            found.append(McpServer.model_validate(values))
        except ValidationError as error:
            raise refused(path, error, line_of, (*above, name)) from error
    return found


def by_name(servers: Iterable[McpServer]) -> dict[str, McpServer]:
    """Servers by their names.

    Raises:
        ConfigurationError: two have the same, or one has none.
    """
    known: dict[str, McpServer] = {}
    for server in servers:
        if not server.name:
            raise ConfigurationError("a server needs a name")
        if server.name in known:
            raise ConfigurationError(f"two servers are called {server.name}")
        known[server.name] = server
    return known
