"""Suites as tasks of Inspect, which runs them, keeps their logs and shows these in its viewer."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from inspect_ai import Task
from inspect_ai import eval as run_tasks
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import (
    Model,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import ValidationError

from toolwire.errors import ConfigurationError
from toolwire.evaluation.asked_model import AskSettings, EvaluationLimits, ModelChoice, choice_record
from toolwire.evaluation.bfcl_services import BfclServices
from toolwire.evaluation.inspect_conversations import have_conversation
from toolwire.evaluation.inspect_model import ANSWER, PROVIDER
from toolwire.evaluation.inspect_values import answer_of, chat_message, tool_info
from toolwire.evaluation.model_answer import AnswerStore, ModelAnswer
from toolwire.evaluation.readings import READINGS, Reading
from toolwire.evaluation.suite import BrokenRow, Suite, SuiteQuestion, validation_message
from toolwire.evaluation.verdicts import question_from_json, question_to_json, verdicts
from toolwire.models.backends import text_of

QUESTION: Final = "toolwire_question"
"""The member of a sample's metadata that contains the question."""
EVALUATION: Final = "toolwire"
"""The member of a task's metadata that contains the model, the suite and the settings."""
AnswerObserver = Callable[[ModelAnswer], None]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question and the answer of a model to it.

    Attributes:
        choice: the model, and the way in which it was asked.
        question: the question.
        answer: the answer.
        stored_right: the verdicts of the log by their readings; those that are missing had no complete answer.
        suite: the name of the suite.
        settings: the settings of the answer.
        broken: the rows of the suite that are not questions.
    """

    choice: ModelChoice
    question: SuiteQuestion
    answer: ModelAnswer
    stored_right: dict[str, bool]
    suite: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    broken: tuple[BrokenRow, ...] = ()


@solver
def ask_once(observe: AnswerObserver | None = None) -> Solver:
    """Ask a model the question of a sample once, and run none of its calls; or have the conversation of the sample."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        question = question_from_json(state.metadata[QUESTION])
        if (conversation := question.conversation) is not None:
            state.messages = []
            state.output, answer = await have_conversation(conversation, BfclServices(conversation), state.messages)
            # The answer of the log is the whole conversation, of which the output is only the end.
            state.output.metadata = {**(state.output.metadata or {}), ANSWER: answer.to_json()}
            if observe is not None:
                observe(answer)
            return state
        state.output = await get_model().generate(state.messages, tools=[tool_info(tool) for tool in question.tools])
        state.messages.append(state.output.message)
        if observe is not None:
            observe(answer_of(state.output))
        return state

    return solve


