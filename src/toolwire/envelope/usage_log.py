"""The usage log: a row for each call, with its size and its duration, in SQLite.

If the log fails, nothing else does. Nothing leaves the machine. What looks like a secret is not recorded.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from toolwire.envelope.settings import Settings
from toolwire.errors import capture_errors
from toolwire.runtime.sqlite import Database, storable
from toolwire.text.secret_shapes import redact_shapes

MAX_OUTPUT_TEXT: Final = 8_192
"""Maximum length of the output in a record, in characters."""
MAX_INPUT: Final = 1_000
"""Maximum length of the arguments in a record, in characters."""
MAX_ROWS: Final = 100_000
WAIT: Final = 0.1
"""Seconds to wait for another process that writes; after that the call is not recorded."""
_MARGIN: Final = 4_096
"""Characters after the limit that are examined, so that a secret which the limit would cut is recognized."""


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """One call.

    Attributes:
        cmd: the command or tool.
        mode: `envelope`, `raw`, `pass` for a command that `te` does not know, `tool` for a program's own tool.
        input: the arguments, without secrets.
        output: length of the output, in characters.
        truncated: not all of it was shown.
        latency_ms: duration in milliseconds.
        error: a word for the error, or "".
        output_text: the beginning of the output, without secrets, if it is recorded.
        timestamp: seconds since 1970.
    """

    cmd: str
    mode: str
    input: str = ""
    output: int = 0
    truncated: bool = False
    handle: str = ""
    latency_ms: float = 0.0
    error: str = ""
    output_text: str = ""
    agent: str = ""
    session: str = ""
    timestamp: float = 0.0


_COLUMNS = ", ".join(field.name for field in fields(UsageRecord))
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, cmd TEXT, mode TEXT, input TEXT, output INTEGER, "
    "truncated INTEGER, handle TEXT, latency_ms REAL, error TEXT, output_text TEXT, agent TEXT, session TEXT, "
    "timestamp REAL)",
)


@dataclass(frozen=True, slots=True)
class UsageStats:
    """All calls of one command.

    Attributes:
        cmd: the command or tool.
        calls: number of calls.
        truncated: number of calls with truncated output.
        errors: number of calls with an error.
        output: characters of all outputs.
        median_ms: median duration in milliseconds.
        p95_ms: 95th percentile of the duration, in milliseconds.
    """

    cmd: str
    calls: int
    truncated: int
    errors: int
    output: int
    median_ms: float
    p95_ms: float


class UsageLog:
    """Record calls in a file.

    Args:
        path: the SQLite file.
        enabled: False records nothing.
        output_text: record the beginning of the output too.
    """

    def __init__(self, path: str | os.PathLike[str], *, enabled: bool = True, output_text: bool = False) -> None:
        self._database = Database(os.fspath(path), _SCHEMA, 1, wait=WAIT)
        self.enabled = enabled
        self._output_text = output_text

    @classmethod
    def of(cls, settings: Settings) -> UsageLog:
        """Return the usage log that the settings name."""
        path = settings.state_file("telemetry.db")
        return cls(path, enabled=settings.telemetry, output_text=settings.output_text)

    def record(self, record: UsageRecord) -> None:
        """Record a call, if enabled."""
        if not self.enabled:
            return
        with capture_errors():  # a failure here must not reach the caller
            values: tuple[str | float, ...] = (
                *(record.cmd, record.mode, redacted(record.input, MAX_INPUT), record.output, record.truncated),
                *(record.handle, record.latency_ms, record.error),
                redacted(record.output_text, MAX_OUTPUT_TEXT) if self._output_text else "",
                *(record.agent, record.session, record.timestamp or time.time()),
            )
            values = tuple(storable(value) if isinstance(value, str) else value for value in values)
            marks = ", ".join("?" * len(values))
            with self._database.writing() as connection:
                added = connection.execute(f"INSERT INTO calls ({_COLUMNS}) VALUES ({marks})", values).lastrowid or 0
                if added % 1_000 == 0:
                    connection.execute("DELETE FROM calls WHERE id <= ?", (added - MAX_ROWS,))

    def stats(self) -> list[UsageStats]:
        """Return statistics for each command, the most frequent first.

        Raises:
            ToolError: the file cannot be read.
        """
        calls: dict[str, list[tuple[Any, ...]]] = {}
        for cmd, *row in self._database.read("SELECT cmd, truncated, error != '', output, latency_ms FROM calls"):
            calls.setdefault(cmd, []).append(tuple(row))
        summaries = [_summed(cmd, rows) for cmd, rows in calls.items()]
        return sorted(summaries, key=lambda summary: (-summary.calls, summary.cmd))

    def records(self, last: int = 100) -> list[UsageRecord]:
        """Return the last calls, the newest first.

        Raises:
            ToolError: the file cannot be read.
        """
        rows = self._database.read(f"SELECT {_COLUMNS} FROM calls ORDER BY id DESC LIMIT ?", (last,))
        records = [UsageRecord(*row) for row in rows]
        return [replace(record, truncated=bool(record.truncated)) for record in records]

    def close(self) -> None:
        """Close the file until it is needed again."""
        self._database.close()


def _summed(cmd: str, rows: list[tuple[Any, ...]]) -> UsageStats:
    truncated, errors, output, latency = zip(*rows, strict=True)
    times = sorted(latency)
    return UsageStats(
        cmd, len(rows), sum(truncated), sum(errors), sum(output), _quantile(times, 0.5), _quantile(times, 0.95)
    )


def _quantile(sorted_values: list[float], share: float) -> float:
    return float(sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))])


# -- secrets ---------------------------------------------------------------------------------------------------------

GONE: Final = "[redacted]"
_KEY = r"(?:(?:api|access|private)[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd|credential|authorization)"
_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
    r"|(?<=://)[^\s/:@]{1,100}:[^\s/@]{1,200}(?=@)"  # in a URL
)
_NAMED = re.compile(
    rf"""(?P<name>{_KEY}[\w-]{{0,40}}["']?\s{{0,3}}[:=]\s{{0,3}}["']?(?:(?:bearer|basic|token)\s{{1,3}})?)"""
    r"""(?P<value>[^\s"',;&}]{4,})|(?P<scheme>\b(?:bearer|basic)\s{1,3})(?P<after>[\w.~+/=-]{8,})"""
    rf"""|(?P<option>(?<![\w-])--?[\w-]{{0,40}}{_KEY}[\w-]{{0,20}}\s{{1,3}})(?P<given>[^\s"'-][^\s"']{{3,}})""",
    re.IGNORECASE,
)


_GLUED: Final = frozenset({"mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "sshpass"})
"""Programs whose option `-p` includes a password in the same word."""
_ASKING: Final = _GLUED | {"docker", "podman", "helm"}
"""Programs whose option `-p` is followed by a password."""
_USERS: Final = frozenset({"-u", "-U", "--user", "--proxy-user"})
_OPTION = re.compile(rf"--?[\w-]{{0,40}}{_KEY}[\w-]{{0,20}}", re.IGNORECASE)
_NAME = re.compile(rf"{_KEY}(?:s|[_-]?value)?$", re.IGNORECASE)
_PORT = re.compile(r"[\d.:-]+(?:/\w+)?$")
_LOGIN = re.compile(r"(?:-u)?[^\s:]{1,100}:(?=.)", re.DOTALL)
_ADDRESS = re.compile(r"[\w+.-]{1,40}://[^\s/:@]{0,100}:(?=.*@)", re.DOTALL)
_VALUE = re.compile(
    rf"[\w-]{{0,40}}{_KEY}[\w-]{{0,40}}\s{{0,3}}[:=]\s{{0,3}}(?:(?:bearer|basic|token)\s{{1,3}})?(?=\S)",
    re.IGNORECASE,
)


def redacted(text: str, most: int) -> str:
    """Return text without secrets, truncated."""
    looked_at = text[: most + _MARGIN]
    looked_at = redact_shapes(_SECRETS.sub(GONE, looked_at), GONE)
    looked_at = _NAMED.sub(lambda match: _prefix(match.groupdict().items()) + GONE, looked_at)
    return looked_at[:most]


def redacted_command(argv: Sequence[str], most: int) -> str:
    """Return a command quoted as for a shell, without secrets, truncated; each word is redacted before it is quoted."""
    words = (word if word == GONE else shlex.quote(word) for word in _words(argv[: most + 1], most))
    return redacted(" ".join(words), most)


def redacted_arguments(arguments: Mapping[str, Any], most: int) -> str:
    """Return a call's arguments as JSON, without secrets, truncated."""
    return redacted(json.dumps(_cleaned(arguments, most), ensure_ascii=False, default=str), most)


def _words(argv: Sequence[str], most: int) -> Iterator[str]:
    """Yield the words of a command without secrets; a word determines what the next one is."""
    asks = before = ""
    for word in argv:
        login = _LOGIN.match(word) if before in _USERS or word.startswith("-u") else None
        if _OPTION.fullmatch(before) or (before == "-p" and (asks == "sshpass" or (asks and not _PORT.match(word)))):
            yield GONE
        elif (secret := login or _VALUE.match(word) or _ADDRESS.match(word)) is not None:
            yield secret[0] + GONE + (word[word.rindex("@") :] if secret.re is _ADDRESS else "")
        elif asks in _GLUED and word.startswith("-p") and word != "-p":
            yield f"-p{GONE}"
        else:
            yield redacted(word, most)
        if (program := os.path.basename(word)) in _ASKING:
            asks = program
        before = word


def _cleaned(value: Any, most: int) -> Any:
    if isinstance(value, Mapping):
        return {
            key: GONE if isinstance(key, str) and _is_secret(key, part) else _cleaned(part, most)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        if all(isinstance(part, str) for part in value):
            return list(_words(value[: most + 1], most))
        return [_cleaned(part, most) for part in value]
    return redacted(value, most) if isinstance(value, str) else value


def _is_secret(key: str, value: Any) -> bool:
    counted = key.endswith("s") and isinstance(value, int | float)  # max_tokens
    return bool(_NAME.search(key)) and bool(value) and not isinstance(value, bool) and not counted


def _prefix(groups: Iterable[tuple[str, str | None]]) -> str:
    return next((value for name, value in groups if value and name in ("name", "scheme", "option")), "")
