"""English words by their role in a question, and the splitting of a question into sentences and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from toolwire.text.word_set import word_set

RUN_WORDS = word_set(
    """edit change modify update fix add remove create write delete replace refactor
    adjust amend append apply archive assign backup build bump clean clear commit compile compress configure copy
    correct cut debug decrease decrypt deploy disable download draft drop duplicate empty enable encrypt erase execute
    expand export extend extract fill finish format generate highlight implement import improve increase init insert
    install invert join kill launch lower make mark merge migrate mkdir move mv optimise optimize organise organize
    overwrite paste patch persist pin polish post prepend publish pull purge push put raise rebase rebuild record redo
    reduce reformat reinstall rename reorder repair rephrase replicate reply reset resize resolve restart restore
    restructure revert rework rewrite rm rotate run save schedule send set setup shorten shrink simplify sort split
    start stop store strip submit swap switch sync tag tidy touch trim truncate turn tweak uncomment undo uninstall
    unzip upgrade upload wipe wrap zip
    approve ban block buy cancel decline forward invite notify pay purchase refund
    reject remind reschedule reserve subscribe transfer unsubscribe withdraw"""
)
"""Verbs that request a change, or that something is executed."""
RUN_OF_THINGS = word_set("convert transform translate test sum group port automate lock unlock comment")
"""Verbs that request a change only if their object is in a file."""
WALK_WORDS = word_set(
    """show read view see open display print look cat check examine head inspect less preview proofread reread review
    skim study summarise summarize tail verify"""
)
"""Verbs that request that something is opened."""
WALK_OF_THINGS = word_set(
    """analyse analyze assess audit compare count critique debug describe diff dump evaluate explain give go interpret
    outline point quote recite report say tell trace walk explore parse investigate diagnose list find"""
)
"""Verbs that request to open something only if their object is in a file."""
CRAWL_WORDS = word_set("find search list locate grep rg ls tree name recommend suggest count dir")
"""Verbs that request a search."""


_IRREGULAR = {
    "cut": "cut", "put": "put", "set": "set", "run": "run", "split": "split", "reset": "reset", "write": "written",
    "rewrite": "rewritten", "overwrite": "overwritten", "send": "sent", "make": "made", "undo": "undone",
    "redo": "redone", "build": "built", "rebuild": "rebuilt",
}  # fmt: skip
_DOUBLED = word_set("cut drop get pin put reset run set split strip submit swap tag trim unzip wrap zip format")


def gerund(verb: str) -> str:
    """Return the gerund of a verb, such as "adding"."""
    if verb in _DOUBLED:
        return f"{verb}{verb[-1]}ing" if verb != "format" else "formatting"
    return f"{verb[:-1] if verb.endswith('e') and not verb.endswith('ee') else verb}ing"


def participle(verb: str) -> str:
    """Return the participle of a verb, such as "added"."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb in _DOUBLED:
        return f"{verb}{verb[-1]}ed"
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}ed"


FILLERS = word_set(
    """please pls plz kindly just also now then ok okay hi hello hey yes yeah yep sure so and but or & next first second
    third finally maybe perhaps well actually simply quickly afterwards instead thanks right great cool additionally
    again still only lastly otherwise therefore thus too to-do todo once - – — *"""
)
"""Words that may precede a request without changing it."""
OPENERS = tuple(
    tuple(phrase.split())
    for phrase in (
        "can you", "could you", "would you", "will you", "can u", "could u", "would u", "can we", "could we",
        "would you mind", "do you mind", "you mind", "would it be possible for you to", "would it be possible to",
        "i'd like you to", "i would like you to", "i want you to", "i need you to", "i'd like to", "i would like to",
        "i want to", "i need to", "i have to", "we need to", "we have to", "we want to", "we must", "we should",
        "i wish you would", "i'd love you to", "i'd appreciate it if you could", "i'd appreciate it if you would",
        "i'd be grateful if you could", "it would be great if you could", "it would be nice if you could",
        "be so kind as to", "be so good as to", "feel free to", "go ahead and", "go on and", "make sure to",
        "make sure you", "make sure that you", "be sure to", "remember to", "don't forget to", "do not forget to",
        "let's", "lets", "let us", "let me", "how about you", "how about", "what about", "why don't you",
        "why don't we", "you can", "you could", "you may", "you should", "you need to", "you have to", "you must",
        "try to", "help me to", "help me", "help us", "your task is to", "your job is to", "the task is to", "time to",
        "can i", "could i", "may i", "might i", "for me", "if you could", "if you can",
        "i was wondering if you could", "i wonder if you could",
        "any chance you could", "is there any chance you could", "do you think you could", "i think you should",
        "i think we should", "there you go", "want you to", "need you to", "like you to",
    )
)  # fmt: skip
"""Phrases that introduce a request."""
LONGEST = max(map(len, OPENERS))
OPENER_SET = frozenset(OPENERS)
MINE = frozenset({("can", "i"), ("could", "i"), ("may", "i"), ("might", "i"), ("let", "me")})
"""Openers of users who act themselves: they ask to see something, and not for a change."""

