"""`toolwire mcp`: the tools of MCP servers, listed, agreed to and called; and our own tools, served."""

from __future__ import annotations

import asyncio
import json as jsontext
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.status import Status

from toolwire._surface import needs_extra
from toolwire.cli.approval_prompt import ApprovalPrompt, somebody
from toolwire.cli.call_command import DENIED, STATUS, described
from toolwire.cli.console import CliError, console, emit, plain, safe, say, styled
from toolwire.cli.input_files import read_pieces
from toolwire.cli.option_groups import takes_options
from toolwire.cli.tool_options import Approve, PolicyFile, Roots, ToolFiles, gather
from toolwire.cli.tools_command import tier_of
from toolwire.config.tables import load_configuration
from toolwire.errors import ConfigurationError
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.outcomes import Outcome, Shaping
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import ToolCall, ToolResult
from toolwire.policy.policy import Policy
from toolwire.policy.session import Session
from toolwire.runtime.isolation.isolated_call import remove_all
from toolwire.runtime.processes import kill_all
from toolwire.text.truncate import shorten
from toolwire.wire.arguments import read_arguments

if TYPE_CHECKING:
    from toolwire.mcp.router import McpRouter
    from toolwire.mcp.server_status import ServerQuestion, ServerStatus, ToolProgress, ToolStatus
    from toolwire.policy.approval import Agreement, Approval

TOKEN = "TOOLWIRE_MCP_TOKEN"
DESCRIPTION = 100
"""Characters of a description that a list shows."""

app = typer.Typer(
    no_args_is_help=True,
    help="Use the tools of MCP servers, and serve tools to MCP clients.",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

LIST_EXAMPLES = """Examples:

toolwire mcp list

toolwire mcp list --config ~/.cursor/mcp.json --json

The servers stand in a TOML file in tables `mcp.servers.NAME`, or in the JSON of another program. A server that has not
been used before, or is started in another way than before, is shown and asked about first.

Exit status: 0 all servers answered, 1 one did not."""

APPROVE_EXAMPLES = """Examples:

toolwire mcp approve files

toolwire mcp approve files write_file

Shows how the server is started and what its tools say now that was not agreed to before, and asks."""

CALL_EXAMPLES = """Examples:

toolwire mcp call files read_file '{"path": "notes.txt"}' --tier RUN

toolwire mcp call tracker search - --tier RUN --json < arguments.json

Tools of servers need the tier RUN, unless the file that names the server says otherwise. --yes agrees to the call,
never to a server or a description that nobody has agreed to: that is what `toolwire mcp approve` is for.

Exit status: 0 done, 1 the tool failed, 2 wrong usage or bad input, 3 it was not allowed."""

SERVE_EXAMPLES = """Examples:

toolwire mcp serve --root ~/notes

toolwire mcp serve --root . --http 8765

Over HTTP, clients need the token that is shown, or the one in the variable TOOLWIRE_MCP_TOKEN. What has to be asked is
asked through the client, if it can ask; else it is refused."""


Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="The file that names the servers; else config.toml of toolwire.")
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
TierName = Annotated[str, typer.Option("--tier", help="How far it goes: CRAWL, WALK or RUN.")]
Result = TypeVar("Result")


