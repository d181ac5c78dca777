"""Detect the intent of a question: to look around, to read, or to change something; and the tier that it unlocks.

The rules are a small part of English grammar. Only whole words count, and a word is a request only at the beginning of
a clause or after words such as "please" or "could you". So "address" does not contain "add", "how do I delete a file?"
asks for an explanation, "the update" is a noun, and quoted text is not a request. The deciding words are reported.
Work is linear in the question's length. Any callable can replace the detector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from toolwire._surface import check_type, wrong_type
from toolwire.policy import intent_words
from toolwire.text.suggest import suggests_keywords
from toolwire.tools import TIER, Tier


@dataclass(frozen=True, slots=True)
class Intent:
    """The intent of a question.

    Attributes:
        tier: the tier that it needs.
        phrase: the deciding words, as they are in the question; "" if there are none.
        why: the same in a sentence, for a log or a user.
    """

    tier: Tier
    phrase: str = ""
    why: str = "nothing asks for more than looking around"


Detector = Callable[[str], "Intent | Tier"]
"""Returns the intent of a question, or its tier alone."""


@dataclass(frozen=True, slots=True)
class IntentDetector:
    """The rules of this module, optionally with other words.

    Attributes:
        run: verbs that request a change.
        walk: verbs that request that something is opened.
    """

    run: frozenset[str] = intent_words.RUN_WORDS
    walk: frozenset[str] = intent_words.WALK_WORDS
    _gerunds: dict[str, str] = field(init=False, repr=False, compare=False)
    _participles: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive the other forms of the verbs."""
        verbs = self.run | intent_words.RUN_OF_THINGS
        object.__setattr__(self, "_gerunds", {intent_words.gerund(verb): verb for verb in verbs})
        object.__setattr__(self, "_participles", frozenset(map(intent_words.participle, verbs)))

    def __call__(self, question: str) -> Intent:
        """Return the intent of the sentence that asks for the highest tier."""
        best = Intent(Tier.CRAWL)
        for sentence in intent_words.sentences(question):
            intent = _Sentence(self, question, sentence).read()
            if intent.tier > best.tier:
                best = intent
            if best.tier is Tier.RUN:
                break
        return best