ASKING = word_set(
    """how what what's whats why who whose who's whom which where where's when is are am was were does did do has have
    had should shall may might can could would will isn't aren't doesn't didn't hasn't haven't won't wouldn't couldn't
    can't whether how's"""
)
"""Words that begin a question."""
SUBORDINATE = word_set(
    "if when whenever once after before while since because as unless until although though for in at"
)
"""Words that begin a clause which is not a request itself; one may follow its comma."""
AUXILIARY = word_set("do does did is are was were can could should shall will would may might has have had am")
CLAUSE_NEGATIONS = word_set(
    "don't dont not never without nor no can't cannot won't mustn't shouldn't needn't avoid stop"
)
NONE = word_set("nothing none nobody never not no")
INDEED = word_set("just only forget hesitate")
"""Words after a negation that make it a request: "don't forget to"."""
NOUN_AFTER = word_set("of is was are were has had : works worked")
"""Words before which a verb that begins a clause is a noun: "change of address", "update: done"."""
DETERMINERS = word_set(
    """the a an all any every each this that these those my our your his her its their it them him me us both some
    everything something"""
)
DEFINITE = word_set("the this that these those my our your his her its their it")
DOCUMENTS = word_set(
    """agenda appendix article attachment bill book branch budget cell chapter class code column commit config
    configuration contract cv database diff doc document documentation draft email essay excel file footer form
    function graph header image invoice invoices json lease lecture letter license line lines log logs mail manual
    memo message method minutes module note notes notebook page pages paper paragraph patch pdf photo picture plan
    policy presentation proposal query readme receipt recipe report resume row rows schema screenshot script section
    sheet slide slides snippet source spec spreadsheet statement study summary table template tender test tests text
    thesis ticket tickets transcript workbook workflow config changelog dockerfile makefile implementation email's
    output pull results error data function's csv"""
)
"""Contents of files, which can be opened."""
TALK = word_set("poem joke story limerick haiku song riddle tale rhyme sonnet pun toast quiz verse lullaby slogan")
"""Texts that are written into the answer and not into a file."""
GENERIC = word_set("files documents folders images code emails spreadsheets things data pictures programs text tests")
CONTENT = word_set(
    """say says mention mentions mentioned state states stated contain contains cover covers list lists change return
    returns"""
)
HOW_TO = word_set("i we you'd one people to someone somebody")
COUNTED = word_set("files folders directories file folder directory repos projects issues")
PROGRAMS = {
    "git": word_set("log status diff show blame branch"),
    "npm": word_set("ls list view"),
    "pip": word_set("list show freeze"),
    "docker": word_set("ps images logs"),
}
"""Command lines, with the subcommands that change nothing."""

NEGATIONS = word_set(
    "not never no nobody nothing none neither nor without except but cannot nope nah unless until whether instead "
    "dont doesnt didnt cant couldnt wont wouldnt shouldnt mustnt neednt isnt arent wasnt werent hasnt havent aint "
    "don doesn didn couldn wouldn shouldn mustn isn aren wasn weren hasn hadn ain "
    "refuse refuses refused refusing refrain refrains refrained refraining avoid avoids avoided avoiding "
    "forbid forbids forbade forbidden prohibit prohibits prohibited against unable hesitate"
)
"""Words that may turn a sentence into its opposite, besides all that end in n't: far more than begin a clause."""
REFUSALS = word_set(
    "decline declines declined declining stop stops stopped cancel cancels cancelled canceled abort aborts aborted "
    "reject rejects rejected deny denies denied prevent prevents prevented skip skips skipped"
)
"""English verbs that do the same, unless a rule asks by them or a sentence begins with them."""
WITHDRAWALS = word_set(
    "scratch disregard disregards disregarded ignore ignores ignored ignoring hold holds wait waits nevermind forget "
    "retract retracts retracted withdraw withdraws withdrawn postpone postpones postponed kidding joking pretend "
    "pretends imagine suppose wants asks says claims demands demanded claimed"
)
"""English words that take back what is said beside them, put it off, or leave it to others."""
QUESTIONS = word_set(
    "did do does was were is are am has have had will would should could can may might shall must "
    "who whom whose what when where why which how if"
)
"""English words that make a question or a condition of a sentence which they begin."""

