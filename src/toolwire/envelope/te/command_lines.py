"""The command lines of `te`: options, exit statuses, and the directory that its commands stay in."""

from __future__ import annotations

import os
from typing import Final

from toolwire.envelope.te.options import CommandSpec, Option
from toolwire.runtime.allowed_roots import AllowedRoots

FAILED: Final = 1
NONE_FOUND: Final = 1
INTERRUPTED: Final = 130

_ROOT: Final = Option("--root", "the directory to stay in, instead of the working directory", "DIR")
_LINES: Final = Option("--lines", "which lines, counted from 1", "A-B")
_PREVIEW: Final = Option("--preview", "maximum number of lines (50)", "N")

TE: Final = CommandSpec(
    "te [OPTION]... COMMAND [ARGUMENT]...",
    "Run commands; their output gets a header with its size, and is truncated to what its reader can use.",
    (
        Option("-i --raw", "the command's own output, without a header or a limit"),
        Option("--json", "one JSON object"),
        Option("--timeout", "time limit of the command", "SECONDS"),
        Option("--handle", "show the result behind a handle", "ID"),
        Option("--chunk", "which part of it, counted from 1", "N"),
        Option("--list-handles", "list stored results"),
        Option("--stats", "statistics of all calls"),
        Option("--version", "show the version and exit"),
    ),
    """commands:
  grep        search files: definitions first, tests last
  cat         show files
  find        list files
  repo read   show a file of a repository
  run         run a command and show its output with a header
  any other   is run as it is; its output gets a header only if it is too long

examples:
  te grep database_connection src
  te run pytest -x
  te --handle res_5f0c1e7a9b3d --chunk 2

`te COMMAND --help` describes each of the first five. The environment names the reader and the budget: TE_AGENT_ID,
TE_BUDGET. Exit status: the command's; 1 not started, 2 wrong usage, 124 timed out, 130 interrupted.""",
    mixed=False,
)
GREP: Final = CommandSpec(
    "te grep [OPTION]... PATTERN [PATH]...",
    "Search files, by default all below the working directory. Definitions come first and tests last.",
    (
        Option("-e --regexp", "the pattern, if it begins with a dash", "PATTERN"),
        Option("-i --ignore-case", "match letters of either case"),
        Option("-S --smart-case", "the same, if the pattern has no capital letter"),
        Option("-w --word-regexp", "whole words only"),
        Option("-F --fixed-strings", "take the pattern as text, not as an expression"),
        Option("-g --include --glob", "only files that match, or with ! all others; may be repeated", "GLOB"),
        Option("-t --type", "only files of a type that ripgrep knows; may be repeated", "TYPE"),
        Option("-l --files-with-matches", "files instead of lines"),
        Option("-c --count", "files, and the number of matching lines in each"),
        Option("--hidden", "include files whose names begin with a dot"),
        Option("--no-ignore", "include files that .gitignore leaves out"),
        _ROOT,
        Option("--preview", "maximum number of lines (10)", "N"),
        Option("--annotate", "say why a line comes first"),
        Option("-r -R -n -H -E -s --as-grep"),
    ),
    """examples:
  te grep database_connection
  te grep -w -g '*.py' 'def \\w+_handler' src
  te grep -e --verbose
  te grep -c TODO src
  te -i grep -C3 database_connection    # ripgrep itself, with all its options

-r, -n, -H and -E are the default. Exit status: 0 found, 1 nothing found, 2 wrong usage or an invalid pattern, 124 timed
out.""",
)
CAT: Final = CommandSpec(
    "te cat [OPTION]... FILE...",
    "Show files, one after the other; - is standard input.",
    (_LINES, _PREVIEW, _ROOT),
    "examples:\n  te cat src/app.py\n  te cat --lines 120-180 src/app.py\n  make 2>&1 | te cat -",
)
READ: Final = CommandSpec(
    "te repo read [OPTION]... --path FILE",
    "Show a file of a repository.",
    (
        Option("--root", "the repository, instead of the working directory", "DIR"),
        Option("--path", "the file, relative to it", "FILE"),
        *(_LINES, _PREVIEW),
    ),
    "example:\n  te repo read --root . --path src/app.py",
)
FIND: Final = CommandSpec(
    "te find [PATH]... [OPTION]...",
    "List files and directories, by default all below the working directory. Tests come last.",
    (
        Option("--name", "only names that match", "GLOB"),
        Option("--iname", "the same, ignoring case", "GLOB"),
        Option("--path", "only paths that match", "GLOB"),
        Option("--type", "f for files only, d for directories only", "f|d"),
        Option("--maxdepth", "how many directories to descend, counted from 0", "N"),
        Option("--no-ignore", "include files that .gitignore leaves out"),
        *(_PREVIEW, _ROOT),
    ),
    "examples:\n  te find src -name '*.py'\n  te find -type d\n\nOptions may have one dash, as those of find do; "
    "`te -i find` is find itself.",
)
RUN: Final = CommandSpec(
    "te run COMMAND [ARGUMENT]...",
    "Run a command and show its output in an envelope. The exit status is the command's.",
    (),
    "example:\n  te run pytest -x\n\nAfter 30 seconds it is stopped, with everything that it started: exit status 124. "
    "TE_TIMEOUT or te --timeout allow more.",
    mixed=False,
)


def root_of(named: str) -> str:
    """Return the directory to stay in: the named one, otherwise TE_ROOT or the working directory.

    Raises:
        ToolError: the named directory is outside TE_ROOT.
    """
    outer = os.environ.get("TE_ROOT", "")
    if not named:
        return outer or "."
    if outer:
        AllowedRoots(outer).inside(os.path.realpath(named))
    return named
