"""Match command lines: those that a rule certainly describes, and those that may turn out to be one of them.

To allow, a rule fits one plain command: words that no shell would change, and after the words it names only operands.
A word that begins with `-`, `+` or `@`, or sets a variable, can make harmless programs run others or write files
(`git -c core.pager=...`, `find -exec`, `tar --to-command`, `gcc @file`, `make SHELL=...`), so it has to be named too.
Programs that run what they are given (`env`, `sudo`, `xargs`, `sh`, `awk`) take no operands that are not named.

To deny or to ask, a rule fits every expansion of a text by a shell: any command in it, after another one (`sudo`,
`env`), in quotes, with other options in between. It also fits a command that is unknown before it runs, because its
name is a variable or a shell reads the output of another command (`curl x | sudo bash -s`).

Some commands run others that no word names: a script, a build, an alias of `git`, the value of an option or a variable.
Whether a rule that denies describes what they run cannot be known, so they are unclear, and a person is asked.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from toolwire._surface import check_items
from toolwire.policy.known_programs import (
    CUTTING,
    EXECUTING,
    INPUT_SHELLS,
    LAUNCHERS,
    LONG,
    PREFIXES,
    READERS,
    RENAMING,
    RUNS,
    RUNS_NOTHING,
    SHELLS,
    has_unseen_command,
    is_plain,
    launched,
)
from toolwire.policy.shell_text import simple_commands
from toolwire.text.word_set import word_set

MAX_LENGTH = 1 << 16
"""Maximum length of a command that is analyzed, in characters; a longer one may be anything."""
MAX_SKIPPED = 20
"""Maximum number of options between the words of a command; after more of them anything may follow."""
MAX_DEPTH = 5
"""Maximum depth of commands quoted in commands; a deeper one may be anything."""

_SHELL = re.compile(r"[;&|<>`$(){}\[\]*?!#~\\'\"]|[^\S \t]|[\x00-\x08\x0e-\x1f\x7f]")
"""Characters that a shell interprets; all white space except spaces and tabs is included."""
_BREAKS = re.compile(r"&&|\|\||[;&|\n\r]")
_INNER_BREAKS = re.compile(r"&&|\|\||[;&|\n\r`(){}<>]|\$\(")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_EXPANDED = frozenset("$`{*?[~")
_REDIRECTION = re.compile(r"[0-9]*[<>]")
_SUFFIX = re.compile(r"\.(?:exe|com|bat|cmd|ps1)$")
"""Suffixes of programs on Windows."""
_NAME_BEHIND_BACKSLASH = re.compile(r"\\(?=\w)")
_VERSION = re.compile(r"[0-9.]+$")
_SHORT = re.compile(r"-[A-Za-z0-9]+")
_VALUED = re.compile(r"[-+][A-Za-z]*[oO]|--rcfile|--init-file")
"""Options of shells whose value is the next word."""
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_SEPARATING = re.compile(r"[\s;&|`]|\$\(")


_RESERVED = word_set("if then else elif do while until for case coproc ! { (")
MIN_CUT = 3
"""Minimum length of such an abbreviation, in letters; shorter words are subcommands of their own."""


@dataclass(frozen=True, slots=True)
class Command:
    """Commands that begin with these words, each a glob; words are compared after they were parsed.

    `Command(("npm", "install"))` fits `npm install left-pad`, and never `npm install; rm -rf /`.

    Attributes:
        words: the first words. A program is named as it is written: `npm` is not `./npm`.
        exact: nothing may follow them. For rules that deny or ask, these do not count as following: redirections,
            comments, words that may expand to nothing, and options if `words` contains one.
        options: for rules that allow: globs over further words that may be options: those that begin with `-`, `+` or
            `@`, or set a variable.
    """

    words: tuple[str, ...]
    exact: bool = False
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that the words are several: the letters of a text would be words, and a rule would never match."""
        check_items("words", self.words, str, 'a tuple of words, such as ("git", "push")')
        check_items("options", self.options, str, "a tuple of globs")

    def surely(self, value: Any) -> bool:
        """Return whether it is one plain command, without shell syntax or words that make its program run another."""
        # A list is not parsed by a shell, so only text is searched for shell syntax.
        if isinstance(value, str):
            if _SHELL.search(value) or len(value) > MAX_LENGTH:
                return False
            words = value.split()
        elif isinstance(value, list) and all(isinstance(word, str) and "\0" not in word for word in value):
            words = value
        else:
            return False
        further = words[len(self.words) :]
        if not self.words or len(words) < len(self.words) or (further and self.exact):
            return False
        if not _is_program(words[0], self.words[0]) or not all(map(_is_named, words[1:], self.words[1:])):
            return False
        # An option can turn a harmless command into another one, as `tar --to-command` does, so rules name them.
        return not _runs(words, self.words) and all(map(self._is_harmless, further))

    def _is_harmless(self, word: str) -> bool:
        if word[:1] in ("-", "+", "@") or _ASSIGNMENT.match(word):
            return any(fnmatchcase(word, glob) for glob in self.options)
        return True

    def maybe(self, value: Any) -> bool:
        """Return whether any command in it may match, or it cannot be parsed."""
        return self._maybe(value, MAX_DEPTH)

    def is_unclear(self, value: Any) -> bool:
        """Return whether it may run this command though no word says so: from a script, a hook or a variable."""
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return self._is_hidden_in(value)
        if not isinstance(value, str):
            return False  # it may match, so the rule fits it
        commands = simple_commands(value)
        return commands is None or any(map(self._is_hidden_in, commands))

    def _is_hidden_in(self, words: Sequence[str]) -> bool:
        at = 0
        while at < len(words) and (words[at] in _RESERVED or not words[at]):
            at += 1
        if at >= len(words):
            return False
        # A variable is not a plain program: it may name a pager, an editor, or where programs are looked up.
        # The word behind `coproc` may name the process, not a program.
        if _is_script(words[at]) or "coproc" in words[:at]:
            return True
        program, operands = _program(words[at]), words[at + 1 :]
        is_prefix = program in PREFIXES and program not in SHELLS
        if not (is_prefix or is_plain(words[at], operands)) or self._is_mentioned_in(operands):
            return True
        if is_prefix and has_unseen_command(program, operands):
            return True
        return (is_prefix or program in EXECUTING) and any(map(self._is_hidden_in, launched(program, operands)))

    def _is_mentioned_in(self, operands: Sequence[str]) -> bool:
        """Return whether the name of the command is a part of a word, as in `alias.x=!rm y` or `-Orm`."""
        name = self.words[0].casefold() if self.words else ""
        if not name.isalnum():
            return False  # a glob
        mention = re.compile(rf"(?<![\w.-])(?:-[a-z]{{1,3}})?{re.escape(name)}(?![\w-])", re.IGNORECASE)
        return any(mention.search(word) for word in operands)

    def _maybe(self, value: Any, depth: int, *, run: bool = True) -> bool:
        """Return whether a command, which may be quoted in another one, may match.

        Args:
            value: a command.
            depth: the number of nested commands that are still analyzed.
            run: it is certainly run; else it is text that may be.
        """
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return sum(map(len, value)) > MAX_LENGTH or self._in_words(value, depth)
        # What is too long or nested too deeply to analyze may be anything, and a rule that denies has to fit it.
        if not isinstance(value, str) or len(value) > MAX_LENGTH or not depth:
            return True
        # A shell joins lines that end in a backslash before it parses, so `r\\<newline>m` is `rm`.
        text = value.replace("\\\n", "")
        # Twice: at what ends a command, which keeps words whole, and also where a command may begin inside, like `$(`.
        parts = dict.fromkeys([*_BREAKS.split(text), *_INNER_BREAKS.split(text)])
        for part in parts:
            words = _words(part)
            if (run and _is_unknown(words, _QUOTED.sub("", part))) or self._in_words(words, depth, read=True):
                return True
            # To a shell of Windows, a backslash separates the names of a path and quotes nothing.
            if _NAME_BEHIND_BACKSLASH.search(part) and self._in_words(
                _words(_NAME_BEHIND_BACKSLASH.sub("/", part)), depth, read=True
            ):
                return True
        return False

    def _in_words(self, words: Sequence[str], depth: int, *, read: bool = False) -> bool:
        """Return whether a matching command may begin at one of the words, or may be contained in one.

        Args:
            words: the command.
            depth: see `_maybe`.
            read: a shell parses them, so some may expand to others.
        """
        folded = [word.casefold() for word in words]
        options = [glob.casefold() for glob in self.words[1:] if glob.startswith("-")]
        options_fit = all(_has_option(folded, glob, read=read) for glob in options)
        if options_fit and any(self._begins(folded, at, read=read) for at in range(len(folded))):
            return True
        programs = {_program(word) for word in words}
        run, inner = not programs.isdisjoint(LAUNCHERS), not programs.isdisjoint(READERS)
        # A word may be a command of its own, as after `sh -c` or `ssh host`.
        nested = [word for word in words if _SEPARATING.search(word) or (inner and _SHELL.search(word))]
        return any(self._maybe(_value(word), depth - 1, run=run) for word in nested)

    def _begins(self, words: Sequence[str], start: int, *, read: bool) -> bool:
        """Return whether a command that may match begins at this word; its options may be anywhere."""
        program, *rest = (word.casefold() for word in self.words)
        if not any(fnmatchcase(name, program) for name in _program_names(words[start])):
            return False
        at = start + 1
        for glob in rest:
            if not glob.startswith("-"):
                position = _operand(words, at, glob, read=read)
                if position < 0:
                    return False
                if read and _EXPANDED & set(words[position]):
                    return True  # it may become all the words that are left
                at = position + 1
        if not self.exact:
            return True
        following = words[at : at + MAX_SKIPPED]
        named_options = any(glob.startswith("-") for glob in rest)
        return not any(
            not (named_options and word.startswith("-")) for word in (_arguments(following) if read else following)
        )


