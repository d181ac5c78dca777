"""Command lines as grep parses them: options anywhere, `-e -x`, `-rn`, `--`; and their help."""

from __future__ import annotations

import getopt
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

WRONG: Final = 2


class Option(NamedTuple):  # here and in what `te grep` needs first: made in a tenth of a dataclass's time
    """One option.

    Attributes:
        names: such as `-e --regexp`; the last one without dashes is its name.
        help: its description; "" hides it.
        value: a placeholder for its value; "" if it takes none.
    """

    names: str
    help: str = ""
    value: str = ""

    @property
    def name(self) -> str:
        """The name that its values are stored under."""
        return self.names.split()[-1].lstrip("-")


class ParsedArguments(NamedTuple):
    """A parsed command line.

    Attributes:
        arguments: the arguments that are not options.
        values: the values of each option, in order; "" if it takes none.
    """

    arguments: list[str]
    values: Mapping[str, list[str]]

    def has(self, name: str) -> bool:
        """Return whether an option is present."""
        return name in self.values

    def last(self, name: str, otherwise: str = "") -> str:
        """Return the last value of an option."""
        return self.values[name][-1] if name in self.values else otherwise

    def all(self, name: str) -> tuple[str, ...]:
        """Return all values of an option."""
        return tuple(self.values.get(name, ()))


class CommandSpec(NamedTuple):
    """A command and its options.

    Attributes:
        usage: `te grep [OPTION]... PATTERN [PATH]...`
        about: a sentence that describes it.
        options: its options besides `--help`.
        more: the end of its help: examples, exit statuses.
        mixed: options may follow arguments; otherwise everything after the first argument is an argument.
    """

    usage: str
    about: str
    options: tuple[Option, ...]
    more: str = ""
    mixed: bool = True

    def read(self, arguments: Sequence[str]) -> ParsedArguments:
        """Parse a command line; exit if it is wrong or asks for help."""
        names = {name: option for option in (*self.options, Option("-h --help")) for name in option.names.split()}
        short = "".join(
            name[1] + ":" * bool(option.value) for name, option in names.items() if not name.startswith("--")
        )
        long = [name[2:] + "=" * bool(option.value) for name, option in names.items() if name.startswith("--")]
        try:
            read = getopt.gnu_getopt if self.mixed else getopt.getopt
            pairs, rest = read(list(arguments), short, long)
        except getopt.GetoptError as error:
            self.wrong(str(error))
        values: dict[str, list[str]] = {}
        for name, value in pairs:
            values.setdefault(names[name].name, []).append(value)
        if "help" in values:
            sys.stdout.write(self.help)
            sys.exit(0)
        return ParsedArguments(rest, values)

    def wrong(self, message: str) -> NoReturn:
        """Exit because the command line cannot be used."""
        sys.stderr.write(f"{message[:1].lower()}{message[1:]}\nusage: {self.usage}\n")
        sys.exit(WRONG)

    def number(self, parsed: ParsedArguments, name: str) -> int | None:
        """Return the value of an option as a positive integer, or None if it is missing."""
        if not parsed.has(name):
            return None
        text = parsed.last(name)
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
            self.wrong(f"--{name} takes a positive integer, not {text!r:.80}")
        return int(text)

    @property
    def help(self) -> str:
        """The output of `--help`."""
        rows = [
            (f"{', '.join(option.names.split())}{' ' * bool(option.value)}{option.value}", option.help)
            for option in (*self.options, Option("-h --help", "show this and exit"))
            if option.help
        ]
        width = max(len(names) for names, _ in rows) + 2
        shown = "\n".join(f"  {names:{width}}{about}" for names, about in rows)
        return f"usage: {self.usage}\n\n{self.about}\n\noptions:\n{shown}\n" + (f"\n{self.more}\n" if self.more else "")
