"""`toolwire mcp`: list, approve and call the tools of MCP servers, and serve tools to MCP clients."""

from __future__ import annotations

import asyncio
import json as jsontext
import logging
import os
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from toolwire._surface import needs_extra
from toolwire.cli.approval_prompt import ApprovalPrompt, is_interactive
from toolwire.cli.busy_sign import BUSY
from toolwire.cli.call_command import DENIED, call_hint, exit_status, outcome_json
from toolwire.cli.console import CliError, console, emit, plain, safe, say, styled
from toolwire.cli.input_files import read_pieces
from toolwire.cli.media_output import Output, media_lines, save_media
from toolwire.cli.option_groups import takes_options
from toolwire.cli.tool_options import Approve, PolicyFile, Roots, ToolFiles, load_policy, load_registry
from toolwire.cli.tools_command import tier_of
from toolwire.errors import ConfigurationError
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.outcomes import Outcome, Shaping
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import ToolCall, ToolResult
from toolwire.policy.session import Session
from toolwire.runtime.isolation.isolated_call import remove_all
from toolwire.runtime.processes import kill_all
from toolwire.text.truncate import shorten
from toolwire.wire.arguments import read_arguments

if TYPE_CHECKING:
    from toolwire.mcp.router import McpRouter
    from toolwire.mcp.server_status import ServerQuestion, ServerStatus, ToolStatus
    from toolwire.policy.approval import Approval, ApprovalAnswer

TOKEN = "TOOLWIRE_MCP_TOKEN"
DESCRIPTION = 100
"""Maximum length of a description in a list, in characters."""

app = typer.Typer(
    no_args_is_help=True,
    help="Use the tools of MCP servers, and serve tools to MCP clients.",
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

LIST_EXAMPLES = """Examples:

toolwire mcp list

toolwire mcp list --config ~/.cursor/mcp.json --json

Servers are defined in the tables `mcp.servers.NAME` of a TOML file, or in the JSON file of another program. A new
server, or one whose command has changed, is shown and needs an approval first.

Exit status: 0 all servers answered, 1 at least one did not."""

APPROVE_EXAMPLES = """Examples:

toolwire mcp approve files

toolwire mcp approve files write_file

The command shows how the server is started and each new or changed description of a tool, and asks for an approval."""

CALL_EXAMPLES = """Examples:

toolwire mcp call files read_file '{"path": "notes.txt"}' --tier RUN

toolwire mcp call tracker search - --tier RUN --json < arguments.json

Tools of servers need the tier RUN, unless the file that defines the server sets another tier. --yes approves the call,
but never a new server or description: use `toolwire mcp approve` for that.

Exit status: 0 done, 1 the tool failed, 2 wrong usage or bad input, 3 the call was denied."""

SERVE_EXAMPLES = """Examples:

toolwire mcp serve --root ~/notes

toolwire mcp serve --root . --http 8765

Over HTTP, clients need the token that is shown, or the one in the environment variable TOOLWIRE_MCP_TOKEN. Approvals
are requested through the client; if the client does not support that, the call is refused."""


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="The file that defines the servers; by default, the user's toolwire/config.toml.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
TierName = Annotated[str, typer.Option("--tier", help="The highest permitted tier: CRAWL, WALK or RUN.")]
Result = TypeVar("Result")


@app.command("list", epilog=LIST_EXAMPLES)
def list_servers(
    names: Annotated[list[str] | None, typer.Argument(metavar="[SERVER]...", help="List only these servers.")] = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """List the servers and their tools, with their problems."""

    async def work(router: McpRouter) -> list[ServerStatus]:
        with BUSY.waiting("the servers answer"):
            return await router.connect(*(names or ()))

    statuses = _with_servers(config, ToolRegistry(), work)
    if json:
        for status in statuses:
            emit(plain(status))
    else:
        _show(statuses, config)
    if any(status.state not in ("ready", "off") for status in statuses):
        raise typer.Exit(1)


@app.command(epilog=APPROVE_EXAMPLES)
def approve(
    server: Annotated[str, typer.Argument(help="The name of the server.")],
    tool: Annotated[str | None, typer.Argument(help="Approve only this tool.")] = None,
    config: Config = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Approve without asking; everything is still shown.")
    ] = False,
) -> None:
    """Approve the command of a server and the descriptions of its tools."""

    async def work(router: McpRouter) -> int:
        (status,) = await router.connect(server)
        if status.state != "ready":
            raise CliError(f"{server}: {status.reason}", status=1)
        pending = [
            tool_status
            for tool_status in status.tools
            if tool_status.state in ("new", "changed") and tool in (None, tool_status.name)
        ]
        if tool is not None and tool not in {tool_status.name for tool_status in status.tools}:
            raise CliError(f"the server {server} has no tool {tool!r}")
        approved = 0
        for tool_status in pending:
            say(f"{tool_status.name}: {tool_status.reason}", "")
            if confirm_at_terminal(f"Approve {tool_status.name}?", yes=yes):
                router.approve(server, tool_status.name)
                approved += 1
        say(
            f"{server}: {approved} of {len(pending)} tools approved" if pending else f"{server}: everything is approved"
        )
        return len(pending) - approved

    if _with_servers(config, ToolRegistry(), work, yes=yes):
        raise typer.Exit(DENIED)


@dataclass(frozen=True, slots=True)
class McpCallOptions:
    """The options of `mcp call`; see `takes_options`."""

    config: Config = None
    tier: TierName = "WALK"
    policy: PolicyFile = None
    yes: Approve = False
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the call as it ran, its result, the exit status.")
    ] = False
    output: Output = None


