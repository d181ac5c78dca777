"""The reading of a message that is nothing but calls to known tools, without the markers of a format.

`KnownToolsReader` follows a message as it arrives. It gives up at the first character that no such message has, which
in prose is the end of the first word, so little text is ever kept back. Around the calls it allows what models put
there: code fences, bullets, special tokens, `return`, an assignment, a label such as `Tool call:`.

Text may follow the calls if it begins on a line of its own. Then the calls have less confidence, and count for nothing
if the text declines to call a tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolwire.wire.dialects import CallScanner, ReadCall
from toolwire.wire.prepared_tools import KnownTools
from toolwire.wire.refusals import declines
from toolwire.wire.result_tags import RESULT_TAG
from toolwire.wire.turn_headers import role_may_go_on, turn_header

_SEPARATING = " \t\r\n,;"
_SEPARATORS = re.compile(rf"[{_SEPARATING}]+")
_RUN = {"`": re.compile("`+"), "~": re.compile("~+")}
_INFO = re.compile(r"[\w+#.-]*")
_BULLET = re.compile(r"(?:[-*•]|\d{1,3}[.)])(?=[ \t])")
_BULLET_BEGINS = re.compile(r"(?:[-*•]|\d{1,3}[.)]?)\Z")
_WORD = re.compile(r"(?:[^\W\d]|[$\\])[\w$.\\-]*")
# The text between the tags of a tool's result is the tool's, even if the model wrote the tags.
_TOKEN = re.compile(
    rf"""(?!{RESULT_TAG})<(?:
        [|｜][^<>\n]*[|｜]                                                   # special tokens
      | /?s | /?(?:begin|end)_of_\w+ | (?:start|end)_of_turn | \?xml[^<>\n]*
      # tags that announce calls
      | /?[\w:-]*(?:tool|function|call|action|request|response|answer|output)[\w:-]* | /?(?:code|execute)
    )>""",
    re.VERBOSE | re.IGNORECASE,
)
_BRACKETED = ("[TOOL_CALLS]", "[/TOOL_CALLS]", "[TOOL_CALL]", "[/TOOL_CALL]")
"""Tokens around calls that begin as a list does."""
_LABEL = re.compile(
    r"""
    (?:the[ ])? (?:(?:function|tool|api|python|next|final)[ _-])?
    (?:tools?|functions?|calls?|actions?|answer|output|code) (?:[ _-]to[ _-]call)? [*_`]{0,2} [ \t]* :
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LABEL_WORDS = frozenset({
    "the", "function", "functions", "tool", "tools", "api", "python", "next", "final", "call", "calls", "action",
    "actions", "answer", "output", "code", "to",
})  # fmt: skip
_ASSIGNS = re.compile(r"[ \t]{0,4}=(?!=)")
_KEYWORDS = frozenset({"return", "await", "const", "let", "var"})
_BOLD_LABEL = re.compile(rf"\*\*{_LABEL.pattern}\*{{0,2}}", re.IGNORECASE | re.VERBOSE)
# The first line may be what a code fence or a special token left behind.
_LANGUAGES = frozenset({"json", "python", "py", "javascript", "tool_code", "tool_call", "tool_calls", "assistant"})
_LANGUAGE_ENDS = re.compile(r"[ \t]{0,4}(?:\r?\n|<\|)")
_WORDS_BEFORE_OBJECT = ("inputs", "input", "arguments", "parameters", "params", "args")
BEFORE_OBJECT = r"""(?::\d{1,4})?                            # the number of the call, as in Kimi's ids
    [`*"']{0,3}[ \t]*[:,]?\s{0,99}
    (?:[*]{0,2}(?:action[ _])?(?:WORDS)[*`]{0,2}\s{0,99}[:=][*]{0,2}\s{0,99})?
    (?:`{3,9}\w{0,99}\s{0,99})?""".replace("WORDS", "|".join(_WORDS_BEFORE_OBJECT))
"""A verbose pattern, for any case, of what may be between the name of a tool and the object of its arguments."""
_BEFORE_OBJECT = re.compile(BEFORE_OBJECT, re.VERBOSE | re.IGNORECASE)
_DECISIVE = 6
"""Number of characters behind a word that decide whether it is assigned to, or is the language of what follows."""
_BEGINNINGS = {
    f"{before}{word}"[:size]
    for before in ("", "action ", "action_")
    for word in _WORDS_BEFORE_OBJECT
    for size in range(1, len(before + word) + 1)
}
# Every beginning of what `_BEFORE_OBJECT` matches, so that a call is the same one however its text arrives.
_BEFORE_OBJECT_GOES_ON = re.compile(
    rf"""(?::\d{{0,4}})?[`*"']{{0,3}}[ \t]*[:,]?\s{{0,99}}
    (?:[*]{{0,2}}(?:{"|".join(sorted(map(re.escape, _BEGINNINGS)))})[*`]{{0,2}}\s{{0,99}}[:=]?[*]{{0,2}}\s{{0,99}}
      | [*]{{1,2}})?
    (?:`{{1,9}}\w{{0,99}}\s{{0,99}})?\Z""",
    re.VERBOSE | re.IGNORECASE,
)
_WINDOW = 300
"""Number of characters that decide what is between two calls; no name is longer."""
_LONGEST_FENCE = 80
"""Number of backticks of a fence that count."""
_NEAR = 80
"""Number of characters behind a name in which an object has to begin, and in which a token or label has to end."""
_MORE = -1
"""Instead of a position or a number of characters: more text is needed."""


@dataclass(frozen=True, slots=True)
class MessageReading:
    """The calls that a message was read as.

    Attributes:
        calls: its calls, in order.
        behind: the text behind the calls.
        cut: the text of a call in which the message ends, or "".
    """

    calls: list[ReadCall]
    behind: str = ""
    cut: str = ""


_BETWEEN, _RUN_GOES_ON, _INFO_GOES_ON, _EXPRESSION, _NAMED, _BEHIND = range(6)


class KnownToolsReader:
    """A reader of a message that arrives in pieces.

    Args:
        tools: the known tools.
        answers: tokens with which formats open the answer; what follows one is not a call.

    Attributes:
        alive: the message may still be calls and nothing else.
        error: why it is not, where an expression began that is not a call.
        broken: the text of a call to a known tool up to the place where it cannot be read; "" if there is none.
        unreadable: an object or list cannot be read, so that it is not known whether it is a call.
    """

    def __init__(self, tools: KnownTools, answers: frozenset[str] = frozenset()) -> None:
        self.alive = True
        self.error = self.broken = ""
        self.unreadable = False
        self._tools = tools
        self._answers = answers
        self._state = _BETWEEN
        self._tail = ""
        self._calls: list[ReadCall] = []
        self._scanner: CallScanner  # of the expression that is being read
        self._name = ""  # a known tool's name, behind which an object may follow
        self._fresh = True  # the next item begins on a line of its own
        self._item: list[str] = []  # text since the last call or fence
        self._is_call_over = False  # that text was the markup of a call
        self._run = self._fence = ""  # the backticks or tildes that were read, and those of the open fence

    @property
    def is_in_call(self) -> bool:
        """True in the middle of a call, where text between markers is part of an argument."""
        if self._state == _BETWEEN and self._tail == "[":  # a list, before which no token in brackets is certain yet
            return self.alive
        return self.alive and self._state == _EXPRESSION and self._scanner.is_open

    @property
    def has_calls(self) -> bool:
        """True if calls were read to their end."""
        return bool(self._calls)

    def feed(self, text: str) -> None:
        """Read the next piece."""
        if self.alive:
            text = self._tail + text
            self._tail = text[self._advance(text, False) :]

    def finish(self) -> MessageReading | None:
        """Read the end of the message; return what it was read as, or None if it is not made of calls."""
        if self.alive:
            self._tail = self._tail[self._advance(self._tail, True) :]
        if not self.alive:
            return None
        rest = "".join((*self._item, self._tail)).lstrip(_SEPARATING)
        if self._state == _EXPRESSION and self._scanner.in_call:
            return MessageReading(self._calls, cut=rest)
        if self._state in (_EXPRESSION, _NAMED):
            if self._state == _EXPRESSION and self._scanner.is_open:
                self.error, self.unreadable = "the text ends inside it", True
            self._not_an_item()
        if not self.alive or not self._calls or (self._state == _BEHIND and declines(rest)):
            return None
        return MessageReading(self._calls, rest if self._state == _BEHIND else "")

    # -- the machine ---------------------------------------------------------------------------------------------

    def _advance(self, text: str, final: bool) -> int:
        pos, end = 0, len(text)
        while pos < end and self.alive:
            stop = self._step(text, pos, final)
            if stop == _MORE:
                break
            self._item.append(text[pos:stop])
            if self._is_call_over:
                self._item.clear()
                self._is_call_over = False
            pos = stop
        return pos

    def _step(self, text: str, pos: int, final: bool) -> int:
        """Read one thing; return the position after it, or `_MORE`."""
        if self._state == _BETWEEN:
            return self._between(text, pos, final)
        if self._state == _RUN_GOES_ON:
            return self._backticks(text, pos)
        if self._state == _INFO_GOES_ON:
            return self._info(text, pos, final)
        if self._state == _EXPRESSION:
            return self._expression(text, pos, final)
        if self._state == _NAMED:
            return self._object_begins(text, pos, final)
        return len(text)

    def _not_an_item(self) -> None:
        """Take what was read as the text behind the calls, or give up."""
        if self._calls and self._fresh:
            self._state = _BEHIND
        else:
            self.alive = False

    def _between(self, text: str, pos: int, final: bool) -> int:
        """Read what is before a call, between two calls or behind the last one."""
        c = text[pos]
        separators = _SEPARATORS.match(text, pos)
        if separators:
            self._fresh = self._fresh or "\n" in separators[0]
            return separators.end()
        if c in _RUN:
            self._run, self._state = "", _RUN_GOES_ON
            return pos
        # Each decision looks at the same characters, however the text arrives: those of a window.
        window = text[pos : pos + _WINDOW]
        is_whole = final or len(window) == _WINDOW
        rules = (self._token, self._bullet, self._bold_label, self._triple_quote, self._word)
        for rule in rules[-1:] if c.isalpha() else rules:
            size = rule(window, is_whole)
            if size:
                return pos + size if size != _MORE else _MORE
            if self._state != _BETWEEN:
                return pos
        if c in "[{(\"'":
            self._begin_expression()
            return pos
        self._not_an_item()
        return pos

    # Each rule returns the number of characters that it takes, 0 if it does not apply, or `_MORE`.

    def _token(self, window: str, is_whole: bool) -> int:
        if window[0] == "[":
            word = next((token for token in _BRACKETED if token.startswith(window[: len(token)])), "")
            return (len(word) if window.startswith(word) else 0 if is_whole else _MORE) if word else 0
        if window[0] != "<":
            return 0
        if ">" not in window[:_NEAR]:
            return 0 if is_whole or len(window) >= _NEAR or "\n" in window else _MORE
        if not is_whole and role_may_go_on(window):
            return _MORE
        if turn_header(window) is not None:
            return 0
        token = _TOKEN.match(window)
        return token.end() if token and token[0] not in self._answers else 0

    def _bullet(self, window: str, is_whole: bool) -> int:
        bullet = _BULLET.match(window)
        if bullet:
            return bullet.end()
        return _MORE if not is_whole and _BULLET_BEGINS.match(window) else 0

    def _bold_label(self, window: str, is_whole: bool) -> int:
        if not "**".startswith(window[:2]):
            return 0
        label = _BOLD_LABEL.match(window[:_NEAR])
        if label is None:
            return _MORE if not is_whole and _may_become_label(window[2:] or "t") else 0
        return label.end() if is_whole or label.end() < len(window) - 1 else _MORE

    def _triple_quote(self, window: str, is_whole: bool) -> int:
        """Take the quotes of a text in Python around the calls; a string has no line break behind its quotes."""
        quotes = window[0] * 3
        if window[0] not in "\"'" or not quotes.startswith(window[:3]):
            return 0
        if len(window) < 4 and not is_whole:
            return _MORE
        return 3 if len(window) >= 3 and (len(window) == 3 or window[3].isspace()) else 0

    def _word(self, window: str, is_whole: bool) -> int:
        match = _WORD.match(window)
        if match is None:
            return 0
        word = match[0]
        behind = window[match.end() :]
        if not behind and not is_whole:
            return _MORE
        if behind.startswith("("):
            self._begin_expression()
            return 0
        if word in _KEYWORDS and behind[:1].isspace():
            return match.end()
        assigns = _ASSIGNS.match(behind)
        if not is_whole and len(behind) <= _DECISIVE and not behind.strip(" \t="):
            return _MORE
        if assigns:
            return match.end() + assigns.end()
        if self._tools.names.resolve(word):
            self._name, self._state = word, _NAMED
            return match.end()
        if word.lower() in _LANGUAGES and not self._calls:
            if not is_whole and len(behind) < _DECISIVE and not behind.strip(" \t\r<"):
                return _MORE
            if _LANGUAGE_ENDS.match(behind):
                return match.end()
        label = _LABEL.match(window[:_NEAR])
        if label:
            return label.end()
        return _MORE if not is_whole and _may_become_label(window) else 0

    def _backticks(self, text: str, pos: int) -> int:
        match = _RUN[text[pos]].match(text, pos) if text[pos] in _RUN else None
        if match is not None and (not self._run or text[pos] == self._run[0]):
            self._run = (self._run + match[0])[:_LONGEST_FENCE]
            return match.end()
        if len(self._run) >= 3:
            self._fresh = True
            self._state = _INFO_GOES_ON
            self._fence_line()
        elif self._run[0] == "~":
            self._not_an_item()  # text that is struck out
        else:
            self._state = _BETWEEN
        return pos

    def _fence_line(self) -> None:
        """Open or close a fence; one inside a longer one is shown, as Markdown does it, and so are its calls."""
        if not self._fence:
            self._fence = self._run
        elif self._run.startswith(self._fence):
            self._fence = ""
        else:
            self.alive = False

    def _info(self, text: str, pos: int, final: bool) -> int:
        """Read the language behind the backticks of a fence; a name that is called there is none."""
        window = text[pos : pos + _WINDOW]
        match = _INFO.match(window)
        size = match.end() if match else 0
        if size == len(window) and not final and size < _WINDOW:
            return _MORE
        self._state = _BETWEEN
        self._is_call_over = True  # a fence is markup
        is_language = size == len(window) or window[size].isspace() or window[size] in "[{`"
        return pos + size if is_language and not self._tools.names.resolve(window[:size]) else pos

    def _begin_expression(self) -> None:
        self._scanner = CallScanner(self._tools)
        self._state = _EXPRESSION

    def _object_begins(self, text: str, pos: int, final: bool) -> int:
        """Read up to the object behind a tool's name."""
        window = text[pos : pos + _NEAR]
        size = window.find("{")
        if size < 0 and len(window) < _NEAR and not final and _BEFORE_OBJECT_GOES_ON.match(window):
            return _MORE
        if size < 0 or not _BEFORE_OBJECT.fullmatch(window, 0, size):
            self._not_an_item()
            return pos
        self._begin_expression()
        return pos + size

    def _expression(self, text: str, pos: int, final: bool) -> int:
        scanner = self._scanner
        stop = scanner.scan(text, pos, final)
        if not scanner.done and not scanner.error:
            return stop if stop > pos else _MORE
        calls = scanner.calls(self._text_of(scanner, text[pos:stop]), self._name)
        self._name = ""
        if calls:
            self._calls.extend(calls)
            self._state = _BETWEEN
            self._fresh = False
            self._is_call_over = True
        else:
            self.error = scanner.error or "an expression is not a call to a known tool"
            if scanner.error and scanner.in_call:
                self.broken = scanner.text
            # Where a quote inside a string was a guess, the string may contain the rest of the object.
            is_doubtful = bool(scanner.error) or "inner_quote" in scanner.repairs
            self.unreadable = is_doubtful and not scanner.refused
            self._not_an_item()
        return stop

    def _text_of(self, scanner: CallScanner, last: str) -> str:
        """Return the text of an expression, of which `last` is the last piece, with the tool's name before it."""
        text = scanner.text
        if not self._name:
            return text
        written = "".join((*self._item, last))
        return written[written.rindex(self._name, 0, len(written) - len(text)) :]


def _may_become_label(window: str) -> bool:
    """Return whether the text may go on to a label such as `Tool call:`."""
    if len(window) >= _NEAR or "\n" in window:
        return False
    *words, last = (word.rstrip("*`") for word in re.split(r"[\s_-]+", window.lower()))
    begins = any(word.startswith(last) for word in _LABEL_WORDS)
    return begins and _LABEL_WORDS.issuperset(words)
