"""Tasks: the user's message that an agent works on, which may contain images and files."""

from __future__ import annotations

from collections.abc import Sequence

from toolwire._surface import wrong_type
from toolwire.messages import Content, FilePart, ImagePart, Message, OpaquePart, Part, TextPart

_TASK_PARTS = str | TextPart | ImagePart | FilePart | OpaquePart


def task_message(task: Content) -> Message:
    """Return the user's message with a task.

    Raises:
        TypeError: the task is neither text nor a list of text and parts, or the list is empty.
    """
    content: object = task
    is_list = isinstance(content, Sequence) and not isinstance(content, bytes)
    parts = (task,) if isinstance(task, str) else tuple(task) if is_list else ()
    unknown = next(([part] for part in parts if not isinstance(part, _TASK_PARTS)), None)
    if not parts or unknown is not None:
        expected = "text, or a list of text, images and files (attach(path) reads one)"
        raise wrong_type("task", task if unknown is None else unknown, expected)
    return Message("user", parts)


def more_than_text(task: Message) -> tuple[Part, ...]:
    """Return the parts of a task; none, if its text is all of it.

    Records contain the text of each task, and these parts beside it.
    """
    return () if task.parts == (TextPart(task.text),) else task.parts
