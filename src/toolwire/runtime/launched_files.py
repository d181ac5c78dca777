"""Files of code that a command names: its program, scripts, and modules and folders of interpreters.

An approval is bound to their content. Other files that a command names are data, which may change while it runs.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from toolwire.runtime.file_digests import file_digest

_SCRIPTS = (
    *(".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".sh", ".bash"),
    *(".rb", ".pl", ".php", ".lua", ".jar", ".wasm", ".ps1", ".bat", ".mk"),
)
"""Suffixes of files that interpreters run."""
_PROGRAM_STARTS = (
    *(b"#!", b"\x7fELF", b"MZ"),
    *(b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
)
"""First bytes of scripts, and of programs for Linux, Windows and macOS. That a file may be executed says nothing: on
some file systems each file may."""
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|deno|bun|tsx|ruby|perl|php|lua|bash|dash|zsh|ksh|sh|pwsh|powershell)[\d.]*(?:\.exe)?",
    re.IGNORECASE,
)
_MODULE = re.compile(r"-[bBdEiIOPqRsSuvVx]*m(.*)", re.DOTALL)
"""Python's option for a module, perhaps behind others in one word and before its value."""
_ENTRIES = ("", ".py", "__init__.py", "__main__.py", "package.json", "index.js", "index.mjs", "index.cjs", "index.ts")
"""Files that run if an interpreter is given a file, a module or a folder: suffixes of its name, and files inside."""
_BUILD_FILES = {
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("just",), ("justfile", "Justfile", ".justfile")),
    **dict.fromkeys(("rake",), ("Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb")),
}
"""Files in the directory of a command that say what these programs run."""


def program_file(command: str, here: str, path: str) -> str:
    """Return the file that a command runs in a directory; "" if there is none.

    Args:
        command: the name or path of the program.
        here: the directory.
        path: the variable PATH.
    """
    if os.path.dirname(command):
        file: str | None = os.path.join(here, os.path.expanduser(command) if os.name == "nt" else command)
    else:
        file = shutil.which(
            command, path=os.pathsep.join(os.path.join(here, entry) for entry in path.split(os.pathsep))
        )
    return os.path.normpath(file) if file and os.path.exists(file) else ""


def depends_on_directory(text: str, here: str) -> bool:
    """Return whether an argument depends on the directory: a path, or a name that programs look up there."""
    if not text or text.startswith("-") or os.path.isabs(text) or "://" in text:
        return False
    if "/" in text or os.sep in text or text in (".", ".."):
        return True
    return any(os.path.lexists(os.path.join(here, *way)) for way in ((text,), (f"{text}.py",), ("node_modules", text)))


def option_value(argument: str) -> str:
    """Return the value of an option that is written with =, or any other argument as it is."""
    return argument.partition("=")[2] if argument.startswith("-") else argument


def code_digests(program: str, argv: Sequence[str], here: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of the program and of each file of code that arguments name, by path; see `file_digest`.

    Args:
        program: the file that is run; "" if there is none.
        argv: the command and its arguments.
        here: the directory in which it runs.
        env: variables that are added to its environment; those of PYTHONPATH are looked through.

    Raises:
        OSError: a file cannot be read.
    """
    folders = [here, *(os.path.join(here, entry) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry)]
    interpreted = [*_interpreted(argv, folders)]
    arguments = [os.path.join(here, option_value(argument)) for argument in argv[1:] if argument]
    digests: dict[str, str] = {}
    for path in (program, *interpreted, *arguments):
        if (path in (program, *interpreted) or _is_code(path)) and (digest := file_digest(path)) is not None:
            digests[path] = digest
    return digests


def _interpreted(argv: Sequence[str], folders: Sequence[str]) -> Iterator[str]:
    """Yield what programs among the arguments run: a script, a module behind -m, a folder, or a build file."""
    follows_interpreter = False
    for argument, following in zip(argv, (*argv[1:], ""), strict=True):
        yield from (os.path.join(folders[0], name) for name in _BUILD_FILES.get(PurePath(argument).name, ()))
        names = [argument] if follows_interpreter and not argument.startswith("-") else []
        option = _MODULE.fullmatch(argument)
        module = (option[1] or following) if option is not None else ""
        names += [os.path.join(*module.split("."))] if module.strip(".") else []
        files = [
            file
            for name in names
            for folder in folders
            for entry in _ENTRIES
            if os.path.isfile(file := _entry(os.path.join(folder, name), entry))
        ]
        yield from files
        is_interpreter = _INTERPRETER.fullmatch(PurePath(argument).name) is not None
        follows_interpreter = is_interpreter or (follows_interpreter and not files)


def _entry(path: str, entry: str) -> str:
    return path + entry if entry.startswith(".") or not entry else os.path.join(path, entry)


def _is_code(path: str) -> bool:
    """Return whether a file is code: by its suffix, or by its first bytes."""
    if path.lower().endswith(_SCRIPTS):
        return True
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(4).startswith(_PROGRAM_STARTS)
    except PermissionError:
        return os.access(path, os.X_OK)  # a program may be executable without being readable
