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
_LINES: Final = Option("--lines", "only these lines, counted from 1", "A-B")
_PREVIEW: Final = Option("--preview", "lines that are shown (50)", "N")

TE: Final = CommandSpec(
    "te [OPTION]... COMMAND [ARGUMENT]...",
    "What commands give, with a header that says how much it is, cut to what its reader can hold.",
    (
        Option("-i --raw", "nothing of this: the command's own output"),
        Option("--json", "one JSON object"),
        Option("--timeout", "seconds that the command may take", "SECONDS"),
        Option("--handle", "show what is kept under a handle", "ID"),
        Option("--chunk", "a later part of it, counted from 1", "N"),
        Option("--list-handles", "list what is kept"),
        Option("--stats", "what was called, and how long it took"),
        Option("--version", "show the version and end"),
    ),
    """commands:
  grep        search files: definitions first, tests last
  cat         show files
  find        list files
  repo read   show a file of a repository
  run         run a command and show its output so
  any other   is run as it is; its output has a header only where it is too long

examples:
  te grep database_connection src
  te run pytest -x
  te --handle res_5f0c1e7a9b3d --chunk 2

`te COMMAND --help` says more of the first five. Who reads, and how much, is said by the environment: TE_AGENT_ID,
TE_BUDGET. Exit status: the command's; 1 it could not be started, 2 wrong usage, 124 too slow, 130 interrupted.""",
    mixed=False,
)
GREP: Final = CommandSpec(
    "te grep [OPTION]... PATTERN [PATH]...",
    "Search files: definitions come first and tests last. Without a path, all of the working directory.",
    (
        Option("-e --regexp", "the pattern, where it begins with a dash", "PATTERN"),
        Option("-i --ignore-case", "small letters find capital ones"),
        Option("-S --smart-case", "so they do if the pattern has no capital letter"),
        Option("-w --word-regexp", "whole words only"),
        Option("-F --fixed-strings", "the pattern is text"),
        Option("-g --include --glob", "only such files; all others with ! before it; may be given again", "GLOB"),
        Option("-t --type", "only files of a type that ripgrep knows; may be given again", "TYPE"),
        Option("-l --files-with-matches", "files, and not the lines in them"),
        Option("-c --count", "files, and how many lines of each match"),
        Option("--hidden", "also files whose names begin with a dot"),
        Option("--no-ignore", "also files that .gitignore leaves out"),
        _ROOT,
        Option("--preview", "lines that are shown (10)", "N"),
        Option("--annotate", "say behind a line why it comes first"),
        Option("-r -R -n -H -E -s --as-grep"),
    ),
    """examples:
  te grep database_connection
  te grep -w -g '*.py' 'def \\w+_handler' src
  te grep -e --verbose
  te grep -c TODO src
  te -i grep -C3 database_connection    # ripgrep itself, with all that it knows

-r, -n, -H and -E are what happens anyway. Exit status: 0 found, 1 nothing found, 2 wrong usage or a pattern that
cannot be read, 124 too slow.""",
)
CAT: Final = CommandSpec(
    "te cat [OPTION]... FILE...",
    "Show files, one behind the other; - is standard input.",
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
    "List files and directories; those of tests come last. Without a path, all below the working directory.",
    (
        Option("--name", "only such names", "GLOB"),
        Option("--iname", "the same, whatever the case", "GLOB"),
        Option("--path", "only such paths", "GLOB"),
        Option("--type", "f for files only, d for directories only", "f|d"),
        Option("--maxdepth", "directories that are gone down into, counted from 0", "N"),
        Option("--no-ignore", "also what .gitignore leaves out"),
        *(_PREVIEW, _ROOT),
    ),
    "examples:\n  te find src -name '*.py'\n  te find -type d\n\nOptions may have one stroke, as find has them; "
    "`te -i find` is find itself.",
)
RUN: Final = CommandSpec(
    "te run COMMAND [ARGUMENT]...",
    "Run a command, and show what it gives in an envelope; its exit status is ours.",
    (),
    "example:\n  te run pytest -x\n\nIt is ended after 30 seconds, with all that it started: status 124. "
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
