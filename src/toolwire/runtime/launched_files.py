"""Files of code that a command names: its program, scripts, and modules and folders of interpreters.

An approval is bound to their content. Other files that a command names are data, which may change while it runs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
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
_SEPARATING = re.compile(r"[\s;&|`<>()]")
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|deno|bun|tsx|ruby|perl|php|lua|bash|dash|zsh|ksh|sh|pwsh|powershell)[\d.]*(?:\.exe)?"
    r"|env|nice|ionice|chrt|taskset|nohup|setsid|stdbuf|time|timeout|strace|ltrace|sudo|doas|exec|command",
    re.IGNORECASE,
)
"""Programs that run their first operand: as a script, or as a program."""
_MODULE = re.compile(r"-[bBdEiIOPqRsSuvVx]*m(.*)", re.DOTALL)
"""Python's option for a module, perhaps behind others in one word and before its value."""
_ENTRIES = ("", ".py", "__init__.py", "__main__.py", "package.json", "index.js", "index.mjs", "index.cjs", "index.ts")
"""Files that run if an interpreter is given a file, a module or a folder: suffixes of its name, and files inside."""
_HOOKS = (".git/hooks/*", ".git/config")
_BUILD_FILES = {
    **dict.fromkeys(("make", "gmake", "bmake"), ("GNUmakefile", "makefile", "Makefile", "BSDmakefile")),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("just",), ("justfile", "Justfile", ".justfile")),
    **dict.fromkeys(("rake",), ("Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb")),
    **dict.fromkeys(("task", "go-task"), ("Taskfile.yml", "Taskfile.yaml")),
    **dict.fromkeys(("invoke", "inv", "fab"), ("tasks.py", "fabfile.py")),
    **dict.fromkeys(("tox", "nox"), ("tox.ini", "pyproject.toml", "setup.cfg", "noxfile.py")),
    **dict.fromkeys(("pytest",), ("conftest.py", "pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg")),
    **dict.fromkeys(("pip", "pip3", "uv", "poetry", "pdm", "hatch"), ("pyproject.toml", "setup.py", "setup.cfg")),
    **dict.fromkeys(("cargo",), ("build.rs", "Cargo.toml", ".cargo/config.toml")),
    **dict.fromkeys(("gradle", "gradlew"), ("build.gradle", "build.gradle.kts", "settings.gradle", "init.gradle")),
    **dict.fromkeys(("mvn", "mvnw"), ("pom.xml", ".mvn/*")),
    **dict.fromkeys(("ant",), ("build.xml",)),
    **dict.fromkeys(("cmake", "ctest"), ("CMakeLists.txt", "CTestTestfile.cmake")),
    **dict.fromkeys(("ninja", "samu"), ("build.ninja",)),
    **dict.fromkeys(("meson",), ("meson.build",)),
    **dict.fromkeys(("composer",), ("composer.json",)),
    **dict.fromkeys(("mix",), ("mix.exs",)),
    **dict.fromkeys(("docker", "docker-compose", "podman"), ("Dockerfile", "Containerfile", "*compose.y*ml")),
    **dict.fromkeys(("terraform", "tofu"), ("*.tf", "*.tf.json", ".terraformrc")),
    **dict.fromkeys(("vagrant",), ("Vagrantfile",)),
    **dict.fromkeys(("pre-commit",), (".pre-commit-config.yaml", *_HOOKS)),
    **dict.fromkeys(("ansible", "ansible-playbook"), ("ansible.cfg",)),
    **dict.fromkeys(("direnv",), (".envrc",)),
    **dict.fromkeys(("git",), _HOOKS),
}
"""Files in the directory of a command that say what these programs run, as globs."""
_FILE_READERS = frozenset(
    (
        *("make", "gmake", "bmake", "ninja", "just", "task", "go-task", "ant", "awk", "gawk", "mawk", "sed", "vim"),
        *("ansible", "ansible-playbook", "docker", "docker-compose", "podman", "kubectl", "psql", "mysql", "expect"),
        *("tclsh", "gnuplot", "octave", "m4", "bc", "ed", "crontab", "at", "batch", "xargs", "parallel"),
    )
)
"""Programs that run what is in files that they are given, whatever the suffixes of these."""
_MAX_PLACES = 64
"""Maximum number of directories in which names are looked up: those that a command may change to one after another."""
_PUNCTUATION = frozenset("();<>|&")
"""Characters of the words between two commands of a shell."""


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
    words = [*argv]
    unread = [*argv[1:]]
    while unread:
        text = unread.pop()
        if _SEPARATING.search(text):  # a shell may interpret it, as behind `sh -c`, perhaps in another such text
            new_words = shell_words(text)
            words += new_words
            unread += [word for word in new_words if len(word) < len(text)]
    places = _places(words, here)
    folders = [*places, *(os.path.join(here, entry) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry)]
    interpreted = [*_interpreted(words, places, folders)]
    files = [file for word in dict.fromkeys(words[1:]) for file in _named_files(word)]
    arguments = [os.path.join(place, file) for file in files for place in places]
    digests: dict[str, str] = {}
    for path in (program, *interpreted, *arguments):
        if (path in (program, *interpreted) or _is_code(path)) and (digest := file_digest(path)) is not None:
            digests[os.path.normpath(path) if path else path] = digest
    return digests


