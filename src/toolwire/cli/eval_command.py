"""`toolwire eval`: ask models the questions of a suite, and report how many of their calls are right."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.text import Text

from toolwire._surface import needs_extra
from toolwire.cli.agent_options import check_local_model
from toolwire.cli.console import CliError, console, emit, print_rows, say, styled
from toolwire.cli.format_option import read_formats
from toolwire.cli.option_groups import takes_options
from toolwire.errors import ConfigurationError, StateError, UnknownFormat
from toolwire.providers.api_registry import get_api
from toolwire.text.counted import counted
from toolwire.text.suggest import closest, did_you_mean
from toolwire.wire.format_registry import AUTO, get_format
from toolwire.wire.prompt_styles import DEFAULT_STYLE, PROMPT_STYLES

with needs_extra("An evaluation", "eval"):
    from toolwire.evaluation.asked_model import (
        MAX_TOKENS,
        TIMEOUT,
        AskSettings,
        EvaluationLimits,
        ModelChoice,
        check_endpoints,
    )
    from toolwire.evaluation.model_answer import AnswerStore, ModelAnswer
    from toolwire.evaluation.prompt_files import open_style
    from toolwire.evaluation.readings import READINGS, Reading
    from toolwire.evaluation.suite_names import open_suite

if TYPE_CHECKING:
    from toolwire.evaluation.inspect_tasks import AskedQuestion
    from toolwire.evaluation.report import Report

EXAMPLES = """Examples:

toolwire eval bfcl --model 1.5b --format hermes --format forge_xml --limit 40

toolwire eval questions.jsonl --model openai:gpt-5-mini --max-money 0.50

toolwire eval bfcl:live --model Qwen/Qwen3-8B --base-url http://localhost:8000/v1 --constrain none --constrain auto

toolwire eval --rescore evaluation

A suite is bfcl (`pip install --no-deps bfcl-eval`), bfcl:CATEGORY,CATEGORY, recorded (your recorded runs), or a file of
JSON lines. The report is written into --out. The same command continues an evaluation that was interrupted, because
answers are stored there.