def _is_script(word: str) -> bool:
    """Return whether a word that names a program names a file of the project."""
    return "/" in word and not word.startswith("/")


def _is_program(word: str, glob: str) -> bool:
    if word == glob:
        return bool(word)
    plain = word and word[0] not in "-+@" and "=" not in word and ("/" in glob or "/" not in word)
    return bool(plain) and ".." not in word.split("/") and fnmatchcase(word, glob)


def _is_named(word: str, glob: str) -> bool:
    """Return whether a glob names a word; a wildcard never fits an option, a variable or `..`."""
    if word == glob:
        return True
    odd = (word[:1] in ("-", "+", "@") and word[:1] != glob[:1]) or (_ASSIGNMENT.match(word) and "=" not in glob)
    return not odd and ".." not in re.split(r"[/=:,]", word) and fnmatchcase(word, glob)


def _runs(words: Sequence[str], globs: Sequence[str]) -> bool:
    """Return whether the program that a rule names runs words that the rule does not name."""
    program = _program(words[0])
    if len(words) > len(globs) and program in LAUNCHERS:
        return True
    subcommand = words[1] if len(words) > 1 else ""
    if len(globs) > 1 and globs[1] == subcommand:
        return False
    return bool(subcommand) and _is_running(program, subcommand)


def _is_running(program: str, subcommand: str) -> bool:
    """Return whether a subcommand makes a program run its operands, or a script of the project."""
    if program in RUNS_NOTHING:
        return subcommand not in RUNS_NOTHING[program]
    cut = program in CUTTING and len(subcommand) >= MIN_CUT
    # Package managers complete abbreviations: `npm run-s x` is `npm run-script x`. A name with a hyphen is only
    # completed from a word with one, so `npm in` cannot mean `install-test`.
    return any(
        subcommand == name or (cut and ("-" not in name or "-" in subcommand) and name.startswith(subcommand))
        for name in RUNS.get(program, ())
    )


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # quotes that are not closed: it depends on the shell
        return part.replace('"', "").replace("'", "").split()