def _named_files(argument: str) -> Iterator[str]:
    """Yield the files that an argument may name: itself, or the value of an option, as in `-f=x`, `--file=x`, `-fx`."""
    if value := option_value(argument):
        yield value
    if argument[:1] == "-" != argument[1:2] and argument[2:]:
        yield argument[2:]


def shell_words(text: str) -> list[str]:
    """Return the words of a shell command, as far as they are known before it runs; `sh` for what reads a script in."""
    lexer = shlex.shlex(text.replace("`", ";"), posix=True, punctuation_chars=True)  # backticks contain a command
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # a quote is not closed
        words = text.split()
    begins = [True, *(_PUNCTUATION.issuperset(word) for word in words)]
    return ["sh" if begin and word in (".", "source") else word for begin, word in zip(begins, words, strict=False)]


def _places(words: Sequence[str], here: str) -> list[str]:
    """Return the directories that a command may run programs in: its own, and those that its words name.

    `cd sub && make`, `make -C sub` and `npm --prefix=sub test` read files of `sub`.
    """
    places = [here]
    for word in dict.fromkeys(words):
        name = word[2:] if word.startswith("-C") and len(word) > 2 else option_value(word)
        if not name or name.startswith("-") or "\0" in name:
            continue
        for place in places[:_MAX_PLACES]:
            folder = os.path.normpath(os.path.join(place, name))
            if folder not in places and os.path.isdir(folder):
                places.append(folder)
    return places


def _interpreted(argv: Sequence[str], places: Sequence[str], folders: Sequence[str]) -> Iterator[str]:
    """Yield what programs among the arguments run: a script, a module behind -m, a folder, or a build file."""
    follows_interpreter = reads_files = False
    for argument, following in zip(argv, (*argv[1:], ""), strict=True):
        name_of_program = PurePath(argument).name
        option = _MODULE.fullmatch(argument)
        module = (option[1] or following) if option is not None else ""
        for pattern in _BUILD_FILES.get(module or name_of_program, ()):
            for place in places:
                yield from _matching(place, pattern)
        if reads_files:
            yield from (os.path.join(place, file) for file in _named_files(argument) for place in places)
        reads_files = reads_files or name_of_program in _FILE_READERS
        names = [argument] if follows_interpreter and not argument.startswith("-") else []
        names += [os.path.join(*module.split("."))] if module.strip(".") else []
        files = [
            file
            for name in names
            for folder in folders
            for entry in _ENTRIES
            if os.path.isfile(file := _entry(os.path.join(folder, name), entry))
        ]
        yield from files
        is_interpreter = _INTERPRETER.fullmatch(name_of_program) is not None
        follows_interpreter = is_interpreter or (follows_interpreter and not files)


def _matching(place: str, pattern: str) -> Iterator[str]:
    """Yield the files of a directory that a glob fits; an example of a hook does not run."""
    if "*" not in pattern:
        yield os.path.join(place, pattern)
        return
    files = glob(pattern, root_dir=place, include_hidden=True)
    yield from (os.path.join(place, file) for file in sorted(files) if not file.endswith(".sample"))


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
