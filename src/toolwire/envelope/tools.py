"""Two tools for models: `te_run` runs a command through `te`, `read_handle` turns the pages of a result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from toolwire.envelope.processes import TIMED_OUT, run
from toolwire.envelope.settings import AGENT_NAMES, SESSION_NAMES
from toolwire.envelope.shaping import Envelope, EnvelopeText
from toolwire.tools import Tier, Tool, tool

TE: Final = (sys.executable, "-m", "toolwire.envelope")
"""The command `te` of this very installation."""
MAX_OUT: Final = 4 << 20
"""Bytes that are read of what `te` prints."""
MAX_ERR: Final = 4_000
"""Characters of its standard error that a result tells."""
_SLACK: Final = 5.0
"""Seconds that `te` has above those that it gives the command."""


def te_run(
    *, agent: str = "", session: str = "", root: str | None = None, seconds: float = 30.0, command: Sequence[str] = TE
) -> Tool[..., Any]:
    """The tool `te_run`: a command as an argument vector, its output in an envelope, as JSON.

    Its result is `{"data": ..., "meta": {"returncode": ...}}`: `data` is the JSON that `te --json` printed, or
    `{"raw": text}` if it printed none. What went wrong before there was an exit status is told by `meta.error`, and
    the status -1. Tools of this kind run whatever they are told: the tier is RUN, and each call is confirmed.

    Args:
        agent: who reads, which says how much is shown; "" for what the environment says.
        session: for telemetry; "" for what the environment says.
        root: the working directory, and the one that `te grep` and its like stay in; None for ours.
        seconds: that a command may run.
        command: the command `te`.
    """

    def run_te(args: list[str]) -> dict[str, Any]:
        """Run a command.

        Args:
            args: the command and its arguments, each on its own: ["grep", "pattern", "src"].
        """
        return _ran(args, [*command, "--json"], _environment(agent, session, root, seconds), root, seconds + _SLACK)

    return tool(
        name="te_run",
        description=(
            "Run a command. Long output is cut; its handle leads to the rest. grep, cat and find read files under the "
            "working directory; any other command is run as it is, without a shell."
        ),
        tier=Tier.RUN,
        requires_confirmation=True,
    )(run_te)


def _environment(agent: str, session: str, root: str | None, seconds: float) -> dict[str, str]:
    """Ours, and who reads in which session, under all names that such commands know."""
    made = {**os.environ, "TE_TIMEOUT": f"{seconds:g}"}
    for value, names in ((agent, AGENT_NAMES), (session, SESSION_NAMES)):
        if said := value or next((made[name] for name in names if made.get(name)), ""):
            made |= dict.fromkeys(names, said)
    return made if root is None else {**made, "TE_ROOT": os.path.abspath(root)}


def _ran(
    args: list[str], command: list[str], environ: dict[str, str], root: str | None, seconds: float
) -> dict[str, Any]:
    try:
        ran = run([*command, *args], seconds=seconds, keep=MAX_OUT, environ=environ, cwd=root, stdin=subprocess.DEVNULL)
    except (OSError, ValueError) as error:  # no such program; a null character in an argument
        return {"data": None, "meta": {"returncode": -1, "error": True, "message": str(error)}}
    out = ran.out.decode("utf-8", "replace")
    err = ran.err.decode("utf-8", "replace").strip()
    meta: dict[str, Any] = {"returncode": ran.status}
    if ran.timed_out:
        meta = {"returncode": -1, "error": True, "message": f"te took longer than {seconds:g} s", "status": TIMED_OUT}
    if err:
        meta["stderr"] = err[-MAX_ERR:]
    try:
        data = json.loads(out)
    except (ValueError, RecursionError):
        data = {"raw": out}
    return {"data": data, "meta": meta}


def read_handle(envelope: Envelope) -> Tool[..., Any]:
    """The tool `read_handle`: the pages of results that were shown in part, as long as the envelope's reader takes."""

    def read(handle: str, chunk: int = 1) -> str:
        """Read the whole of a result that was shown in part, chunk by chunk.

        Args:
            handle: the handle in the result's header: res_ and 12 hex digits.
            chunk: which chunk, counted from 1.
        """
        return EnvelopeText(envelope.chunk(handle, chunk).text)

    return tool(name="read_handle", tier=Tier.CRAWL)(read)