def _value(word: str) -> str:
    """Return what is attached to an option, as `rm x` in `-Srm x` and in `--split-string=rm x`; else the word."""
    if word.startswith("-") and not word.startswith("--"):
        word = word[2:]
    elif not word.startswith("--"):
        return word
    name, _, value = word.partition("=")
    return value if value and not _SEPARATING.search(name) else word


def _program(word: str) -> str:
    """Return a program's name, without its directory and its version."""
    name = posixpath.basename(word).casefold().removesuffix(".exe")
    return _VERSION.sub("", name) or name  # the name of `.` is all version


def _program_names(word: str) -> set[str]:
    """Return the names by which a rule may mean the program that a word names."""
    # Windows has backslashes in paths and finds `x` as `x.exe`; zsh expands `=x` to the path of `x`.
    name = re.split(r"[/\\]", word)[-1]
    return {word, posixpath.basename(word), name, _SUFFIX.sub("", name), name.removeprefix("=")}


def _is_unknown(words: Sequence[str], bare: str) -> bool:
    """Return whether it is unknown before they run what these words run; `bare` is the text outside quotes."""
    at = 0
    while at < len(words):
        if _REDIRECTION.match(words[at]):
            at += 2 if words[at].endswith(("<", ">")) else 1
        elif words[at] in _RESERVED or _ASSIGNMENT.match(words[at]) or words[at][:1] in ("!", ""):
            at += 1
        else:
            break
    if at >= len(words):
        return False
    # Behind redirections, assignments and reserved words comes the program.
    first, operands = words[at], words[at + 1 :]
    # The name of the program comes from a variable or a substitution.
    if _EXPANDED & set(first):
        return True
    # An alias may give the name of a harmless program to any command.
    if first in RENAMING and operands:
        return True
    bare = bare.replace("{}", "")  # only `find` and `xargs` replace it
    expanded = any(mark in word for word in operands for mark in "$`") or not _EXPANDED.isdisjoint(bare)
    if _program(first) in LAUNCHERS and expanded:
        return True
    shell = _launched(words, at)
    return _program(words[shell]) in INPUT_SHELLS and _reads_input(words[shell + 1 :])


