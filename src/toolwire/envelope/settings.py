"""Settings of `te`: defaults, a TOML file and the environment say how much each agent is shown.

    [budgets]                 # characters of one answer, by agent
    my-agent = 60000
    default = 12000           # for agents that no table knows

    [grep]                    # likewise [find] and [cat]
    preview = 10              # lines that are shown
    characters = 20000
    milliseconds = 5000

    [run]
    seconds = 30

    [handles]
    megabytes = 256
    days = 7

    [telemetry]
    enabled = true
    output_text = false

The file is `te.toml` in the user's configuration directory, or the one that TOOLWIRE_TE_CONFIG names. Nothing is read
from the working directory, because anybody may have written it. The environment overrides the file:

- TE_AGENT_ID or LLMC_TE_AGENT_ID, TE_SESSION_ID or LLMC_TE_SESSION_ID: the reader, and its session;
- TE_BUDGET: maximum length of one answer, in characters; TE_TIMEOUT: time limit of a command, in seconds;
- TE_ROOT: the directory that `grep`, `cat`, `find` and `repo read` must stay in;
- TE_TELEMETRY: `off` records nothing, `text` the output as well;
- TE_RG: the ripgrep to use, or `none`;
- TOOLWIRE_STATE: the directory for handles and the usage log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolwire.errors import ConfigurationError

HUMAN: Final = "human-cli"
UNKNOWN: Final = "unknown"
BUDGETS: Final[Mapping[str, int]] = {
    "gemini-shell": 900_000,
    "claude-dc": 180_000,
    "qwen-local": 28_000,
    HUMAN: 50_000,
    UNKNOWN: 16_000,
}
"""Maximum length of one answer for each agent, in characters."""
MIN_BUDGET: Final = 1_000
"""Minimum budget, in characters: a header and breadcrumbs fit."""
OFF: Final = frozenset({"0", "off", "no", "false"})
AGENT_NAMES: Final = ("TE_AGENT_ID", "LLMC_TE_AGENT_ID")
SESSION_NAMES: Final = ("TE_SESSION_ID", "LLMC_TE_SESSION_ID")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one command.

    Attributes:
        preview: maximum number of lines.
        characters: maximum length of the answer; the agent's budget may be smaller.
        milliseconds: time limit; the command then shows what it has.
    """

    preview: int
    characters: int
    milliseconds: int = 5_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings for one reader.

    Attributes:
        agent: the reader.
        session: the reader's session, or "".
        budget: maximum length of one answer, in characters.
        seconds: time limit of a command that `te` runs.
        root: the directory that files are read in; "" for the working directory.
        state: the directory for handles and the usage log; "" for the user's.
        telemetry: record calls.
        output_text: record the beginning of their output too.
        keep_bytes: maximum size of all stored results, in bytes.
        keep_days: days that a result is stored.
    """

    agent: str = UNKNOWN
    session: str = ""
    budget: int = BUDGETS[UNKNOWN]
    grep: Limits = Limits(10, 20_000)
    find: Limits = Limits(50, 20_000)
    cat: Limits = Limits(50, 30_000)
    seconds: float = 30.0
    root: str = ""
    state: str = ""
    telemetry: bool = True
    output_text: bool = False
    keep_bytes: int = 256 << 20
    keep_days: float = 7.0
    budgets: Mapping[str, int] = field(default_factory=lambda: BUDGETS)

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None, *, human: bool = False) -> Settings:
        """Read the configuration file and the environment.

        Args:
            environ: the environment; the process's own if None.
            human: assume a person as the reader if none is named.

        Raises:
            ConfigurationError: a setting cannot be used.
        """
        environ = os.environ if environ is None else environ
        settings = cls()
        named = environ.get("TOOLWIRE_TE_CONFIG", "")
        path = named or os.path.join(_config_folder(), "te.toml")
        if named or os.path.exists(path):
            settings = _configured(settings, path)
        switch = environ.get("TE_TELEMETRY", "").strip().lower()
        return replace(
            settings,
            session=_first(environ, SESSION_NAMES),
            seconds=_number(environ, "TE_TIMEOUT", settings.seconds),
            root=environ.get("TE_ROOT", ""),
            state=environ.get("TOOLWIRE_STATE", ""),
            telemetry=settings.telemetry if not switch else switch not in OFF,
            output_text=settings.output_text or switch == "text",
        ).for_agent(_first(environ, AGENT_NAMES) or (HUMAN if human else UNKNOWN), environ)

    def for_agent(self, agent: str, environ: Mapping[str, str] | None = None) -> Settings:
        """Return the settings for another reader; TE_BUDGET in the environment has precedence over its budget.

        Raises:
            ConfigurationError: the budget is too small for any header.
        """
        budget = self.budgets.get(agent, self.budgets.get("default", self.budgets[UNKNOWN]))
        return replace(self, agent=agent).with_budget(int(_number(environ or {}, "TE_BUDGET", budget)))

    def with_budget(self, budget: int) -> Settings:
        """Return the settings with another budget.

        Raises:
            ConfigurationError: the budget is too small for any header.
        """
        if budget < MIN_BUDGET:
            raise ConfigurationError(f"a budget of {budget} characters is too small; the minimum is {MIN_BUDGET}")
        return replace(self, budget=budget)

    def state_file(self, name: str) -> str:
        """Return the path of a file in the directory for handles and the usage log."""
        from toolwire.runtime.state_dir import state_folder  # takes its time, and a command may need no file

        return os.path.join(os.path.expanduser(self.state) if self.state else state_folder(), name)


def _config_folder() -> str:
    import platformdirs

    return platformdirs.user_config_dir("toolwire")


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def _number(environ: Mapping[str, str], name: str, otherwise: float) -> float:
    text = environ.get(name, "")
    if not text:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise ConfigurationError(f"{name} must be a positive number, not {text!r:.80}")
    return value


# -- the file --------------------------------------------------------------------------------------------------------

_LIMITS = {"preview": int, "characters": int, "milliseconds": int}
_TABLES: Mapping[str, Mapping[str, type]] = {
    "grep": _LIMITS,
    "find": _LIMITS,
    "cat": _LIMITS,
    "run": {"seconds": float},
    "handles": {"megabytes": int, "days": float},
    "telemetry": {"enabled": bool, "output_text": bool},
}


def _configured(settings: Settings, path: str) -> Settings:
    tables = _tables(path)
    changes: dict[str, Any] = {
        name: replace(getattr(settings, name), **tables[name]) for name in ("grep", "find", "cat") if name in tables
    }
    if "budgets" in tables:
        changes["budgets"] = {**settings.budgets, **tables["budgets"]}
    for table, key, name, scale in (
        ("run", "seconds", "seconds", 1),
        ("handles", "megabytes", "keep_bytes", 1 << 20),
        ("handles", "days", "keep_days", 1),
        ("telemetry", "enabled", "telemetry", 0),
        ("telemetry", "output_text", "output_text", 0),
    ):
        if (value := tables.get(table, {}).get(key)) is not None:
            changes[name] = value * scale if scale else value
    return replace(settings, **changes)


def _tables(path: str) -> dict[str, dict[str, Any]]:
    import tomllib

    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    for name, table in tables.items():
        keys = _TABLES.get(name)
        if not isinstance(table, dict) or (keys is None and name != "budgets"):
            raise ConfigurationError(f"{path}: {name} is unknown; the tables are {', '.join(['budgets', *_TABLES])}")
        for key, value in table.items():
            kind = int if keys is None else keys.get(key)
            if kind is None:
                raise ConfigurationError(f"{path}: {name}.{key} is unknown; the keys are {', '.join(keys or ())}")
            if not _fits(value, kind):
                expected = "true or false" if kind is bool else "a positive number"
                raise ConfigurationError(f"{path}: {name}.{key} must be {expected}, not {value!r:.80}")
    return tables


def _fits(value: Any, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    allowed = (int, float) if kind is float else (int,)
    return isinstance(value, allowed) and not isinstance(value, bool) and value > 0