class _Sentence:
    """One sentence while it is read, from its first word to its last."""

    def __init__(self, words: IntentDetector, question: str, tokens: list[intent_words.Token]) -> None:
        self._words = words
        self._question = question
        self._tokens = tokens
        self._text = [token.text if token.kind == "word" else "" for token in tokens]
        self._shouting = question.isupper()
        self._asks = tokens[-1].text.endswith("?")
        self._best = Intent(Tier.CRAWL)
        self._fresh: Literal["", "soft", "hard"] = "hard"  # may a request begin here; soft: only a verb with its object
        self._mode: Literal["statement", "wish", "asking", "how_to", "subordinate"] = "statement"
        self._negated = False
        self._last = self._places()

    def read(self) -> Intent:
        at = 0
        while at < len(self._tokens) and self._best.tier is not Tier.RUN:
            at = self._clause(at) if self._fresh else self._inside(at)
        return self._best

    # -- places --------------------------------------------------------------------------------------------------

    def _at(self, at: int) -> str:
        return self._text[at] if 0 <= at < len(self._text) else ""

    def _inside(self, at: int) -> int:
        """Read a word inside a clause, and note whether a request may begin after it."""
        match self._at(at):
            case "," | "and" | "&" | "or" | "then" as link if not (self._negated and self._lists_on(at)):
                if self._mode == "subordinate":
                    self._fresh = "hard" if link in {",", "then"} else ""
                elif self._mode == "wish":
                    self._fresh = "hard"
                elif (self._mode == "asking" and not self._asks) or self._mode == "statement":
                    self._fresh = "soft" if link in {",", "then"} or self._mode == "asking" else ""
                elif link == "then" or self._begins_anew(at + 1):
                    self._fresh = "soft"
                if self._fresh:
                    self._negated = False
            case ";" | "but" | "so" | "-" | "–" | "—" | "--" | ":" | "please" | "pls" | "plz" as link:
                if link not in {"so", ":"} or self._mode != "how_to":
                    self._fresh, self._negated = "hard", False
            case "should" | "must" | "to" if self._at(at + 1) == "be" and not self._asks:
                self._passive(at)
            case word if word in intent_words.ASKING and self._mode == "wish":
                self._mode = "how_to" if self._is_how_to(at) else "asking"
        return at + 1

    def _lists_on(self, at: int) -> bool:
        """Return whether a negation continues: "don't add, change or delete anything"."""
        nearby = self._text[at : at + 12]
        return "or" in nearby or "nor" in nearby or self._at(at) == "and"

    def _begins_anew(self, at: int) -> bool:
        return tuple(self._text[at : at + 2]) in intent_words.OPENER_SET or self._at(at) in {"please", "then"}

    # -- a clause ------------------------------------------------------------------------------------------------

    def _clause(self, at: int) -> int:
        """Read the beginning of a clause: the words before the first verb, and the verb."""
        start, opened, by_user = at, False, False
        while True:
            length = self._opener(at)
            if length:
                # "Please", "I want to" and the like may come in any number; what counts is the verb behind them.
                opened, by_user = True, tuple(self._text[at : at + length]) in intent_words.MINE
                start = at if not by_user else start
                at += length
            elif self._fills(at) or (at > start and self._at(at) == ","):
                at += 1
            else:
                break
        soft = self._fresh == "soft" and not opened
        self._fresh = ""
        word = self._at(at)
        # First, because a negation turns whatever the clause requests into its opposite.
        if word in intent_words.CLAUSE_NEGATIONS or (word.endswith("n't") and word not in intent_words.ASKING):
            return self._negation(at)
        if by_user and self._is_change(at):
            self._mode = "asking"
        elif soft and not self._has_object(at):
            pass  # a verb alone behind a comma may as well be a noun: the mode before it stays
        elif self._wish(start, at, gerund=opened):
            self._mode = "wish"
        elif word in intent_words.ASKING:
            self._question_at(at)
        elif word in intent_words.SUBORDINATE:
            self._mode = "subordinate"
        else:
            self._mode = "statement"
        return at + 1

    def _fills(self, at: int) -> bool:
        if self._at(at) == "do":  # "but do change it", "do not change it"
            return self._is_change(at + 1) or self._at(at + 1) == "not"
        return self._at(at) in intent_words.FILLERS

    def _opener(self, at: int) -> int:
        for length in range(min(intent_words.LONGEST, len(self._text) - at), 0, -1):
            if tuple(self._text[at : at + length]) in intent_words.OPENER_SET:
                return length
        return 0

    def _negation(self, at: int) -> int:
        self._mode = "wish"
        if self._at(at + 1) in intent_words.INDEED:
            self._fresh = "hard"
            return at + 2
        self._negated = True
        return at + 1

    def _has_object(self, at: int) -> bool:
        if at + 1 >= len(self._tokens):
            return False
        return self._tokens[at + 1].kind not in ("word", "end") or self._at(at + 1) in intent_words.DETERMINERS

    # -- requests --------------------------------------------------------------------------------------------------

    def _is_change(self, at: int) -> bool:
        return self._at(at) in self._words.run or self._at(at) in intent_words.RUN_OF_THINGS

    def _wish(self, start: int, at: int, *, gerund: bool) -> bool:
        """Take a verb for a request; return False if it is not one."""
        word, after = self._at(at), self._at(at + 1)
        verb = self._words._gerunds.get(word, word) if gerund else word
        if after in intent_words.NOUN_AFTER or (self._acronym(at) and not self._has_object(at)):
            return False
        if self._changes(verb, at, gerund=gerund):
            self._take(Tier.RUN, start, at, "asks for a change")
        elif verb in self._words.walk and not self._only_seeks(at):
            if not {"for", "up", "how"} & set(self._text[at + 1 : at + 3]):  # not "look for it", "show me how"
                self._take(Tier.WALK, start, at, "asks to open something")
        elif (verb in intent_words.WALK_OF_THINGS and (self._thing(at + 1) or self._file(0))) or self._phrase(at):
            self._take(Tier.WALK, start, at, "asks about what something says")
        else:
            return verb in self._words.walk or verb in intent_words.WALK_OF_THINGS or verb in intent_words.CRAWL_WORDS
        return True

    def _acronym(self, at: int) -> bool:
        """Return whether a word is in capitals among others that are not: PUT and PATCH are not requests."""
        token = self._tokens[at] if at < len(self._tokens) else None
        return token is not None and self._question[token.start : token.stop].isupper() and not self._shouting

    def _changes(self, verb: str, at: int, *, gerund: bool) -> bool:
        """Return whether a verb and the words after it ask for a change."""
        after = self._at(at + 1)
        rest = self._text[at + 1 : at + 8]
        match verb:
            case "get":
                return rest[:2] == ["rid", "of"]
            case "take":
                return any(word in {"out", "off", "away"} for word in rest[:4])
            case "roll" | "back":
                return bool({"back", "up"} & set(rest[:4]))
            case "do":
                return after in {"it", "that", "so", "this"} or any(word in self._words.run for word in rest[:2])
            # Names of programs: whether they change anything depends on the command that follows.
            case "git" | "npm" | "pip" | "docker" | "cargo" | "pytest" | "python" | "node":
                return after not in intent_words.PROGRAMS.get(verb, ())
            case "comment" | "lock" | "unlock":
                return after == "out" or self._thing(at + 1)
        if verb in intent_words.RUN_OF_THINGS:
            return self._thing(at + 1)
        if verb not in self._words.run or any(word in intent_words.TALK for word in rest[:5]):
            return False
        whether_able = gerund and self._asks and after in intent_words.GENERIC and at + 3 >= len(self._text)
        return not whether_able

    def _phrase(self, at: int) -> bool:
        """Return whether words begin here that only together ask to open something."""
        words = self._text[at : at + 5]
        return words[:3] in (["have", "a", "look"], ["take", "a", "look"]) or words[:2] == ["go", "through"]

    def _only_seeks(self, at: int) -> bool:
        """Return whether files are to be listed and not opened."""
        return any(word in intent_words.COUNTED for word in self._text[at + 1 : at + 5]) and not self._file(at + 1)

    def _passive(self, at: int) -> None:
        denied = self._negated or intent_words.NONE & set(self._text[max(0, at - 4) : at])
        if self._at(at + 2) in self._words._participles and not denied:
            self._take(Tier.RUN, at, at + 2, "says that something is to be changed")

    def _take(self, tier: Tier, start: int, at: int, why: str) -> None:
        phrase = self._question[self._tokens[start].start : self._tokens[at].stop].strip()
        if tier > self._best.tier:
            self._best = Intent(tier, phrase, f'"{phrase}" {why}')

    # -- questions -----------------------------------------------------------------------------------------------

    def _is_how_to(self, at: int) -> bool:
        first, second, third = self._at(at), self._at(at + 1), self._at(at + 2)
        return first == "how" and (
            second == "to" or (second in intent_words.AUXILIARY and third in intent_words.HOW_TO)
        )

    def _question_at(self, at: int) -> None:
        first, second = self._at(at), self._at(at + 1)
        if self._is_how_to(at):
            self._mode = "how_to"
            return
        self._mode = "asking"
        seeks = first in {"where", "where's", "who", "who's", "when", "whose"} or (first, second) in {
            ("how", "many"), ("how", "big"), ("is", "there"), ("are", "there"), ("is", "it"), ("should", "i"),
        }  # fmt: skip
        seeks = seeks or (first in {"which", "what"} and second in intent_words.COUNTED)
        if self._within(at) if seeks else self._told(at):
            self._take(Tier.WALK, at, at, "asks what something says")

    def _file(self, at: int) -> bool:
        """Return whether a file or a name of code follows."""
        return at <= self._last["file"]

    def _thing(self, at: int) -> bool:
        """Return whether something follows that is in a file."""
        return at <= max(self._last["file"], self._last["document"])

    def _within(self, at: int) -> bool:
        """Return whether a file follows as the place to search in, not as the thing to search for."""
        return at <= self._last["within"]

    def _told(self, at: int) -> bool:
        """Return whether only a file has the answer: it is named, or a document and its content are."""
        return at <= max(self._last["file"], self._last["told"])

    def _places(self) -> dict[str, int]:
        """Return the last position of each kind."""
        # Computed once for the sentence. A search for each verb would take quadratic time for a long question.
        last = dict.fromkeys(("file", "document", "within", "told"), -1)
        for at, token in enumerate(self._tokens):
            before = self._at(at - 1)
            if token.kind in ("file", "name"):
                last["file"] = at
                if before in {"in", "of", "from", "inside", "within"}:
                    last["within"] = at
            elif self._document(at):
                last["document"] = at
                if before in {"in", "on", "of", "from", "into"} or intent_words.CONTENT & set(self._text[at : at + 6]):
                    last["told"] = at
        return last

    def _document(self, at: int) -> bool:
        """Return whether a determiner and a document begin here: "the second table"."""
        return self._at(at) in intent_words.DEFINITE and any(
            word in intent_words.DOCUMENTS for word in self._text[at + 1 : at + 4]
        )