@app.command("list", epilog=LIST_EXAMPLES)
def list_servers(
    names: Annotated[list[str] | None, typer.Argument(metavar="[SERVER]...", help="Only these servers.")] = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """List the servers and their tools, with what is wrong with them."""

    async def work(router: McpRouter) -> list[ServerStatus]:
        with _SIGN.waiting("the servers answer"):
            return await router.connect(*(names or ()))

    found = _routed(config, ToolRegistry(), work)
    if json:
        for status in found:
            emit(plain(status))
    else:
        _show(found)
    if any(status.state not in ("ready", "off") for status in found):
        raise typer.Exit(1)


@app.command(epilog=APPROVE_EXAMPLES)
def approve(
    server: Annotated[str, typer.Argument(help="The server.")],
    tool: Annotated[str | None, typer.Argument(help="Only this tool of it.")] = None,
    config: Config = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Agree without being asked; all is still shown.")] = False,
) -> None:
    """Agree to how a server is started, and to what its tools say of themselves."""

    async def work(router: McpRouter) -> int:
        (status,) = await router.connect(server)
        if status.state != "ready":
            raise CliError(f"{server}: {status.reason}", status=1)
        pending = [one for one in status.tools if one.state in ("new", "changed") and tool in (None, one.name)]
        if tool is not None and tool not in {one.name for one in status.tools}:
            raise CliError(f"the server {server} has no tool {tool!r}")
        agreed = 0
        for one in pending:
            say(f"{one.name}: {one.reason}", "")
            if agreed_to(f"Agree to {one.name}?", yes=yes):
                router.approve(server, one.name)
                agreed += 1
        say(f"{server}: {agreed} of {len(pending)} tools approved" if pending else f"{server}: nothing is left to ask")
        return len(pending) - agreed

    if _routed(config, ToolRegistry(), work, yes=yes):
        raise typer.Exit(DENIED)


@app.command(epilog=CALL_EXAMPLES)
def call(
    server: Annotated[str, typer.Argument(help="The server.")],
    tool: Annotated[str, typer.Argument(help="The tool, by its name there.")],
    arguments: Annotated[str, typer.Argument(help="Its arguments, a JSON object; - is standard input.")] = "{}",
    config: Config = None,
    tier: TierName = "WALK",
    policy: PolicyFile = None,
    yes: Approve = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object: the call as it ran, its result, the exit status.")
    ] = False,
) -> None:
    """Call a tool of a server, with everything that stands between a model's call and its execution."""
    registry, reached = ToolRegistry(), tier_of(tier)
    text = "".join(read_pieces(None)) if arguments == "-" else arguments
    rules = _rules(policy)

    async def work(router: McpRouter) -> tuple[Outcome, tuple[str, ...]]:
        (status,) = await router.connect(server)
        one = _tool(status, tool)
        read = read_arguments(text, registry.lookup(one.called).definition)
        if read.value is None:
            why = read.problem.message if read.problem else "they are no JSON object"
            raise CliError(f"the arguments cannot be used: {why}")
        asked = _Asked(ApprovalPrompt(agree=yes and one.state == "approved"), one, server, yes=yes)
        executor = ToolExecutor(registry, policy=rules, confirm=asked)
        with _SIGN.waiting("the tool works"):
            return await executor.run(ToolCall(one.called, read.value, "call_1"), Session(tier=reached)), read.repairs

    outcome, repairs = _routed(config, registry, work)
    status = STATUS[outcome.issue.kind] if outcome.issue else 0 if outcome.result.success else 1
    if json:
        from toolwire.mcp.results import structured_content

        made = described(outcome, status)
        made["call"] |= {"server": server, "repairs": list(repairs)}
        made["result"]["structured"] = structured_content(outcome.result)
        emit(made)
    else:
        _show_result(outcome.result)
    if status:
        raise typer.Exit(status)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `mcp serve`; see `takes_options`."""

    root: Roots = None
    tools: ToolFiles = None
    tier: TierName = "WALK"
    policy: PolicyFile = None
    http: Annotated[
        int | None, typer.Option(min=0, max=65_535, metavar="PORT", help="Serve over HTTP; 0 is any free port.")
    ] = None
    host: Annotated[str, typer.Option(help="The address to listen on, with --http.")] = "127.0.0.1"
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another NAME:PORT under which the server is known; may be repeated.")
    ] = None
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="An origin, as https://NAME, whose pages may send requests; may be repeated."),
    ] = None
    no_token: Annotated[bool, typer.Option("--no-token", help="Serve everybody who can reach the port.")] = False
    timeout: Annotated[float, typer.Option(min=0.1, help="Time limit of one call, in seconds.")] = 60.0
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Run calls that need an approval without one.")] = False
    envelope: Annotated[
        str | None,
        typer.Option(metavar="AGENT", help="Cut results to what this agent can read; offer te_run and read_handle."),
    ] = None


@app.command(epilog=SERVE_EXAMPLES)
@takes_options(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Serve tools over MCP, on standard input and output or over HTTP."""
    with needs_extra("MCP"):
        from toolwire.mcp.http_server import HttpOptions, Listening, serve_http
        from toolwire.mcp.server import McpService
    registry = gather(options.root, options.tools)
    for definition in registry.definitions():
        if registry.lookup(definition.name).behavior.ends_turn:  # that is between a model and its own loop
            registry.remove(definition.name)
    shape = None if options.envelope is None else _enveloped(registry, options.envelope, options.root)
    if not len(registry):
        raise CliError("there is nothing to serve: say with --root which directories clients may see, or use --tools")
    quiet()
    service = McpService(
        registry,
        policy=_rules(options.policy),
        tier=tier_of(options.tier),
        agree=options.yes,
        timeout=options.timeout,
        shape=shape,
    )
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, _leave)
    if options.http is None:
        asyncio.run(service.stdio())
        return

    def ready(listening: Listening) -> None:
        say(f"toolwire: serving {listening.url}", "")
        if listening.token is None:
            say("toolwire: without a token: whoever can reach this port can use the tools", "yellow")
        else:
            say(f"toolwire: clients send the header Authorization: Bearer {listening.token}", "")

    token = None if options.no_token else os.environ.get(TOKEN, "")
    hosts, origins = tuple(options.allow_host or ()), tuple(options.allow_origin or ())
    asyncio.run(serve_http(service, HttpOptions(options.host, options.http, token, hosts, origins), ready=ready))


