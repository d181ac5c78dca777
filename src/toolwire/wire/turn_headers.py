"""Headers of turns that are not the model's own, in the chat templates of any family: of a tool, the user, the system.

A model that writes more after the end of its turn writes the next one, in the template of any family: its own, or that
of the result which it repeats. Nobody has asked for the calls in such a turn. It continues up to the token that ends a
turn of its family, or to the header of the model's next turn.
"""

from __future__ import annotations

import re

_OF_OTHERS = re.compile(
    r"(?:tools?|functions?|ipython|observations?|environment|user|human|system|developer)"
    r"(?:[.:].*|[_-](?!(?:calls?|uses?|requests?)\Z).*)?",
    re.IGNORECASE,
)
"""The role of anybody but the model, perhaps with the name of the tool; a turn of calls is the model's own."""
_OF_MODEL = ("assistant", "model", "ai")
_WORD = r"\s{0,4}(?P<%s>[\w.:-]{0,80})"
_NAMED = "user|human|system|developer|tool|ipython|environment"
_HEADERS = {
    "im": rf"<\|im_(?:start\|>{_WORD % 'im_role'}|(?:user|system)\|>)",
    "header": rf"<\|(?:start_header_id|header_start)\|>{_WORD % 'header_role'}",
    "role": rf"<(?:\|(?:start_of_role|role_start)\||role)>{_WORD % 'role_role'}",
    "turn": rf"<(?:start_of_turn|\|turn)>{_WORD % 'turn_role'}",
    "start": rf"<\|(?:start|begin)\|>{_WORD % 'start_role'}",
    "seed": rf"<seed:bos>{_WORD % 'seed_role'}",
    "special": rf"<SPECIAL_1[01]>{_WORD % 'special_role'}",
    "from": r"<\|from\|>(?P<from_role>[\w.:-]{0,80})",
    "token": rf"<[|｜](?:begin_|start_|hy_)?(?:{_NAMED})(?:_token|_start)?[|｜]>|<_(?:user|system)>",
}
"""By family of templates, the token of a header and the role behind it, or a token for the role itself."""
_ENDS = {
    "im": ("<|im_end|>", "<|im_assistant|>", "<|im_start|>%s"),
    "header": ("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|start_header_id|>%s", "<|header_start|>%s"),
    "role": ("<|end_of_text|>", "<|role_end|>", "<|start_of_role|>%s", "<|role_start|>%s", "<role>%s"),
    "turn": ("<end_of_turn>", "<turn|>", "<start_of_turn>%s", "<|turn>%s"),
    "start": ("<|end|>", "<|eot|>", "<|eom|>", "<|return|>", "<|start|>%s", "<|begin|>%s"),
    "seed": ("<seed:eos>", "<seed:bos>%s"),
    "special": ("<SPECIAL_12>", "<SPECIAL_11>%s"),
    "from": ("<|stop|>", "<|from|>%s"),
    "token": (
        *("<|%s|>", "<｜%s｜>", "<|begin_%s|>", "<｜hy_%s｜>", "<|%s_start|>", "<|CHATBOT_TOKEN|>", "<_bot>"),
        *("<|end|>", "<|im_end|>", "<|eot|>", "<|END_OF_TURN_TOKEN|>", "</s>", "<|endoftext|>", "<|/tool|>"),
    ),
}
"""By family, the tokens that end a turn, and the headers of the model's own turns with `%s` for its role."""
_ENDS_OF_TURNS = {
    family: frozenset((end % role if "%s" in end else end).lower() for end in ends for role in _OF_MODEL)
    for family, ends in _ENDS.items()
}
_HEADER = re.compile("|".join(f"(?P<{family}>{pattern})" for family, pattern in _HEADERS.items()), re.IGNORECASE)
_ROLE_MAY_GO_ON = re.compile(
    r"<(?:[|｜]\w{1,24}[|｜]?|start_of_turn|role|seed:bos|SPECIAL_1[01])>\s{0,4}[\w.:-]{0,80}\Z", re.IGNORECASE
)
HEADS_OF_TURNS = tuple(f"<|start|>{role}" for role in ("tool", "function", "user", "system", "developer"))
"""Beginnings of headers whose token is a marker of some format, which they are longer than."""
TURN_BRACKETS = {
    "[INST]": frozenset({"[/INST]"}),
    **dict.fromkeys(("]~b]tool", "]~b]user", "]~b]system"), frozenset({"[e~[", "]~b]ai"})),
    **dict.fromkeys(("[|tool|]", "[|user|]", "[|system|]"), frozenset({"[|assistant|]", "[|endofturn|]"})),
}
"""By header that does not begin as a tag does, the tokens that end the turn."""


class TurnHeader:
    """The header of a turn that is not the model's own.

    Args:
        family: the family of templates.
        end: position behind the token and the role.
    """

    def __init__(self, family: str, end: int) -> None:
        self.end = end
        self._family = family

    @property
    def ends(self) -> frozenset[str]:
        """The markers before which the turn ends, in lower case."""
        return _ENDS_OF_TURNS[self._family]


def turn_header(text: str, start: int = 0) -> TurnHeader | None:
    """Return the header of a turn that is not the model's and begins at this place, or None."""
    match = _HEADER.match(text, start)
    if match is None:
        return None
    family = next(name for name in _HEADERS if match[name] is not None)
    role = match[f"{family}_role"] if family != "token" else None
    if role is None:  # the token is for the role itself
        return TurnHeader(family, match.end())
    is_others = bool(role) and role not in _OF_MODEL if family == "from" else _OF_OTHERS.fullmatch(role.rstrip(":"))
    return TurnHeader(family, match.end()) if is_others else None


def role_may_go_on(text: str, start: int = 0) -> bool:
    """Return whether the text ends before the end of the role in a header, so that more text decides about it."""
    return bool(_ROLE_MAY_GO_ON.match(text, start))
