"""Commands in a text that a shell interprets: their words, without what only redirects or separates them."""

from __future__ import annotations

import re

from toolwire.text.word_set import word_set

MAX_NESTED = 20
"""Maximum depth of commands in commands; a deeper text is not read."""
_DESCRIPTOR = re.compile(r"[0-9]+")
"""The number of a descriptor in front of a redirection."""
_REDIRECTION = re.compile(r"(?P<closing>[<>]&(?:-|[0-9]+-(?![^\s;&|<>()])))|<<<|<<-?|<>|<&|>&|>>|>\||<|>")
"""Redirections. What closes a descriptor, or moves it, has no word behind it."""
_KEYWORDS = word_set("if then else elif fi do done while until for in case esac select function time coproc ! { }")
_BLANK = " \t"
_ENDS = ";&|\n"
_ENDS_WORD = frozenset(_BLANK + _ENDS + "<>()")
_VARIABLE = re.compile(r"\$\{[^\s'\"\\`$(){};&|<>]*\}")
"""A variable in braces, without what shells read in several ways there: quotes, blanks and commands."""
_WORDS_IN_BRACES = re.compile(r"(?<!\$)\{(?!\s)[^{}\n]*(?:,|\.\.)")
"""A word that becomes several, as `{--pre,make}`."""


def simple_commands(text: str) -> list[list[str]] | None:
    """Return the words of each command in a text; None if it cannot be read with certainty.

    It cannot if a quote or a bracket is not closed, or if shells read it in several ways, so that a command may look
    like a part of a quote or of a comment: here-documents, carriage returns, backquotes, between which backslashes
    count twice, and quotes and blanks in `${..}`. Nor can it if a word becomes several, as `{a,b}` does.

    Commands in substitutions (`$(..)`, `<(..)`) and groups are commands of their own; a `$` takes their place in the
    word that they are part of. Words are as they are written apart from quotes: nothing is expanded.
    """
    lexer = _Lexer(text.replace("\\\n", ""))
    complete = lexer.read_commands("")
    return lexer.commands if complete else None


class _Lexer:
    """Reads a text once from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self.commands: list[list[str]] = []

    def read_commands(self, end: str) -> bool:
        """Read up to the character that closes a substitution, or to the end; return whether it is there."""
        words: list[str] = []
        is_target = False  # the next word is the file of a redirection
        begins = self._at
        self._depth += 1
        while self._at < len(self._text) and self._depth <= MAX_NESTED:
            character = self._text[self._at]
            if character == end:
                break
            if character in _BLANK:
                self._at += 1
            elif character in _ENDS:
                self._at += 1
                self._add(words)
                words, is_target = [], False
            elif character == "#":
                newline = self._text.find("\n", self._at)
                self._at = newline if newline >= 0 else len(self._text)
            elif character in "<>" and self._text[self._at + 1 : self._at + 2] != "(":
                if words and _DESCRIPTOR.fullmatch(self._text, begins, self._at):
                    words.pop()
                operator = _REDIRECTION.match(self._text, self._at)
                if operator is not None and operator[0] in ("<<", "<<-"):
                    return False  # a quote in a here-document would hide the commands behind it
                self._at = operator.end() if operator else self._at + 1
                is_target = operator is None or not operator["closing"]
            else:
                begins = self._at  # of the last word
                word = self._word(begins_command=not words)
                if word is None:
                    return False
                if word in _KEYWORDS and word != self._text[begins : self._at] and _KEYWORDS.issuperset(words):
                    return False  # in quotes, it is the name of a program
                if is_target:
                    begins = self._at  # this word has no part in the next redirection
                else:
                    words.append(word)
                is_target = False
        self._add(words)
        self._depth -= 1
        closed = self._text[self._at : self._at + 1] == end
        self._at += len(end)
        return closed and self._depth < MAX_NESTED

    def _add(self, words: list[str]) -> None:
        if words:
            self.commands.append(words)

    def _word(self, *, begins_command: bool) -> str | None:
        """Read a word, and the commands in it; return None if something is not closed, or defines a function."""
        pieces: list[str] = []
        begins = self._at
        while self._at < len(self._text):
            character = self._text[self._at]
            opener = self._text[self._at : self._at + 2]
            if character == "\\":
                pieces.append(self._text[self._at + 1 : self._at + 2])
                self._at += 2
            elif character == "'":
                close = self._text.find("'", self._at + 1)
                if close < 0 or (pieces[-1:] == ["$"] and self._text[close - 1] == "\\"):
                    # Behind `$`, some shells read `\'` as a quote that closes nothing.
                    return None
                pieces.append(self._text[self._at + 1 : close])
                self._at = close + 1
            elif character == '"':
                quoted = self._double_quoted()
                if quoted is None:
                    return None
                pieces.append(quoted)
            elif opener in ("$(", "<(", ">(") or character == "(":
                is_group = character == "("
                if is_group and (pieces or not begins_command):
                    return None  # a function, a list or a pattern
                if not self._substitution("(" if is_group else opener):
                    return None
                pieces.append("" if is_group else "$")
            elif character in _ENDS_WORD and self._at > begins:
                break
            elif character in ")\r`" or (opener == "${" and not _VARIABLE.match(self._text, self._at)):
                return None  # a pattern of `case`, or see `simple_commands`
            elif _WORDS_IN_BRACES.match(self._text, self._at):
                return None
            else:
                pieces.append(character)
                self._at += 1
        return "".join(pieces)

    def _substitution(self, opener: str) -> bool:
        self._at += len(opener)
        return self.read_commands(")")

    def _double_quoted(self) -> str | None:
        pieces: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return "".join(pieces)
            if character == "\\":
                pieces.append(self._text[self._at + 1 : self._at + 2])
                self._at += 2
            elif self._text.startswith("$(", self._at):
                if not self._substitution("$("):
                    return None
                pieces.append("$")
            elif character == "`" or (
                self._text.startswith("${", self._at) and not _VARIABLE.match(self._text, self._at)
            ):
                return None
            else:
                pieces.append(character)
                self._at += 1
        return None
