"""Logs of inference engines: the lines in which vLLM and SGLang log what a model answered.

vLLM logs answers with `--enable-log-outputs`, SGLang with `--log-requests --log-requests-level 3`, as text or as JSON.
Both write texts as literals of Python. All other lines of such a log are not answers and do not count.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Final

_LITERAL: Final = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
# A stream is logged piece by piece, and then once more as a whole.
_VLLM: Final = re.compile(rf"Generated response (\S+)( \(streaming delta\))?(?: \([^)]*\))?: output: ({_LITERAL}|None)")
_SGLANG: Final = "Finish: obj="
# A literal that nothing closes goes to the end: from each quote in it, the same search would begin again.
_CLOSED_OR_NOT: Final = r"'(?:[^'\\]|\\(?s:.|\Z))*+(?:'|\Z)|\"(?:[^\"\\]|\\(?s:.|\Z))*+(?:\"|\Z)"
_PART: Final = re.compile(rf", out=|{_CLOSED_OR_NOT}")
_TEXT: Final = re.compile(rf"'text': ({_CLOSED_OR_NOT})( \.\.\. )?|{_CLOSED_OR_NOT}")
_FINISHED: Final = "request.finished"
_SHORTENED: Final = "the text is shortened: SGLang logs all of it with --log-requests-level 3"


def logged_answer(line: bytes) -> bytes | None:
    """Return the answer in a line of a log as a row of JSON; None if the line is not about an answer.

    A row for an answer that cannot be used has the member `error`.
    """
    text = line.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        return _json_row(text)
    if (match := _VLLM.search(text)) is not None:
        _, is_delta, literal = match.groups()
        return None if is_delta or literal == "None" else _row(literal)
    if (start := text.find(_SGLANG)) >= 0:
        return _sglang_row(text, start + len(_SGLANG))
    return None


def _sglang_row(text: str, start: int) -> bytes | None:
    # The request may quote anything, so the answer begins behind the first mark that is not in a text.
    out = next((part.end() for part in _PART.finditer(text, start) if part[0] == ", out="), None)
    if out is None:
        return None
    texts = [part for part in _TEXT.finditer(text, out) if part[1] is not None]
    if len(texts) != 1:
        reason = f"the line has {len(texts)} answers; lines with one are read" if texts else "the text is not logged"
        return json.dumps({"error": reason}).encode()
    if texts[0][2]:
        return json.dumps({"error": _SHORTENED}).encode()
    return _row(texts[0][1])


def _json_row(text: str) -> bytes | None:
    """Return a line of JSON as it is, unless it is one about something else than a finished request of SGLang."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text.encode()
    is_event = isinstance(value, dict) and "event" in value and "rid" in value
    if is_event and (value["event"] != _FINISHED or not isinstance(value.get("out"), dict)):
        return None
    return json.dumps(value["out"]).encode() if is_event else text.encode()


def _row(literal: str) -> bytes:
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError) as error:
        return json.dumps({"error": f"the text is not a literal of Python: {error}"}).encode()
    return json.dumps({"text": value}).encode()