@app.command(epilog=CALL_EXAMPLES)
@takes_options(McpCallOptions)
def call(
    server: Annotated[str, typer.Argument(help="The name of the server.")],
    tool: Annotated[str, typer.Argument(help="The name of the tool on the server.")],
    options: McpCallOptions,
    arguments: Annotated[
        str, typer.Argument(help="The arguments, as a JSON object; - reads them from standard input.")
    ] = "{}",
) -> None:
    """Call a tool of a server, through the same checks as a model's call."""
    registry, session_tier = ToolRegistry(), tier_of(options.tier)
    text = "".join(read_pieces(None)) if arguments == "-" else arguments
    rules = load_policy(options.policy)

    async def work(router: McpRouter) -> tuple[Outcome, tuple[str, ...], str]:
        (status,) = await router.connect(server)
        tool_status = _tool(status, tool, options.config)
        read = read_arguments(text, registry.lookup(tool_status.exposed_name).definition)
        if read.value is None:
            why = read.problem.message if read.problem else "they are not a JSON object"
            raise CliError(f"the arguments cannot be used: {why}")
        approval_prompt = ApprovalPrompt(approve=options.yes and tool_status.state == "approved")
        confirm = ToolPrompt(
            approval_prompt, tool_status, _approve_command(options.config, server, tool_status.name), yes=options.yes
        )
        executor = ToolExecutor(registry, policy=rules, confirm=confirm)
        session = Session(tier=session_tier)
        with BUSY.waiting("the tool works"):
            outcome = await executor.run(ToolCall(tool_status.exposed_name, read.value, "call_1"), session)
        return outcome, read.repairs, call_hint(registry, outcome, session)

    outcome, repairs, hint = _with_servers(options.config, registry, work)
    status = exit_status(outcome)
    if options.json:
        from toolwire.mcp.results import structured_content

        report = outcome_json(outcome, status)
        report["call"] |= {"server": server, "repairs": list(repairs)}
        report["result"]["structured"] = structured_content(outcome.result)
        emit(report)
    else:
        _show_result(outcome.result, hint)
    if options.output is not None and outcome.result.success:
        save_media(outcome.result, options.output)
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
        int | None,
        typer.Option(min=0, max=65_535, metavar="PORT", help="Serve over HTTP on this port; 0 chooses a free port."),
    ] = None
    host: Annotated[str, typer.Option(help="The address on which --http listens.")] = "127.0.0.1"
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another NAME:PORT that clients may use for the server; may be repeated.")
    ] = None
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="An origin such as https://NAME whose pages may send requests; may be repeated."),
    ] = None
    no_token: Annotated[bool, typer.Option("--no-token", help="Serve every client that can reach the port.")] = False
    timeout: Annotated[float, typer.Option(min=0.1, help="Time limit of one call, in seconds.")] = 60.0
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve all calls that need an approval.")] = False
    envelope: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT", help="Truncate results to what this agent can read, and offer te_run and read_handle."
        ),
    ] = None


