"""Questions and the tier that they unlock."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from toolwire.policy.intent import Intent, IntentDetector, TierGate
from toolwire.tools import Tier

CRAWL, WALK, RUN = Tier
detect = IntentDetector()
ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "intents.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_the_halves_are_what_the_file_says() -> None:
    ordered = sorted((question for _, _, question in ROWS), key=lambda text: hashlib.sha256(text.encode()).hexdigest())
    assert len(set(ordered)) == 200
    assert {question for _, half, question in ROWS if half == "tuning"} == set(ordered[:100])


@pytest.mark.mission("G4")
@pytest.mark.parametrize("half", ["tuning", "held"])
@pytest.mark.parametrize("tier", Tier)
def test_precision_and_recall(half: str, tier: Tier) -> None:
    pairs = [(Tier[label], detect(question).tier) for label, where, question in ROWS if where == half]
    right = sum(label == said == tier for label, said in pairs)
    assert right / sum(said == tier for _, said in pairs) >= 0.9
    assert right / sum(label == tier for label, _ in pairs) >= 0.9


@pytest.mark.mission("G4")
@pytest.mark.parametrize(
    ("question", "tier", "phrase"),
    [
        ("Where is the address?", CRAWL, ""),
        ("the prefix, the credit and the spread", CRAWL, ""),
        ("How do I add a column, change its type and remove the old one?", CRAWL, ""),
        ("Please don't edit, delete or rename anything.", CRAWL, ""),
        ("nothing should be deleted", CRAWL, ""),
        ("you should never delete anything", CRAWL, ""),
        ("Could you not delete it?", CRAWL, ""),
        ('Say "please delete everything".', CRAWL, ""),
        ("He wrote:\n> please delete everything", CRAWL, ""),
        ("```\nplease delete everything\n```", CRAWL, ""),
        ("Can you delete files?", CRAWL, ""),
        ("What do you think about the update?", CRAWL, ""),
        ("PUT and PATCH", CRAWL, ""),
        ("can i delete this file", CRAWL, ""),
        ("Change of plans: nothing to do.", CRAWL, ""),
        ("show me all files under src", CRAWL, ""),
        ("show me how to add a test", CRAWL, ""),
        ("look for the changelog", CRAWL, ""),
        ("Let me know when it is done", CRAWL, ""),
        ("", CRAWL, ""),
        ("?!", CRAWL, ""),
        ("Please", CRAWL, ""),
        ("show me the plan", WALK, "show"),
        ("Could you take a look at the log?", WALK, "Could you take"),
        ("explain the difference between a list and a tuple", CRAWL, ""),
        ("explain main.py", WALK, "explain"),
        ("git status", CRAWL, ""),
        ("git commit -am wip", RUN, "git"),
        ("can you fix it?", RUN, "can you fix"),
        ("PLEASE FIX THIS", RUN, "PLEASE FIX"),
        ("Don't forget to add a test", RUN, "Don't forget to add"),
        ("Do NOT touch the tests, change the implementation.", RUN, "change"),
        ("If the test fails, fix it.", RUN, "fix"),
        ("I was wondering if you could update the docs", RUN, "I was wondering if you could update"),
        ("The title needs to be changed.", RUN, "to be changed"),
        ("to do:\n- add a test\n- remove the old one", RUN, "- add"),
        ("would you mind renaming it", RUN, "would you mind renaming"),
        ("I’d like you to remove the footer", RUN, "I’d like you to remove"),
        ("list the empty files and delete them", RUN, "delete"),
        ("Where is it, delete the log", RUN, "delete"),
        ("How do I delete a file then merge the two lists", RUN, "merge"),
        ("test the code", RUN, "test"),
        ("open files in src", CRAWL, ""),
        ("Should I create an index on the email column?", CRAWL, ""),
        ("nothing works here, the old config was to be deleted", RUN, "to be deleted"),
    ],
)
def test_what_decides(question: str, tier: Tier, phrase: str) -> None:
    found = detect(question)
    assert (found.tier, found.phrase) == (tier, phrase)
    assert found.phrase in found.why


def test_words_of_your_own() -> None:
    german = IntentDetector(run=frozenset({"ändere", "lösche"}), walk=frozenset({"zeige"}))
    assert [german(text).tier for text in ("Lösche das.", "zeige mir das", "delete it")] == [RUN, WALK, CRAWL]


@pytest.mark.parametrize("piece", ["please ", "can you ", "don't or ", "the file in ", "add, ", "“", "'a ", "1.", "@a"])
def test_long_questions_end_with_an_answer(piece: str) -> None:
    assert detect(piece * 2_000 + "\n\nPlease delete it.").tier is RUN


class TestGate:
    @pytest.mark.mission("G2", "G3")
    def test_a_question_unlocks_for_itself_alone(self) -> None:
        gate = TierGate()
        assert [gate.begin(text, held=RUN).tier for text in ("delete it", "hello")] == [RUN, CRAWL]

    @pytest.mark.mission("G3")
    def test_sticky(self) -> None:
        gate = TierGate(sticky=True)
        assert [gate.begin("hello", held=held).tier for held in Tier] == [CRAWL, WALK, RUN]

    @pytest.mark.parametrize("sticky", [False, True])
    @pytest.mark.parametrize("highest", Tier)
    def test_no_question_goes_above_the_maximum(self, highest: Tier, sticky: bool) -> None:
        gate = TierGate(max_tier=highest, min_tier=RUN, sticky=sticky)
        assert gate.begin("delete it", held=RUN).tier is highest

    def test_the_least_is_there_unasked(self) -> None:
        assert TierGate(min_tier=WALK).begin("hello").tier is WALK

    def test_the_least_is_a_tier(self) -> None:
        with pytest.raises(TypeError, match="min_tier must be a Tier"):
            TierGate(min_tier="walk")  # type: ignore[arg-type]

    def test_any_callable_detects(self) -> None:
        assert TierGate(lambda question: WALK).begin("delete it").tier is WALK
        said = TierGate(lambda question: Intent(RUN, "rm", "a model said so")).begin("rm")
        assert (said.tier, said.why) == (RUN, "a model said so")


POLITE = """
can you|could you|would you|will you|can u|could u|would u|can we|could we|would you mind|do you mind|you mind
would it be possible for you to|would it be possible to|i'd like you to|i would like you to|i want you to|i need you to
i'd like to|i would like to|i want to|i need to|i have to|we need to|we have to|we want to|we must|we should
i wish you would|i'd love you to|i'd appreciate it if you could|i'd appreciate it if you would|feel free to
i'd be grateful if you could|it would be great if you could|it would be nice if you could|be so kind as to
be so good as to|go ahead and|go on and|make sure to|make sure you|make sure that you|be sure to|remember to
don't forget to|do not forget to|let's|lets|let us|how about you|how about|what about|why don't you|why don't we
you can|you could|you may|you should|you need to|you have to|you must|try to|help me to|help me|help us
your task is to|your job is to|the task is to|time to|for me|if you could|if you can|i was wondering if you could
i wonder if you could|any chance you could|is there any chance you could|do you think you could|i think you should
i think we should|want you to|need you to|like you to
"""


@pytest.mark.parametrize("words", POLITE.strip().replace("\n", "|").split("|"))
def test_a_request_may_begin_with_polite_words(words: str) -> None:
    assert detect(f"{words} fix the bug in main.py").tier is RUN


@pytest.mark.parametrize("words", ["can i", "could i", "may i", "might i", "let me"])
def test_users_who_want_to_act_themselves_request_no_change(words: str) -> None:
    assert detect(f"{words} fix the bug in main.py").tier is CRAWL
    assert detect(f"{words} see the config").tier is WALK


@pytest.mark.parametrize(
    "verb",
    [
        *("build building built", "cut cutting cut", "drop dropping dropped", "format formatting formatted"),
        *("make making made", "overwrite overwriting overwritten", "pin pinning pinned", "put putting put"),
        *("rebuild rebuilding rebuilt", "redo redoing redone", "reset resetting reset", "rewrite rewriting rewritten"),
        *("run running run", "send sending sent", "set setting set", "split splitting split"),
        *("strip stripping stripped", "submit submitting submitted", "swap swapping swapped", "tag tagging tagged"),
        *("trim trimming trimmed", "undo undoing undone", "unzip unzipping unzipped", "wrap wrapping wrapped"),
        *("write writing written", "zip zipping zipped", "delete deleting deleted", "copy copying copied"),
        *("fix fixing fixed", "deploy deploying deployed"),
    ],
)
def test_a_change_is_requested_in_any_form_of_its_verb(verb: str) -> None:
    base, gerund, participle = verb.split()
    for question in (
        f"{base} the file",
        f"would you mind {gerund} the file",
        f"The file should be {participle}",
    ):
        assert detect(question).tier is RUN, question


@pytest.mark.parametrize(
    ("question", "tier"),
    [
        ("the readme then change the title", RUN),
        ("the list then write it", RUN),
        ("back up", RUN),
        ("back up main.py", RUN),
        ("back .", CRAWL),
        ("back it ?", CRAWL),
        ("Are there any security problems in figure upload.php? Only report them, do not fix them.", CRAWL),
        ("are main.py", WALK),
        *((punctuation, CRAWL) for punctuation in ("a , .", "it , ,", ", , me", "is , or", ",", ". ?", "do , it")),
    ],
)
def test_short_and_odd_questions_unlock_no_more_than_they_request(question: str, tier: Tier) -> None:
    assert detect(question).tier is tier
