"""The command line: `toolwire parse`, `render`, `tools`, `call`, `ask` and so on, one module per command.

A command's module is imported when the command is given, and the list of commands is printed without any of them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

INTERRUPTED: Final = 130
_WRITE_ERRORS: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Errors of standard output; the messages of other errors name their own subject."""

SUMMARY: Final = "Tool calling with any language model."
EXIT_STATUS: Final = "Exit status: 0 done, 1 failed, 2 wrong usage or bad input, 3 a call was denied, 130 interrupted."
COMMANDS: Final[Mapping[str, str]] = {
    "parse": "Read the tool calls in a model's text.",
    "render": "Write definitions, calls or results as a model expects them, or the grammar of its calls.",
    "check-grammar": "Say whether a grammar would have allowed a text, and which character it would not.",
    "formats": "List the wire formats, or show one: a sample and its description.",
    "convert": "Translate between provider APIs.",
    "profile": "Show the format in which a model writes calls, and the evidence for it.",
    "tools": "List tools, show the definition of one, check a file of definitions.",
    "call": "Call a tool by hand, through the same checks as a model's call.",
    "ask": "Ask a model that can use the files below --root; a change of a file needs your approval.",
    "chat": "Chat with a model that uses tools below --root; approvals are asked for here.",
    "sessions": "List and delete the stored conversations of ask --session and chat --session.",
    "serve": "Serve any model to clients of any API: OpenAI, Responses, Anthropic, Gemini, Ollama.",
    "keys": "Make, list and revoke the keys of the gateway's clients.",
    "inspect": "Show recorded requests, runs or test rows in the inspector, on a page on this machine.",
    "check": "Ask a model's endpoint small questions, and say which rules of its API it breaks.",
    "eval": "Ask models the questions of a suite, and report how many of their calls are right.",
    "reparse": "Read logged answers again, with another format or version, and say what changed.",
    "init": "Write a commented TOML file: profiles of the available models, agents, and a policy.",
    "mcp": "Use the tools of MCP servers, and serve tools to MCP clients.",
    "te": "Run a command and show its output in an envelope; `te` is the same and starts faster.",
    "trace": "Show a run: the text of the model, the calls parsed from it, their approvals and their results.",
    "stats": "Show statistics for each model and format.",
    "coach": "Recommend a format for each model, from recorded runs and from evaluations.",
    "runs": "List, show, resume and delete recorded runs of agents.",
}
"""The commands and their summaries for the help; the module of a command has a function of its name or an `app`."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; errors and warnings are lines on standard error."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or arguments in (["--help"], ["-h"]):
        sys.stdout.write(overview())
        return 0 if arguments else 2
    from toolwire.cli.program import run_program  # here, because it takes ten times as long as the overview

    return run_program(arguments)


def overview() -> str:
    """Return the help of the whole program: its options and its commands."""
    import textwrap

    try:
        width = int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        width = os.get_terminal_size().columns if sys.stdout.isatty() else 80

    options = {"--version": "Show the version and exit.", "-h, --help": "Show this message and exit."}
    margin = max(map(len, (*options, *COMMANDS))) + 2

    def entries(table: Mapping[str, str]) -> list[str]:
        wrapper = textwrap.TextWrapper(width=max(width, margin + 20), subsequent_indent=" " * (margin + 2))
        return [wrapper.fill(f"  {name:{margin}}{text}") for name, text in table.items()]

    lines = [
        "Usage: toolwire [OPTIONS] COMMAND [ARGS]...\n",
        f"{SUMMARY}\n",
        "Options:",
        *entries(options),
        "\nCommands (`toolwire COMMAND --help` says more):",
        *entries(COMMANDS),
        "",
        textwrap.fill(EXIT_STATUS, width),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the program; the entry point `toolwire`."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # closed by the caller: nothing can be reported
            sys.exit(1)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    try:
        status = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            subject = (
                "cannot write: " if error.errno in _WRITE_ERRORS else f"{error.filename}: " if error.filename else ""
            )
            fail(f"{subject}{error.strerror or error}", 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    if status == INTERRUPTED:
        from toolwire.cli.console import leave

        leave(status)
    sys.exit(status)


def fail(message: str, status: int) -> int:
    """Print a message as one line on standard error, and return the status."""
    from toolwire.cli.console import safe

    print(f"toolwire: {' '.join(safe(message).split())}", file=sys.stderr)
    return status