_CHUNK = re.compile(
    r"""(?P<quoted>```[^`]*(?:```|\Z)|`[^`\n]*`|"[^"\n]*"|“[^“”\n]*”|«[^«»\n]*»|(?<!\S)['‘][^'‘’\n]*['’](?!\w)|^>[^\n]*)
    |(?P<end>\n\s*\n|\n(?=\s*[-*•]\s))
    |(?P<chunk>[^\s`"“«]+)""",
    re.VERBOSE | re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|&|[,;:]|[-–—]+|\d+")
_FILE = re.compile(r"[a-z]+://.+|(?:~|\.{1,2})?/.+|[\w@./~-]*[\w-]\.[a-z]\w{0,9}|\.[a-z]\w+|[\w@.-]+(?:/[\w@.-]+){2,}")
_FOLDER = re.compile(r"(?:[\w@.~-]*/)+")
_NAME = re.compile(r"\w+\(\)|[A-Za-z]\w*_\w+|[a-z]{2,}[A-Z][a-z]\w*")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.m", "p.m", "u.s", "u.k"})

_Kind = Literal["quoted", "file", "folder", "name", "word", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """A word, or what counts as one; its place in the question.

    Attributes:
        kind: `name` is one of code, such as `parse_date` or `remove()`; `end` ends a sentence.
        text: in small letters, with straight apostrophes. Commas, colons and dashes are words too.
        start: where it begins, in code points.
        stop: where it ends.
    """

    kind: _Kind
    text: str
    start: int
    stop: int


def _tokens(question: str) -> Iterator[Token]:
    for match in _CHUNK.finditer(question):
        start, stop = match.span()
        if match.lastgroup == "chunk":
            yield from _chunk(match[0], start)
        else:
            yield Token("quoted" if match.lastgroup == "quoted" else "end", match[0], start, stop)


def _chunk(chunk: str, start: int) -> Iterator[Token]:
    """Yield the tokens between two spaces: a file, a name or words, and the punctuation after it."""
    core = chunk.rstrip(".,;:!?)]}>…*'")
    if core.endswith("(") and chunk[len(core) : len(core) + 1] == ")":
        core += ")"
    # The brackets of a call belong to its name: "main()" is a name, "(main)" is a word in brackets.
    rest = chunk[len(core) :]
    inner = core.lstrip("([{<*'")
    start += len(core) - len(inner)
    stop = start + len(inner)
    text = inner.lower().replace("’", "'")
    if text in _ABBREVIATIONS:
        return  # otherwise its dot would end the sentence
    if _FOLDER.fullmatch(inner):
        yield Token("folder", text, start, stop)
    elif _FILE.fullmatch(text):
        yield Token("file", text, start, stop)
    elif _NAME.fullmatch(inner):
        yield Token("name", text, start, stop)
    else:
        for word in _WORD.finditer(text):
            yield Token("word", word[0], start + word.start(), start + word.end())
    # A question mark wins among several marks: what is asked is not yet ordered.
    if any(mark in rest for mark in ".!?…"):
        yield Token("end", "?" if "?" in rest else ".", stop, stop + len(rest))
    elif rest:
        for mark in rest:
            if mark in ",;:":
                yield Token("word", mark, stop, stop + 1)


def is_negation(word: str) -> bool:
    """Return whether a word may turn what a sentence says into its opposite."""
    return word in NEGATIONS or word.endswith("n't")


def sentences(question: str) -> Iterator[list[Token]]:
    """Yield the sentences of a question, split also at paragraphs and items of lists."""
    sentence: list[Token] = []
    for token in _tokens(question):
        sentence.append(token)
        if token.kind == "end":
            yield sentence
            sentence = []
    if sentence:
        yield sentence
