"""`toolwire call`: run one tool, through the same checks, policy and confirmation as a model's call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from toolwire.cli.approval_prompt import ApprovalPrompt
from toolwire.cli.console import CliError, claim_output, console, emit, plain, safe, say
from toolwire.cli.input_files import loads, read_json
from toolwire.cli.media_output import Output, media_lines, save_media
from toolwire.cli.option_groups import takes_options
from toolwire.cli.tool_options import Approve, PolicyFile, Roots, ToolFiles, load_policy, load_registry
from toolwire.cli.tools_command import ADD_TOOLS, tier_of
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.outcomes import Outcome
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import ToolCall
from toolwire.policy.session import Session

EXAMPLES = """Examples:

toolwire call read_file '{"path": "README.md", "end_line": 5}' --root . --tier WALK

toolwire call write_file '{"path": "notes.txt", "content": "x"}' --root . --tier RUN

toolwire call add '{"a": 1, "b": 2}' --tools my_tools.py --json

jq -n '{a: 1, b: 2}' | toolwire call add - --tools my_tools.py

Anything that the tool itself prints goes to standard error.

Exit status: 0 done, 1 the tool failed, 2 unknown tool or invalid arguments, 3 denied."""

DENIED = 3
STATUS = {"denied": DENIED, "confirmation": DENIED, "unknown_tool": 2, "invalid_arguments": 2, "not_runnable": 2}


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The options of `call`; see `takes_options`."""

    root: Roots = None
    tools: ToolFiles = None
    tier: Annotated[str, typer.Option(help="The highest permitted tier: CRAWL, WALK or RUN.")] = "CRAWL"
    policy: PolicyFile = None
    yes: Approve = False
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Time limit of the tool, in seconds.")] = None
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the call as it ran, its result, the exit status.")
    ] = False
    output: Output = None


@takes_options(CallOptions)
def call(
    name: Annotated[str, typer.Argument(help="The name of the tool.")],
    options: CallOptions,
    arguments: Annotated[
        str, typer.Argument(help="The arguments, as a JSON object; - reads them from standard input.")
    ] = "{}",
) -> None:
    """Call a tool by hand, through the same checks as a model's call."""
    arguments_object = read_json("-") if arguments == "-" else loads(arguments, "the second argument")
    if not isinstance(arguments_object, dict):
        raise CliError('the arguments must be a JSON object, such as \'{"path": "."}\'')
    session = Session(tier=tier_of(options.tier))
    policy = load_policy(options.policy)
    with claim_output():
        registry = load_registry(options.root, options.tools)
        executor = ToolExecutor(
            registry,
            policy=policy,
            confirm=ApprovalPrompt(approve=options.yes),
            timeout=options.timeout,
        )
        outcome = asyncio.run(executor.run(ToolCall(name, arguments_object, "call_1"), session))
        status = exit_status(outcome)
        if options.json:
            emit(outcome_json(outcome, status))
        elif outcome.result.success:
            lines = [] if outcome.result.only_media else [safe(outcome.result.text)]
            for line in [*lines, *media_lines(outcome.result)]:
                console().print(line)
    if not options.json and not outcome.result.success:
        say(f"toolwire: {outcome.result.error}{call_hint(registry, outcome, session)}", "red")
    if options.output is not None and outcome.result.success:
        save_media(outcome.result, options.output)
    if status:
        raise typer.Exit(status)


def call_hint(registry: ToolRegistry, outcome: Outcome, session: Session) -> str:
    """Return a hint to raise the tier, if the tier alone forbids the call, or to name tools, if there are none."""
    if outcome.issue is not None and outcome.issue.kind == "unknown_tool" and len(registry) == 0:
        return f" {ADD_TOOLS}."
    if outcome.issue is None or outcome.issue.kind != "denied":
        return ""
    needed = registry.lookup(outcome.call.name).definition.tier
    return f" Add --tier {needed.name}." if needed > session.tier else ""


def exit_status(outcome: Outcome) -> int:
    """Return the exit status of the process for the outcome of a call."""
    return STATUS[outcome.issue.kind] if outcome.issue else 0 if outcome.result.success else 1


def outcome_json(outcome: Outcome, status: int) -> dict[str, Any]:
    """Return the outcome of a call as a JSON object."""
    return {
        "call": plain(outcome.call),
        "result": {**plain(outcome.result), "success": outcome.result.success},
        "issue": plain(outcome.issue),
        "status": status,
    }