def _launched(words: Sequence[str], at: int) -> int:
    """Return the position of the program that the launchers at a position run, for example of `sh` in `sudo -n sh`."""
    launcher, after_option = at, False
    while at + 1 < len(words) and _program(words[launcher]) in PREFIXES:
        at += 1
        word = words[at]
        # A program may also look like the value of an option.
        if _program(word) in PREFIXES or _program(word) in INPUT_SHELLS:
            launcher = at
        elif not (word.startswith("-") or after_option or _ASSIGNMENT.match(word) or word[:1].isdigit()):
            return at
        after_option = word.startswith("-")
    return launcher


def _reads_input(operands: Sequence[str]) -> bool:
    """Return whether a shell with these operands may read commands from its input."""
    is_value = False
    for word in _without_redirections(operands):
        if is_value:
            is_value = False
        elif not word.startswith(("-", "+")):
            return word.startswith(("/dev/", "/proc/"))
        elif _SHORT.fullmatch(word) and "c" in word:
            return False  # the next word is the command, which is analyzed as one
        elif _SHORT.fullmatch(word) and "s" in word:
            return True
        else:
            is_value = bool(_VALUED.fullmatch(word))
    return True


def _operand(words: Sequence[str], at: int, glob: str, *, read: bool) -> int:
    """Return the position of a word that follows only options, each of which may have a value; -1 if it does not."""
    after_option = False
    for position in range(at, min(len(words), at + MAX_SKIPPED)):
        word = words[position]
        if fnmatchcase(word, glob) or (read and _EXPANDED & set(word)):
            return position
        is_option = word.startswith("-")
        if not is_option and not after_option:
            return -1
        after_option = is_option
    # Too many options to look at: the word may follow them.
    return at if at + MAX_SKIPPED < len(words) else -1


def _arguments(words: Iterable[str]) -> Iterator[str]:
    """Yield the words that a shell certainly passes to the program that they follow."""
    return (word for word in _without_redirections(words) if not _EXPANDED & set(word))


def _without_redirections(words: Iterable[str]) -> Iterator[str]:
    """Yield the words that are neither a redirection, nor its file, nor in a comment."""
    remaining = iter(words)
    for word in remaining:
        if word.startswith("#"):
            return
        if not _REDIRECTION.match(word):
            yield word
        elif word.endswith(("<", ">")):
            next(remaining, None)


def _has_option(words: Sequence[str], glob: str, *, read: bool) -> bool:
    """Return whether an option is among words: alone, in a group of short ones, by its long name, or by expansion."""
    if any(fnmatchcase(word.partition("=")[0], glob) or fnmatchcase(word, glob) for word in words):
        return True
    if read and any(word[:1] in ("$", "`", "{") or (word[:1] == "-" and _EXPANDED & set(word)) for word in words):
        return True
    short = {letter for word in words if _SHORT.fullmatch(word) for letter in word[1:]}
    long = [word.partition("=")[0] for word in words if word[:2] == "--" and len(word) > 2]
    short |= {letter for letter, names in LONG.items() if any(name.startswith(cut) for name in names for cut in long)}
    if any(glob in names and letter in short for letter, names in LONG.items()):
        return True
    return bool(_SHORT.fullmatch(glob)) and set(glob[1:]) <= short