@suggests_keywords
@dataclass(frozen=True, slots=True)
class TierGate:
    """The choice of the tier in which a question is answered.

    Attributes:
        detect: returns the intent of a question; any callable.
        max_tier: the highest tier that a question can unlock.
        min_tier: the tier that needs no request.
        sticky: an unlocked tier stays unlocked for later questions.
    """

    detect: Detector = IntentDetector()
    max_tier: Tier = Tier.RUN
    min_tier: Tier = Tier.CRAWL
    sticky: bool = False

    def __post_init__(self) -> None:
        """Check the detector and the tiers.

        Raises:
            TypeError: the detector cannot be called, or a tier is not a `Tier`.
        """
        if not callable(self.detect):
            raise wrong_type("detect", self.detect, "a function of a question, such as IntentDetector()")
        check_type("max_tier", self.max_tier, Tier, TIER)
        check_type("min_tier", self.min_tier, Tier, TIER)

    def begin(self, question: str, held: Tier = Tier.CRAWL) -> Intent:
        """Return the intent of a question; its `tier` is the one to work in until the next question.

        Args:
            question: the user's own words; never those of a tool or a document.
            held: the tier of the previous question; used if the gate is sticky.
        """
        detected = self.detect(question)
        intent = (
            detected
            if isinstance(detected, Intent)
            else Intent(detected, why="a detector of the program's own says so")
        )
        # The maximum is applied last: neither a detector nor an earlier question may exceed what the program allows.
        tier = min(max(intent.tier, self.min_tier, held if self.sticky else self.min_tier), self.max_tier)
        return replace(intent, tier=tier)
