"""Forms in which models wrote calls when a prompt asked for them: counts of formats and dialects, by model.

The counts are measured: `benchmarks/asked.py --profiles` reads published answers and rewrites them. Only answers with
calls count, so they say how a model writes a call, not whether it chooses the right one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from toolwire.wire.dialects import DIALECTS


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """Measured answers of one model.

    Attributes:
        model: its name in the published results.
        answers: number of answers with calls.
        forms: by format or dialect, the number of answers whose calls were read in it.
    """

    model: str
    answers: int
    forms: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class FormShare:
    """The share of a model's answers that had one form.

    Attributes:
        form: a wire format, or a dialect of calls to known tools.
        dialect: whether it is a dialect.
        share: from 0 to 1; shares add up to less than 1 if some answers were not read.
    """

    form: str
    dialect: bool
    share: float


MEASURED = (
    # begin measured
    ModelAnswers("NousResearch_Hermes-2-Pro-Llama-3-70B", 251, (("hermes", 250),)),
    ModelAnswers("NousResearch_Hermes-2-Pro-Llama-3-8B", 263, (("hermes", 263),)),
    ModelAnswers("NousResearch_Hermes-2-Pro-Mistral-7B", 268, (("hermes", 268),)),
    ModelAnswers("NousResearch_Hermes-2-Theta-Llama-3-8B", 245, (("hermes", 245),)),
    ModelAnswers("Salesforce_xLAM-1b-fc-r", 263, (("bare_json", 263),)),
    ModelAnswers("Salesforce_xLAM-7b-fc-r", 257, (("bare_json", 257),)),
    ModelAnswers("claude-3-haiku-20240307", 278, (("pythonic", 275), ("call_list", 3))),
    ModelAnswers("claude-3-opus-20240229", 286, (("pythonic", 286),)),
    ModelAnswers("claude-3-sonnet-20240229", 301, (("pythonic", 298), ("call_list", 3))),
    ModelAnswers(
        "claude-instant-1.2", 249, (("pythonic", 238), ("python_calls", 9), ("call_strings", 1), ("call_list", 1))
    ),
    ModelAnswers(
        "deepseek-ai_deepseek-coder-6.7b-instruct",
        215,
        (("call_list", 151), ("call_strings", 13), ("pythonic", 7), ("python_calls", 1), ("bare_json", 1)),
    ),
    ModelAnswers("gorilla-openfunctions-v2", 280, (("python_calls", 280),)),
    ModelAnswers("gpt-4-0125-preview", 291, (("pythonic", 290), ("call_list", 1))),
    ModelAnswers("gpt-4-0613", 262, (("pythonic", 260), ("call_strings", 1), ("call_list", 1))),
    ModelAnswers("gpt-4-1106-preview", 274, (("pythonic", 272), ("call_list", 2))),
    ModelAnswers("gpt-4-turbo-2024-04-09", 271, (("pythonic", 268), ("call_list", 3))),
    ModelAnswers("gpt-4o-2024-05-13", 295, (("pythonic", 259), ("bare_json", 23), ("call_list", 13))),
    ModelAnswers("gpt-4o-mini-2024-07-18", 264, (("pythonic", 262), ("call_list", 2))),
    ModelAnswers(
        "meta-llama_Meta-Llama-3-70B-Instruct", 272, (("pythonic", 260), ("python_calls", 9), ("call_list", 2))
    ),
    ModelAnswers(
        "mistral-large-2407",
        271,
        (("call_list", 154), ("pythonic", 74), ("bare_json", 39), ("call_strings", 3), ("python_calls", 1)),
    ),
    ModelAnswers(
        "mistral-small-2402",
        295,
        (("pythonic", 258), ("call_strings", 17), ("python_calls", 10), ("bare_json", 6), ("call_list", 3)),
    ),
    ModelAnswers(
        "mistral-tiny-2312",
        205,
        (("bare_json", 91), ("python_calls", 89), ("pythonic", 11), ("call_list", 6), ("call_strings", 2)),
    ),
    ModelAnswers("open-mixtral-8x22b", 271, (("pythonic", 241), ("call_strings", 15), ("python_calls", 15))),
    ModelAnswers("snowflake_arctic", 221, (("call_strings", 200), ("python_calls", 12), ("pythonic", 9))),
    # end measured
)
"""The measured answers."""

_SEPARATORS = re.compile(r"[-_./: ]+")
_MILLION = 1_000_000  # pragma: no mutate - any large number does
_NEAREST = {dialect.name: dialect.nearest for dialect in DIALECTS}


def plain_name(name: str) -> str:
    """Return a model's name in lower case, with `-` for every separator and at both ends."""
    return f"-{_SEPARATORS.sub('-', name.strip().lower())}-"


def measured_answers(name: str, same_family: Callable[[str], bool]) -> tuple[ModelAnswers, ...]:
    """Return the measurements of the models that a name means, else of all in its family.

    Args:
        name: a model's name.
        same_family: tells whether a model with another name is of its family.
    """
    plain = plain_name(name)
    # Only within the family: "Llama-3" is also a part of the names of Hermes models.
    family = tuple(m for m in MEASURED if same_family(m.model))
    return tuple(m for m in family if plain in plain_name(m.model) or plain_name(m.model) in plain) or family


def form_shares(measured: Iterable[ModelAnswers]) -> tuple[FormShare, ...]:
    """Return the shares of all forms in the answers of some models, the most frequent first."""
    counts: Counter[str] = Counter()
    answers = 0
    for model in measured:
        answers += model.answers
        counts.update(dict(model.forms))
    return tuple(FormShare(form, form in _NEAREST, number / answers) for form, number in counts.most_common())


def nearest_format(shares: Iterable[FormShare]) -> str:
    """Return the wire format to which most answers are nearest, or ""."""
    by_format: Counter[str] = Counter()
    for share in shares:
        # Whole millionths, because sums of fractions that should be equal may differ.
        by_format[_NEAREST.get(share.form, share.form)] += round(share.share * _MILLION)
    return max(by_format, key=by_format.__getitem__, default="")
