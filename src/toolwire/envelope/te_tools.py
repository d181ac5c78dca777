"""Two tools for models: `te_run` runs a command through `te`, `read_handle` reads a stored result part by part."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolwire.builtin import previews
from toolwire.builtin.shown_calls import ShownCalls, changeable_code, code_note
from toolwire.envelope.envelope import Envelope, EnvelopeText
from toolwire.envelope.settings import AGENT_NAMES, SESSION_NAMES
from toolwire.errors import ToolError
from toolwire.runtime.process_groups import SHARED_GROUP
from toolwire.runtime.processes import environment, run
from toolwire.tools import Tier, Tool, tool

TE: Final = (sys.executable, "-P", "-m", "toolwire.envelope")
"""The command `te` of this installation. Without `-P`, a `shlex.py` in the working directory would run in its place."""
MAX_OUT: Final = 4 << 20
"""Maximum size of the output of `te` that is read, in bytes."""
MAX_ERR: Final = 4_000
"""Maximum length of standard error in a result, in characters."""
_OWN: Final = (
    *(*AGENT_NAMES, *SESSION_NAMES, "TE_BUDGET", "TE_TIMEOUT", "TE_ROOT", "TE_TELEMETRY", "TE_RG"),
    *("TOOLWIRE_TE_CONFIG", "TOOLWIRE_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"),
)
"""The variables that `te` reads. They are listed because others with such names may be keys."""
_PASSED_ON: Final = ("PYTHONPATH", "VIRTUAL_ENV", "TERM")
_MAY_BE_GIVEN: Final = {
    **dict.fromkeys(("--handle", "--chunk"), True),
    **dict.fromkeys(("--json", "--list-handles", "--stats", "--version", "--help", "-h"), False),
}
"""Options of `te` that a model may use, and whether a value follows."""
_SLACK: Final = 5.0
"""Seconds that `te` has in addition to the command's time limit."""


def te_run(
    *,
    agent: str = "",
    session: str = "",
    root: str | None = None,
    seconds: float = 30.0,
    passed_on: Sequence[str] = (),
    command: Sequence[str] = TE,
) -> Tool[..., Any]:
    """Return the tool `te_run`, which runs an argument vector and returns its output in an envelope, as JSON.

    Its result is `{"data": ..., "meta": {"returncode": ...}}`: `data` is the JSON that `te --json` printed, or
    `{"raw": text}`. If there is no exit status, `meta.error` is true and the status -1. The tool runs any command, so
    its tier is RUN, each call needs approval, and results are untrusted content. Commands see none of this program's
    keys. A model may use options of `te` that read (`--handle`, `--help`), not `--timeout` or `--raw`.

    Args:
        agent: the reader, which determines the budget; "" for the one that the environment names.
        session: the session, for the usage log; "" for the one that the environment names.
        root: the working directory, which `te grep` and the like stay in; None for ours.
        seconds: time limit of a command.
        passed_on: more variables of ours that commands get.
        command: the command `te`.
    """
    shown = ShownCalls()

    def code_of(args: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
        directory = os.path.realpath(root or ".")
        return changeable_code(["te", *args], directory, environ, [directory])

    def preview(arguments: dict[str, Any]) -> str:
        args = arguments["args"]
        code = code_of(args, _environment(agent, session, root, seconds, passed_on))
        shown.put(args, json.dumps(code))
        return code_note(code) + previews.command(["te", *args])

    async def run_te(args: list[str]) -> dict[str, Any]:
        """Run a command.

        Args:
            args: the command and its arguments, each on its own: ["grep", "pattern", "src"].
        """
        _check(args)
        environ = _environment(agent, session, root, seconds, passed_on)
        previewed = shown.take(args)
        if previewed is not None and previewed != json.dumps(code_of(args, environ)):
            raise ToolError("a file of code that the command names has changed since this was approved")
        return await _ran([*command, "--json", *args], environ, root or ".", seconds + _SLACK)

    return tool(
        name="te_run",
        description=(
            "Run a command. Long output is cut; its handle leads to the rest. grep, cat and find read files under the "
            "working directory; any other command is run as it is, without a shell."
        ),
        tier=Tier.RUN,
        requires_confirmation=True,
        untrusted=True,
        preview=preview,
    )(run_te)


def _check(args: Sequence[str]) -> None:
    """Raise an error for options of `te` that would lift a limit."""
    words = iter(args)
    for word in words:
        if not word.startswith("-") or word == "--":
            return
        name, equals, _ = word.partition("=")
        if name not in _MAY_BE_GIVEN:
            raise ToolError(f"{word[:80]!r} is not allowed; the first argument is the command")
        if _MAY_BE_GIVEN[name] and not equals:
            next(words, None)


def _environment(
    agent: str, session: str, root: str | None, seconds: float, passed_on: Sequence[str]
) -> dict[str, str]:
    """Return the environment of `te`, with the agent and the session under every name that such commands read."""
    variables = environment(*_OWN, *_PASSED_ON, *passed_on)
    for value, names in ((agent, AGENT_NAMES), (session, SESSION_NAMES)):
        if reader := value or next((variables[name] for name in names if variables.get(name)), ""):
            variables |= dict.fromkeys(names, reader)
    if root is not None:
        variables["TE_ROOT"] = os.path.abspath(root)
    return {**variables, "TE_TIMEOUT": f"{seconds:g}", SHARED_GROUP: "1"}


async def _ran(argv: Sequence[str], environ: Mapping[str, str], directory: str, seconds: float) -> dict[str, Any]:
    try:
        ended = await run(
            argv,
            directory=directory,
            env=environ,
            seconds=seconds,
            max_output=MAX_OUT,
            separate_stderr=True,
            ask_first=True,
        )
    except ToolError as error:
        return {"data": None, "meta": {"returncode": -1, "error": True, "message": str(error)}}
    out, err = (b"".join(stream.parts()).decode("utf-8", "replace") for stream in (ended.out, ended.err))
    meta: dict[str, Any] = {"returncode": ended.status}
    if ended.timed_out:
        meta = {"returncode": -1, "error": True, "message": f"te took longer than {seconds:g} seconds"}
    if err.strip():
        meta["stderr"] = err.strip()[-MAX_ERR:]
    try:
        data = json.loads(out)
    except (ValueError, RecursionError):
        data = {"raw": out}
    return {"data": data, "meta": meta}


def read_handle(envelope: Envelope) -> Tool[..., Any]:
    """Return the tool `read_handle`, which reads results that were stored for the envelope's agent and session."""

    def read(handle: str, chunk: int = 1) -> str:
        """Read the whole of a result that was shown in part, chunk by chunk.

        Args:
            handle: the handle in the result's header: res_ and 12 hex digits.
            chunk: which chunk, counted from 1.
        """
        return EnvelopeText(envelope.chunk(handle, chunk).text)

    return tool(name="read_handle", tier=Tier.CRAWL, untrusted=True)(read)