Exit status: 0 there is a report, 1 no question was answered, 2 wrong usage or bad input."""

NATIVE = "native"
_CONSTRAINTS = ("none", "auto", "required")
_FOLDER = Path("evaluation")
_LOGS = "logs"
_ANSWERS = "answers.db"
_OF_RESCORING = frozenset(("rescore", "reading", "format", "out", "json"))
"""Options that have a meaning with --rescore; a format may be a file that describes the one of the answers."""
_NEED_EXTRA = ("toolwire.evaluation.inspect_tasks", "toolwire.evaluation.report_page")


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The options of `eval`; see `takes_options`."""

    model: Annotated[
        list[str] | None,
        typer.Option(
            help="0.5b, 1.5b, the path of a GGUF file, hf:REPO/FILE, or a provider and its model, such as "
            "openai:gpt-5-mini; with --api or --base-url, its name there. May be repeated."
        ),
    ] = None
    format: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            "-f",
            callback=read_formats,
            help="The wire format to ask for, or a JSON file that describes one, or native for the fields of an API; "
            "by default, the best known one of the model. May be repeated.",
        ),
    ] = None
    constrain: Annotated[
        list[str] | None,
        typer.Option(help="none, auto or required: whether calls are written under a grammar. May be repeated."),
    ] = None
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help=f"The style of the prompt of a model of text: {', '.join(PROMPT_STYLES)}, or a TOML file with "
            "your own sentences. May be repeated."
        ),
    ] = None
    reading: Annotated[
        list[str] | None,
        typer.Option(
            help="strict, whole_message, embedded or naive: how texts are read; by default, in all these ways. May be "
            "repeated."
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of questions; they are drawn.")] = None
    seed: Annotated[int, typer.Option(help="Number that the draw of the questions depends on.")] = 0
    out: Annotated[
        Path | None,
        typer.Option(
            help="The directory for the report, the logs and the answers; by default evaluation, or the directory that "
            "--rescore names."
        ),
    ] = None
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds that a model has for an answer.")] = TIMEOUT
    max_seconds: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which no further question is asked.")
    ] = None
    max_money: Annotated[
        float | None, typer.Option(min=0, help="US dollars after which no further question is asked.")
    ] = None
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum length of an answer, in tokens.")] = MAX_TOKENS
    temperature: Annotated[float, typer.Option(min=0, help="The sampling temperature.")] = 0.0
    system: Annotated[Path | None, typer.Option(help="A file with text for the beginning of the system prompt.")] = None
    api: Annotated[str, typer.Option(help="The provider API of the models; their key is in the environment.")] = ""
    base_url: Annotated[
        str, typer.Option(help="The server's base URL; its API is openai_chat unless --api names another.")
    ] = ""
    key_env: Annotated[str, typer.Option(help="The environment variable that contains the key for --base-url.")] = ""
    rescore: Annotated[
        Path | None,
        typer.Option(help="Judge the answers in a log, or in the directory of an evaluation, anew; ask no model."),
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False


@takes_options(EvalOptions)
def eval(
    options: EvalOptions,
    suite: Annotated[
        str | None, typer.Argument(help="bfcl, bfcl:CATEGORIES, recorded, or a file of questions.")
    ] = None,
) -> None:
    """Ask models the questions of a suite, and report how many of their calls are right."""
    readings = _readings(options.reading)
    out = options.out or _FOLDER
    if options.rescore is not None:
        if suite is not None:
            raise CliError("--rescore judges answers that are there: leave out the suite")
        if asking := [name for name in _set_options(options) if name not in _OF_RESCORING]:
            raise CliError(f"--rescore asks no model: leave out --{asking[0].replace('_', '-')}")
        report = _rescored(options.rescore, readings)
        if options.out is None and (options.rescore / _LOGS).is_dir():
            out = options.rescore  # not into another evaluation, whose report would be lost
    else:
        if suite is None:
            raise CliError("name a suite, such as bfcl, or a file of questions; or give --rescore")
        report = _evaluated(suite, options, readings, out)
    files = _write(report, out)
    if options.json:
        from toolwire.evaluation.report import report_json

        emit(report_json(report))
        return
    _show(report)
    say(f"The report: {files[0]}")


def _set_options(options: EvalOptions) -> list[str]:
    """Return the names of the options that have another value than their default."""
    return [option.name for option in fields(options) if getattr(options, option.name) != option.default]


def _readings(names: Sequence[str] | None) -> Sequence[Reading]:
    for name in names or ():
        if name not in READINGS:
            raise CliError(
                f"--reading is {', '.join(READINGS)}, not {name!r:.60}{did_you_mean(closest(name, READINGS))}"
            )
    return cast("Sequence[Reading]", tuple(dict.fromkeys(names or READINGS)))


def _choices(options: EvalOptions) -> list[ModelChoice]:
    """Return the models and the ways in which they are asked: all combinations of the options.

    Raises:
        CliError, UnknownFormat, ConfigurationError: the options name none.
    """
    if not options.model:
        raise CliError("name a model: --model 1.5b, or --model openai:gpt-5-mini")
    for name in options.constrain or ():
        if name not in _CONSTRAINTS:
            suggestion = did_you_mean(closest(name, _CONSTRAINTS))
            raise CliError(f"--constrain is {', '.join(_CONSTRAINTS)}, not {name!r:.60}{suggestion}")
    formats = []
    for name in options.format or ("",):
        if name.lower() in (AUTO, "plain"):
            raise CliError(f"{name} cannot be asked for; `toolwire formats` lists formats that a model can write")
        formats.append("" if name in ("", NATIVE) else get_format(name).name)
    for name in options.prompt or ():
        open_style(name)
    if options.api:
        get_api(options.api)
    constraints = ["" if name == "none" else name for name in options.constrain or ("none",)]
    choices = [
        ModelChoice(model, format, cast(Any, constrain), "", options.api, options.base_url, options.key_env)
        for model, format, constrain in product(
            dict.fromkeys(options.model), dict.fromkeys(formats), dict.fromkeys(constraints)
        )
    ]
    styles = dict.fromkeys(options.prompt or (DEFAULT_STYLE,))
    # Where calls have fields of an API, the prompt is that of the server.
    with_prompt = [choice for choice in choices if choice.format or choice.is_local]
    if options.prompt and not with_prompt:
        raise CliError("--prompt is for models of text: name a --format, because native calls need no prompt")
    return [
        replace(choice, prompt=style) for choice in choices for style in (styles if choice in with_prompt else ("",))
    ]


def _evaluated(name: str, options: EvalOptions, readings: Sequence[Reading], out: Path) -> Report:
    choices = _choices(options)
    sample = open_suite(name).sample(options.limit, options.seed)
    for row in sample.broken:
        say(f"toolwire: {row.place}: {row.reason}; the other rows are asked", "yellow")
    settings = AskSettings(
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        seed=options.seed,
        timeout=options.timeout,
        system=_system_text(options.system),
    )
    _require_extra()
    from toolwire.evaluation.inspect_tasks import read_logs, run_evaluation

    asyncio.run(check_endpoints(choices, settings, EvaluationLimits(None, options.max_money)))
    _prepare(choices)
    limits = EvaluationLimits(options.max_seconds, options.max_money)
    try:
        with _answers_in(out) as store, _progress(len(choices) * len(sample.questions)) as advance:
            logs = run_evaluation(
                sample,
                choices,
                settings,
                log_folder=out / _LOGS,
                store=store,
                limits=limits,
                observe=advance,
            )
    except KeyboardInterrupt:
        say("toolwire: the evaluation was interrupted; the same command continues it", "yellow")
        raise
    facts = {**asdict(settings), "limit": options.limit}
    return _report(read_logs(logs), readings, suite=sample.name, broken=sample.broken, settings=facts)


@contextmanager
def _answers_in(folder: Path) -> Iterator[AnswerStore]:
    """Yield the store of answers in a directory; a new directory is deleted if a refusal leaves it without answers."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    store = AnswerStore(folder / _ANSWERS)
    try:
        with closing(store):
            try:
                yield store
            finally:
                is_new = is_new and store.is_empty
    except ConfigurationError:
        if is_new:
            shutil.rmtree(folder)
        raise


def _require_extra() -> None:
    """Import what the extra installs: after the options are checked, before weights are fetched and models asked.

    Raises:
        MissingExtra: the extra is not installed.
    """
    with needs_extra("An evaluation", "eval"):
        for module in _NEED_EXTRA:
            import_module(module)


def _report(asked: list[AskedQuestion], readings: Sequence[Reading], **facts: Any) -> Report:
    from toolwire.evaluation.report import make_report

    try:
        return make_report(asked, readings, **facts)
    except ConfigurationError as error:
        raise CliError(str(error), status=1) from error


def _system_text(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: {error}") from error


def _prepare(choices: Sequence[ModelChoice]) -> None:
    """Check that models on this machine exist, and fetch their weights.

    Raises:
        CliError: there is no such model.
    """
    from toolwire.agent.model_pool import local_name
    from toolwire.models.local.model_files import locate

    for name in dict.fromkeys(local_name(choice.profile) for choice in choices if choice.is_local):
        check_local_model(name)
        locate(name, say=say)


def _rescored(path: Path, readings: Sequence[Reading]) -> Report:
    if not path.exists():
        raise CliError(f"{path}: there is no such file or directory")
    folder = path / _LOGS if (path / _LOGS).is_dir() else path
    logs = sorted(folder.glob("*.json"), key=_began) if folder.is_dir() else [folder]
    if not logs:
        raise CliError(
            f"{folder} has no log of an evaluation; name the directory that an evaluation got as --out, or a log in "
            f"its directory {_LOGS}"
        )
    _require_extra()
    from toolwire.evaluation.inspect_tasks import read_logs

    logged = read_logs(logs)
    latest = _latest(logged)
    suites = list(dict.fromkeys(entry.suite for entry in latest))
    # Of the last log of each suite: rows that are broken in an earlier one may have been mended.
    broken_rows = {entry.suite: entry.broken for entry in logged}
    broken = [row for suite in suites for row in broken_rows[suite]]
    settings = {**_common_settings(latest), "rescored": str(path)}
    try:
        # The names of the suites: the coach replaces what an earlier report on the same suite said.
        return _report(
            _with_unique_ids(latest, suites), readings, suite=", ".join(suites), broken=broken, settings=settings
        )
    except UnknownFormat as error:
        raise CliError(
            f"there is no wire format {error.name!r:.60}; if a file describes it, add --format FILE"
        ) from error


def _began(log: Path) -> tuple[str, int]:
    """Return when a log was begun, as its name says it in seconds, and when it was written."""
    return log.name.partition("_")[0], log.stat().st_mtime_ns


def _latest(asked: Sequence[AskedQuestion]) -> list[AskedQuestion]:
    """Return the last answer to each question of each model; an evaluation that was continued has several logs.

    Answers to another question of this id, or with other settings than the last ones, belong to another evaluation.
    """
    newest: dict[tuple[ModelChoice, str, str], AskedQuestion] = {}
    settings: dict[tuple[ModelChoice, str], Mapping[str, Any]] = {}
    for entry in asked:
        key = (entry.choice, entry.suite, entry.question.id)
        earlier = newest.get(key)
        is_other = earlier is None or (earlier.question, earlier.settings) != (entry.question, entry.settings)
        if is_other or entry.answer.outcome == "answered":
            newest[key] = entry
        settings[entry.choice, entry.suite] = entry.settings
    return [entry for entry in newest.values() if entry.settings == settings[entry.choice, entry.suite]]


def _with_unique_ids(asked: list[AskedQuestion], suites: Sequence[str]) -> list[AskedQuestion]:
    """Return the questions with the names of their suites in their ids, if there are several suites."""
    if len(suites) < 2:
        return asked
    return [
        replace(
            entry,
            question=replace(
                entry.question,
                id=f"{entry.suite}: {entry.question.id}",
                group=f"{entry.suite}: {entry.question.group}",
            ),
        )
        for entry in asked
    ]


def _common_settings(asked: Sequence[AskedQuestion]) -> dict[str, Any]:
    """Return the settings that all answers share."""
    first = asked[0].settings if asked else {}
    return {
        name: value
        for name, value in first.items()
        if all(name in entry.settings and entry.settings[name] == value for entry in asked)
    }


@contextmanager
def _progress(total: int) -> Iterator[Callable[[ModelAnswer], None]]:
    """Show a progress bar on standard error while the block runs, if that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    screen = console(stderr=True)
    columns = (TextColumn("answers"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("answers", total=total)
        yield lambda answer: progress.advance(task)


def _write(report: Report, folder: Path) -> list[Path]:
    """Write the report in its three forms.

    Raises:
        StateError: a file cannot be written.
    """
    import json

    from toolwire.evaluation.report import report_json
    from toolwire.evaluation.report_markdown import report_markdown
    from toolwire.evaluation.report_page import report_html

    texts = {
        "report.html": report_html(report),
        "report.json": json.dumps(report_json(report), ensure_ascii=True, indent=1, default=str) + "\n",
        "report.md": report_markdown(report),
    }
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
            files.append(folder / name)
    except OSError as error:
        raise StateError(f"{folder}: {error.strerror or error}") from error
    return files


def _show(report: Report) -> None:
    from toolwire.evaluation.report_page import interval, percent

    rows = [
        (
            styled(figures.column.name, "bold"),
            Text(percent(figures.right.value)),
            Text(interval(figures.right)),
            Text(percent(figures.well_formed.value)),
            Text(percent(figures.irrelevance.value)),
            Text(str(figures.outcomes.get("timeout", 0))),
        )
        for figures in report.columns
    ]
    titles = ("column", "right", "of the questions that expect calls", "well-formed", "irrelevance", "timeouts")
    print_rows(titles, rows, fold=titles, right=titles[1:])
    if report.changed:
        console().print(styled(f"{counted(len(report.changed), 'verdict')} differ from those in the log."))
