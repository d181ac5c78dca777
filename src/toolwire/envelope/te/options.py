"""CommandSpec lines as grep takes them: options anywhere, `-e -x`, `-rn`, `--`; and the help that goes with them."""

from __future__ import annotations

import getopt
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

WRONG: Final = 2


class Option(NamedTuple):  # here and in what `te grep` needs first: made in a tenth of a dataclass's time
    """One option.

    Attributes:
        names: `-e --regexp`; the last one without its strokes is its name.
        help: what it does; "" for one that is taken and not shown.
        value: what its value is called; "" if it takes none.
    """

    names: str
    help: str = ""
    value: str = ""

    @property
    def name(self) -> str:
        """How its values are asked for."""
        return self.names.split()[-1].lstrip("-")


class Given(NamedTuple):
    """What stood on a command line.

    Attributes:
        arguments: what is no option.
        values: by an option's name, what it was given, in order; "" where it takes nothing.
    """

    arguments: list[str]
    values: Mapping[str, list[str]]

    def has(self, name: str) -> bool:
        """Whether an option was given."""
        return name in self.values

    def last(self, name: str, otherwise: str = "") -> str:
        """An option's value; of several the last."""
        return self.values[name][-1] if name in self.values else otherwise

    def all(self, name: str) -> tuple[str, ...]:
        """An option's values."""
        return tuple(self.values.get(name, ()))


class CommandSpec(NamedTuple):
    """A command and its options.

    Attributes:
        usage: `te grep [OPTION]... PATTERN [PATH]...`
        about: what it does, in a sentence.
        options: what it takes besides `--help`.
        more: what stands below the options in its help: examples, exit statuses.
        mixed: options may stand behind arguments; else all behind the first argument belongs to somebody else.
    """

    usage: str
    about: str
    options: tuple[Option, ...]
    more: str = ""
    mixed: bool = True

    def read(self, arguments: Sequence[str]) -> Given:
        """Read a command line; wrong ones, and those that ask for help, end the process."""
        names = {name: option for option in (*self.options, Option("-h --help")) for name in option.names.split()}
        short = "".join(name[1] + ":" * bool(one.value) for name, one in names.items() if not name.startswith("--"))
        long = [name[2:] + "=" * bool(one.value) for name, one in names.items() if name.startswith("--")]
        try:
            read = getopt.gnu_getopt if self.mixed else getopt.getopt
            found, rest = read(list(arguments), short, long)
        except getopt.GetoptError as error:
            self.wrong(str(error))
        values: dict[str, list[str]] = {}
        for name, value in found:
            values.setdefault(names[name].name, []).append(value)
        if "help" in values:
            sys.stdout.write(self.help)
            sys.exit(0)
        return Given(rest, values)

    def wrong(self, message: str) -> NoReturn:
        """End the process: the command line cannot be used."""
        sys.stderr.write(f"{message[:1].lower()}{message[1:]}\nusage: {self.usage}\n")
        sys.exit(WRONG)

    def number(self, given: Given, name: str) -> int | None:
        """A whole number above 0 that an option was given, or None."""
        if not given.has(name):
            return None
        text = given.last(name)
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
            self.wrong(f"--{name} takes a whole number above 0, not {text!r:.80}")
        return int(text)

    @property
    def help(self) -> str:
        """What `--help` shows."""
        rows = [
            (f"{', '.join(option.names.split())}{' ' * bool(option.value)}{option.value}", option.help)
            for option in (*self.options, Option("-h --help", "show this and end"))
            if option.help
        ]
        width = max(len(names) for names, _ in rows) + 2
        shown = "\n".join(f"  {names:{width}}{about}" for names, about in rows)
        return f"usage: {self.usage}\n\n{self.about}\n\noptions:\n{shown}\n" + (f"\n{self.more}\n" if self.more else "")
