"""`task_completion`, `ask_question`, `converse` and `final_answer`: tools with which a model ends its turn.

They only return their arguments; `ToolBehavior.ends_turn` makes the loop stop there and show them.
"""

from __future__ import annotations

from typing import Any

from toolwire.errors import ToolError


def task_completion(result: str) -> str:
    """Say that the task is done. Call this once there is nothing left to do.

    Args:
        result: what was done or found out, for the user; it must not end with a question.
    """
    return result


def ask_question(question: str, choices: list[str] | None = None) -> dict[str, Any]:
    """Ask the user for what you cannot find out yourself, and wait for the answer.

    Args:
        question: the question, with all that is needed to answer it.
        choices: answers to choose from, if there are few.
    """
    return {"question": question, "choices": choices or []}


def converse(message: str) -> str:
    """Say something to the user that is no result of a task, and wait for what they say.

    Args:
        message: what to say.
    """
    return message


def final_answer(text: str) -> str:
    """Give the user your answer in plain words, once the results of other tools say what it is. This ends the task.

    Args:
        text: the answer, with what the results say.
    """
    text = text.strip()  # formats with a tag for each argument have it on lines of its own
    if not text:
        raise ToolError("the answer is empty: call this again with the answer as `text`")
    return text