@scorer(metrics={"*": [accuracy(), stderr()]})
def right_calls(readings: Sequence[Reading] = READINGS) -> Scorer:
    """Score the calls of an answer, once for each reading; an answer that is not complete has no score."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = answer_of(state.output)
        if answer.outcome != "answered":
            return Score.unscored(reason=answer.outcome, explanation=answer.detail)
        judged = verdicts(question_from_json(state.metadata[QUESTION]), answer, readings)
        faults = [f"{verdict.reading}: {verdict.fault.message}" for verdict in judged if verdict.fault is not None]
        return Score(
            value={verdict.reading: float(verdict.right) for verdict in judged},
            answer=json.dumps(judged[0].calls, ensure_ascii=False),
            explanation="\n".join(faults) or "right",
        )

    return score


def call_task(
    suite: Suite,
    settings: dict[str, Any],
    observe: AnswerObserver | None = None,
    close: Callable[[], Awaitable[None]] | None = None,
) -> Task:
    """Return a suite as a task.

    Args:
        suite: the questions.
        settings: the model and the settings, for the log.
        observe: called with each answer; None for nothing.
        close: called after the last question, in the event loop of the evaluation; None for nothing.
    """
    remaining = len(suite.questions)

    async def count_question(state: TaskState) -> None:
        nonlocal remaining
        remaining -= 1
        if not remaining and close is not None:
            await close()

    samples = [
        Sample(
            input=[chat_message(message.role, text_of(message)) for message in question.messages],
            target=json.dumps(asdict(question.expected), ensure_ascii=False),
            id=question.id,
            metadata={QUESTION: question_to_json(question)},
        )
        for question in suite.questions
    ]
    return Task(
        dataset=MemoryDataset(samples, name=suite.name),
        solver=ask_once(observe),
        scorer=right_calls(),
        name=f"toolwire_{suite.name}",
        metadata={EVALUATION: settings},
        fail_on_error=True,
        cleanup=count_question,
    )


def run_evaluation(
    suite: Suite,
    choices: Sequence[ModelChoice],
    settings: AskSettings,
    *,
    log_folder: Path,
    store: AnswerStore,
    limits: EvaluationLimits,
    observe: AnswerObserver | None = None,
) -> list[Path]:
    """Ask all models, and return the logs.

    Args:
        suite: the questions.
        choices: the models, each in one format.
        settings: settings of all answers.
        log_folder: the directory of Inspect's logs.
        store: the answers that are known already.
        limits: limits of all models together.
        observe: called with each answer.

    Raises:
        ConfigurationError: a model cannot be asked in this way.
        KeyboardInterrupt: the evaluation was interrupted; the answers so far are stored.
    """
    logs: list[Path] = []
    # One model after the other: two models on this machine would share its processors and both time out.
    for choice in choices:
        model = _model(choice, settings, store, limits)
        record = {
            "suite": suite.name,
            "broken": [asdict(row) for row in suite.broken],
            "choice": choice_record(choice),
            "settings": asdict(settings),
        }
        task_logs = run_tasks(
            # Inspect leaves connections of a model open, and ends their event loop.
            call_task(suite, record, observe, model.api.aclose),
            model=model,
            log_dir=str(log_folder),
            log_format="json",
            display="none",  # its display would write to standard output, which belongs to the report
            score_display=False,
            max_tasks=1,
            max_samples=model.api.max_connections(),
            ctl_server=False,
            acp_server=False,
        )
        logs.append(_finished(task_logs))
    return logs


def _model(choice: ModelChoice, settings: AskSettings, store: AnswerStore, limits: EvaluationLimits) -> Model:
    arguments: dict[str, Any] = {
        name: value for name, value in choice_record(choice).items() if value and name != "model"
    }
    return get_model(
        f"{PROVIDER}/{choice.model}", memoize=False, settings=settings, store=store, limits=limits, **arguments
    )


def _finished(task_logs: Sequence[EvalLog]) -> Path:
    """Return the path of the finished log of a task.

    Raises:
        ConfigurationError: the evaluation failed.
        KeyboardInterrupt: it was interrupted.
    """
    # Inspect takes an interruption for itself, and returns no log of a task that did not end.
    if not task_logs or task_logs[0].status == "cancelled":
        raise KeyboardInterrupt
    log = task_logs[0]
    if log.status != "success":
        raise ConfigurationError(
            _words_of(log.error.message) if log.error is not None else f"the evaluation is {log.status}"
        )
    return Path(log.location)


def _words_of(message: str) -> str:
    """Return the words of an exception, of which a log of Inspect has the repr: `ConfigurationError('no key')`."""
    match = re.fullmatch(r"\w+\((.*)\)", message, re.DOTALL)
    try:
        words = ast.literal_eval(match[1]) if match else message
    except (ValueError, SyntaxError):
        return message
    return words if isinstance(words, str) else message


def read_logs(paths: Iterable[Path]) -> list[AskedQuestion]:
    """Return the questions and answers in logs.

    Raises:
        ConfigurationError: a file is not a log of `toolwire eval`.
    """
    answered: list[AskedQuestion] = []
    for path in paths:
        try:
            log = read_eval_log(str(path))
            record = (log.eval.metadata or {})[EVALUATION]
            choice, settings = ModelChoice(**record["choice"]), dict(record["settings"])
            broken = tuple(BrokenRow(str(row["place"]), str(row["reason"])) for row in record.get("broken", ()))
            for sample in log.samples or ():
                if sample.error is not None:  # the answer was interrupted
                    continue
                question = question_from_json((sample.metadata or {})[QUESTION])
                stored = _stored(sample.scores)
                answer = answer_of(sample.output)
                answered.append(AskedQuestion(choice, question, answer, stored, str(record["suite"]), settings, broken))
        except (OSError, KeyError, ValueError, TypeError, IndexError) as error:
            detail = (
                validation_message(error) if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
            )
            raise ConfigurationError(
                f"{path} is not a log of toolwire eval ({' '.join(detail.split())[:200]}); "
                "name the directory of an evaluation, or a log in its directory logs"
            ) from error
    return answered


def _stored(scores: dict[str, Score] | None) -> dict[str, bool]:
    value = next(iter((scores or {}).values()), None)
    if value is None or not isinstance(value.value, dict):
        return {}
    return {reading: bool(right) for reading, right in value.value.items()}