# -- what they share --------------------------------------------------------------------------------------------------


def _enveloped(registry: ToolRegistry, agent: str, root: list[str] | None) -> Shaping:
    """The tools of the envelope in the registry, and what shapes the results of all others."""
    from toolwire.envelope.envelope import Envelope
    from toolwire.envelope.te_tools import read_handle, te_run

    made = Envelope(agent=agent)
    for one in (te_run(agent=agent, root=root[0] if root else None), read_handle(made)):
        registry.register(one)

    def shape(call: ToolCall, result: ToolResult) -> ToolResult:
        return result if call.name == "te_run" else made.shape(call, result)  # it is shaped by the command

    return shape


def _leave(number: int, _: object) -> None:
    """End at once with what runs: a thread waits for the next line and cannot be told to stop."""
    kill_all()
    remove_all()
    os._exit(128 + number)


def quiet() -> None:
    """The SDK tells of what servers send on standard error; what matters of it is told here."""
    for name in ("mcp", "client", "httpx2"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _routed(
    config: Path | None,
    registry: ToolRegistry,
    work: Callable[[McpRouter], Coroutine[Any, Any, Result]],
    *,
    yes: bool = False,
) -> Result:
    """Do something with the servers that a file names."""
    with needs_extra("MCP"):
        from toolwire.mcp.approvals import Approvals
        from toolwire.mcp.oauth import Logins, login
        from toolwire.mcp.router import McpRouter
        from toolwire.mcp.servers import load_servers
    quiet()
    servers = load_servers(config if config is not None else _own_file())

    async def ask(question: ServerQuestion) -> bool:
        with _SIGN.aside():
            say(question.text, "")
            return agreed_to("Is that right?", yes=yes)

    def sign_in(name: str, address: str) -> None:
        with _SIGN.aside():
            say(f"{name} wants you to sign in. Open this address in a browser:\n{address}", "")

    def declined(name: str, question: str) -> None:
        with _SIGN.aside():
            say(f"toolwire: {name} asks in the middle of the call, which is declined here: {question}", "yellow")

    async def main() -> Result:
        approvals, logins = Approvals.of_user(), Logins.of_user()
        auth = {}
        for server in servers:
            if server.login and server.enabled:
                with suppress(ConfigurationError):  # the router says it
                    auth[server.name] = login(server, partial(sign_in, server.name), logins)
        router = McpRouter(
            servers,
            registry,
            approvals=approvals,
            approve=ask,
            progress=_SIGN.progress,
            auth=auth,
            asked=declined,
        )
        async with router:
            return await work(router)

    return asyncio.run(main())


def _own_file() -> Path:
    import platformdirs

    path = platformdirs.user_config_path("toolwire") / "config.toml"
    if not path.exists():
        raise CliError(f"say with --config which file names the servers; {path} is not there")
    return path


class _Sign:
    """What a terminal shows, on standard error, while something takes its time; it gives way to questions."""

    def __init__(self) -> None:
        self._status: Status | None = None

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show it as long as the block lasts."""
        screen = console(stderr=True)
        self._status = screen.status(styled(what, "dim")) if screen.is_terminal else None
        try:
            if self._status is not None:
                self._status.start()
            yield
        finally:
            if self._status is not None:
                self._status.stop()
            self._status = None

    def progress(self, report: ToolProgress) -> None:
        """How far a call has come."""
        if self._status is not None:
            of = f" of {report.total:g}" if report.total is not None else ""
            self._status.update(styled(f"{report.tool}: {report.done:g}{of} {report.message}", "dim"))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Nothing moves as long as the block lasts."""
        if self._status is not None:
            self._status.stop()
        try:
            yield
        finally:
            if self._status is not None:
                self._status.start()


_SIGN = _Sign()


def agreed_to(question: str, *, yes: bool) -> bool:
    """Whether somebody at this terminal agrees; nobody there is a no."""
    if yes:
        return True
    if not somebody():
        say("toolwire: nobody can be asked here, so the answer is no", "yellow")
        return False
    console(stderr=True).print(styled(f"{question} [y/N] ", "bold"), end="")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


class _Asked:
    """Asks about a call while nothing moves; --yes agrees to no description that nobody has seen."""

    def __init__(self, consent: ApprovalPrompt, tool: ToolStatus, server: str, *, yes: bool) -> None:
        self._consent, self._tool, self._server, self._yes = consent, tool, server, yes

    async def __call__(self, approval: Approval) -> Agreement:
        with _SIGN.aside():
            answer = await self._consent(approval)
        if answer.agreed or self._tool.state == "approved":
            return answer
        command = f"`toolwire mcp approve {self._server} {self._tool.name}`"
        hint = (
            f"--yes agrees to no description; {command} does" if self._yes else f"{command} asks about its description"
        )
        return replace(answer, reason=hint)


def _tool(status: ServerStatus, name: str) -> ToolStatus:
    """A tool that can be called, by its name on its server or by the one that models know."""
    if status.state != "ready":
        if status.state == "not approved":
            hint = f"`toolwire mcp approve {status.name}` asks about it"
            raise CliError(f"{status.name}: {status.reason}; {hint}", status=DENIED)
        raise CliError(f"{status.name}: {status.reason}", status=1)
    found = next((one for one in status.tools if name in (one.name, one.called)), None)
    if found is None:
        raise CliError(f"{status.name} has no tool {name!r}; it has {', '.join(one.name for one in status.tools)}")
    if not found.called:
        raise CliError(f"the tool {name} of {status.name} is {found.state}: {found.reason}".removesuffix(": "))
    return found


def _rules(path: str | None) -> Policy:
    return load_configuration(path).policy.made() if path else Policy()


def _show(found: list[ServerStatus]) -> None:
    screen = console()
    for status in found:
        about = f" ({status.about}, MCP {status.protocol})" if status.protocol else ""
        screen.print(styled(status.name, "bold"), styled(f" {status.state}{about}", _COLOURS[status.state]), sep="")
        for line in status.shown.splitlines():
            screen.print(styled(f"  {line}", "dim"))
        if status.reason:
            hint = f"; `toolwire mcp approve {status.name}` asks about it" if status.state == "not approved" else ""
            screen.print(styled(f"  {status.reason}{hint}", "yellow"))
        for tool in status.tools:
            _show_tool(tool)


def _show_tool(tool: ToolStatus) -> None:
    screen = console()
    name = tool.name
    if tool.state in ("quarantined", "off"):
        screen.print(styled(f"  {safe(name):<28} {tool.state}: {tool.reason}".removesuffix(": "), "yellow"))
        return
    marks = tool.tier.name + (", asks" if tool.confirm else "")
    first = tool.description.strip().split("\n")[0]
    first = shorten(first, DESCRIPTION)
    screen.print(styled(f"  {name:<28} {marks:<12} {first}"))
    if tool.state != "approved":
        for line in tool.reason.splitlines():
            screen.print(styled(f"      {line}", "yellow"))


_COLOURS = {"ready": "green", "waiting": "", "not approved": "yellow", "failed": "red", "off": "dim"}


def _show_result(result: ToolResult) -> None:
    screen = console(stderr=not result.success)
    if result.error is not None:
        screen.print(styled(result.error, "red"))
    elif not isinstance(result.result, str):
        screen.print(styled(jsontext.dumps(result.result, indent=2, ensure_ascii=False)))
    elif result.result:
        screen.print(styled(result.result))
    for image in result.images:
        say(f"(an image: {image.media_type}, {len(image.data) * 3 // 4} bytes)")