@app.command(epilog=SERVE_EXAMPLES)
@takes_options(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Serve tools over MCP, on standard input and output or over HTTP."""
    with needs_extra("MCP"):
        from toolwire.mcp.http_server import HttpOptions, Listening, serve_http
        from toolwire.mcp.server import McpService
    registry = load_registry(options.root, options.tools)
    for definition in registry.definitions():
        if registry.lookup(definition.name).behavior.ends_turn:  # it concerns only a model and its own loop
            registry.remove(definition.name)
    shape = None if options.envelope is None else _envelope_results(registry, options.envelope, options.root)
    if not len(registry):
        raise CliError("there are no tools to serve: name directories with --root, or tools with --tools")
    silence_sdk_loggers()
    service = McpService(
        registry,
        policy=load_policy(options.policy),
        tier=tier_of(options.tier),
        approve=options.yes,
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
            say("toolwire: there is no token: every client that can reach this port can use the tools", "yellow")
        else:
            say(f"toolwire: clients send the header Authorization: Bearer {listening.token}", "")

    token = None if options.no_token else os.environ.get(TOKEN, "")
    hosts, origins = tuple(options.allow_host or ()), tuple(options.allow_origin or ())
    asyncio.run(serve_http(service, HttpOptions(options.host, options.http, token, hosts, origins), ready=ready))


# -- shared by the commands -----------------------------------------------------------------------------------------


def _envelope_results(registry: ToolRegistry, agent: str, root: list[str] | None) -> Shaping:
    """Register the tools of the envelope, and return the function that shapes the results of all other tools."""
    from toolwire.envelope.envelope import Envelope
    from toolwire.envelope.te_tools import read_handle, te_run

    envelope = Envelope(agent=agent)
    for envelope_tool in (te_run(agent=agent, root=root[0] if root else None), read_handle(envelope)):
        registry.register(envelope_tool)

    def shape(call: ToolCall, result: ToolResult) -> ToolResult:
        return result if call.name == "te_run" else envelope.shape(call, result)  # the command has shaped it

    return shape


def _leave(number: int, _: object) -> None:
    """End the process and its children at once, because a thread that waits for a line cannot be stopped."""
    kill_all()
    remove_all()
    os._exit(128 + number)


def silence_sdk_loggers() -> None:
    """Silence the loggers of the MCP SDK; the router reports what matters of their messages."""
    for name in ("mcp", "client", "httpx2"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _with_servers(
    config: Path | None,
    registry: ToolRegistry,
    work: Callable[[McpRouter], Coroutine[Any, Any, Result]],
    *,
    yes: bool = False,
) -> Result:
    """Run `work` with a router for the servers that a file defines."""
    with needs_extra("MCP"):
        from toolwire.mcp.approvals import Approvals
        from toolwire.mcp.oauth import Logins, login
        from toolwire.mcp.router import McpRouter
        from toolwire.mcp.servers import load_servers
    silence_sdk_loggers()
    servers = load_servers(config if config is not None else _own_file())

    async def ask(question: ServerQuestion) -> bool:
        with BUSY.pause():
            say(question.text, "")
            return confirm_at_terminal("Approve it?", yes=yes)

    def sign_in(name: str, address: str) -> None:
        with BUSY.pause():
            say(f"{name} wants you to sign in. Open this address in a browser:\n{address}", "")

    async def decline_question(name: str, question: str) -> None:
        with BUSY.pause():
            say(f"toolwire: {name} asks in the middle of the call, which is declined here: {question}", "yellow")

    async def main() -> Result:
        approvals, logins = Approvals.of_user(), Logins.of_user()
        auth = {}
        for server in servers:
            if server.login and server.enabled:
                with suppress(ConfigurationError):  # the router reports it
                    auth[server.name] = login(server, partial(sign_in, server.name), logins)
        router = McpRouter(
            servers,
            registry,
            approvals=approvals,
            approve=ask,
            progress=BUSY.progress,
            auth=auth,
            asked=decline_question,
        )
        async with router:
            return await work(router)

    return asyncio.run(main())


def _own_file() -> Path:
    import platformdirs

    path = platformdirs.user_config_path("toolwire") / "config.toml"
    if not path.exists():
        raise CliError(f"name the file with the servers with --config; {path} does not exist")
    return path


def confirm_at_terminal(question: str, *, yes: bool) -> bool:
    """Ask for an approval at the terminal; without a terminal, return False."""
    if yes:
        return True
    if not is_interactive():
        say("toolwire: there is no terminal to ask at, so the answer is no", "yellow")
        return False
    console(stderr=True).print(styled(f"{question} [y/N] ", "bold"), end="")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


class ToolPrompt:
    """An approval prompt that stops the spinner; --yes does not approve a description that was never approved."""

    def __init__(self, prompt: ApprovalPrompt, tool: ToolStatus, approve: str, *, yes: bool) -> None:
        self._prompt, self._tool, self._approve, self._yes = prompt, tool, approve, yes

    async def __call__(self, approval: Approval) -> ApprovalAnswer:
        """Return the answer."""
        with BUSY.pause():
            answer = await self._prompt(approval)
        if answer.approved or self._tool.state == "approved":
            return answer
        hint = (
            f"--yes does not approve descriptions; {self._approve} does"
            if self._yes
            else f"{self._approve} shows its description"
        )
        return replace(answer, reason=hint)


def _approve_command(config: Path | None, *names: str) -> str:
    """Return the command that approves a server or one of its tools, with the file of this command."""
    more = ("--config", str(config)) if config is not None else ()
    return f"`{shlex.join(('toolwire', 'mcp', 'approve', *names, *more))}`"


def _tool(status: ServerStatus, name: str, config: Path | None) -> ToolStatus:
    """Return a callable tool by its name on the server or its name for models."""
    if status.state != "ready":
        if status.state == "not approved":
            hint = f"{_approve_command(config, status.name)} asks about it"
            raise CliError(f"{status.name}: {status.reason}; {hint}", status=DENIED)
        raise CliError(f"{status.name}: {status.reason}", status=1)
    match = next((candidate for candidate in status.tools if name in (candidate.name, candidate.exposed_name)), None)
    if match is None:
        raise CliError(
            f"{status.name} has no tool {name!r}; it has {', '.join(candidate.name for candidate in status.tools)}"
        )
    if not match.exposed_name:
        raise CliError(f"the tool {name} of {status.name} is {match.state}: {match.reason}".removesuffix(": "))
    return match


def _show(statuses: list[ServerStatus], config: Path | None) -> None:
    screen = console()
    for status in statuses:
        about = f" ({status.server_version}, MCP {status.protocol})" if status.protocol else ""
        screen.print(styled(status.name, "bold"), styled(f" {status.state}{about}", _COLOURS[status.state]), sep="")
        for line in status.launch.splitlines():
            screen.print(styled(f"  {line}", "dim"))
        if status.reason:
            approve = f"; {_approve_command(config, status.name)} asks about it"
            hint = approve if status.state == "not approved" else ""
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


def _show_result(result: ToolResult, hint: str) -> None:
    screen = console(stderr=not result.success)
    if result.error is not None:
        screen.print(styled(f"{result.error}{hint}", "red"))
    elif result.only_media:
        pass  # the lines below are all that there is to show
    elif not isinstance(result.result, str):
        screen.print(styled(jsontext.dumps(result.result, indent=2, ensure_ascii=False)))
    elif result.result:
        screen.print(styled(result.result))
    for line in media_lines(result):
        screen.print(styled(line))
